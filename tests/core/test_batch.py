"""What a batch takes, and what it refuses with key, row, expected, found."""

import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch

from gradebook import Batch, GradebookError, Settings
from gradebook.core.columns import ALL, COLUMNS
from gradebook.core.tensors import FEW

NAN, INF = math.nan, math.inf
TWO = {"prompt": [0, 1], "reward": [1, 2]}
LOGP = {"logp": [[-1.0, -2.0], [-3.0, -4.0]]}
FINITE = "a finite number"
NAMES = "whole numbers, or strings in every row"


def frozen(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


KINDS = {
    "list": list,
    "tuple": tuple,
    "tensor": torch.tensor,
    "array": np.array,
    "read-only array": frozen,
    "series": pd.Series,
    "series with an index": lambda v: pd.Series(v, index=range(7, 7 + len(v))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_is_read(kind):
    of = KINDS[kind]
    batch = Batch(
        prompt=of([4, 9, 4]),
        reward=of([1.5, -2.0, 0.0]),
        eos=of([True, False, True]),
        step=of([3, 3, 5]),
        steps=of([2, 4, 6]),
        kept_steps=of([2, 0, 1]),
    )
    assert batch.prompt.tolist() == [4, 9, 4]
    assert batch.prompt.dtype == torch.int64
    assert batch.reward.tolist() == [1.5, -2, 0]
    assert batch.eos.tolist() == [True, False, True]
    assert batch.step.tolist() == [3, 3, 5]
    assert batch.steps.tolist() == [2, 4, 6]
    assert batch.kept_steps.tolist() == [2, 0, 1]
    assert batch.kept_steps.dtype == torch.int64


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if "series" not in k and k != "tuple"]
)
@pytest.mark.parametrize("cell", [bool, int, float])
def test_a_mask_is_read_from_bools_integers_and_floats(kind, cell):
    cells = [[cell(1), cell(0)], [cell(0), cell(0)]]
    batch = Batch(**TWO, mask=KINDS[kind](cells))
    assert batch.mask.tolist() == [[True, False], [False, False]]
    assert batch.mask.dtype == torch.bool
    assert batch.tokens.tolist() == [1, 0]


@pytest.mark.parametrize("cell", [bool, int, float])
def test_eos_is_read_from_bools_integers_and_floats(cell):
    batch = Batch(**TWO, eos=[cell(1), cell(0)])
    assert batch.eos.tolist() == [True, False]
    assert batch.eos.dtype == torch.bool


def test_what_is_absent_has_its_default():
    batch = Batch([0, 1], [1, 2])
    assert batch.mask.tolist() == [[True], [True]]
    assert batch.eos.tolist() == [True, True]
    assert batch.step.tolist() == [0, 0]
    assert batch.steps.tolist() == batch.kept_steps.tolist() == [1, 1]
    assert batch.logp is None and batch.ref_logp is None
    assert batch.settings == Settings()


def test_the_mask_takes_the_width_of_logp():
    batch = Batch(**TWO, **LOGP)
    assert batch.mask.tolist() == [[True, True]] * 2


def test_kept_steps_follow_steps_and_steps_follow_kept_steps():
    assert Batch(**TWO, steps=[3, 4]).kept_steps.tolist() == [3, 4]
    assert Batch(**TWO, kept_steps=[0, 4]).steps.tolist() == [1, 4]


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
def test_strings_are_numbered_as_they_appear(kind):
    batch = Batch(kind(["b", "a", "b", "ü"]), [1, 2, 3, 4])
    assert batch.prompt.tolist() == [0, 1, 0, 2]


def test_the_table_of_columns_has_what_a_batch_has_and_each_alias_once():
    assert {field.name for field in fields(Batch)} == {*COLUMNS, "settings"}
    names = [name for column in ALL.values() for name in column.names]
    assert len(names) == len({*names})


@pytest.mark.parametrize("rows", [FEW, FEW + 1])
def test_few_rows_and_many_are_numbered_alike(rows):
    seventh = [row % 7 for row in range(rows)]
    batch = Batch([f"p{6 - k}" for k in seventh], [0.0] * rows)
    assert batch.prompt.tolist() == seventh
    batch = Batch([10 * (6 - k) for k in seventh], [0.0] * rows)
    assert batch.prompt_index.tolist() == seventh
    assert batch.prompt.tolist() == [10 * (6 - k) for k in seventh]


def test_float32_stays_and_all_else_is_float64():
    for given, kept in [
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        (torch.float16, torch.float64),
        (torch.int64, torch.float64),
    ]:
        reward = torch.ones(2, dtype=given)
        logp = torch.zeros(2, 1, dtype=torch.float64)
        batch = Batch([0, 1], reward, logp=logp)
        assert batch.reward.dtype == batch.logp.dtype == kept
    assert Batch([0, 1], [0.1, 2]).reward.tolist() == [0.1, 2]


def test_large_whole_floats_stay_apart():
    # 2^24 and 2^24 + 1 are one number in float32.
    batch = Batch([16777216.0, 16777217.0], [1, 2])
    assert batch.prompt.tolist() == [16777216, 16777217]


def test_a_gradient_of_the_caller_is_left_alone():
    reward = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not Batch([0, 1], reward).reward.requires_grad


@pytest.mark.parametrize("width", [0, 3])
def test_an_empty_batch_keeps_its_width(width):
    batch = Batch([], [], mask=torch.zeros(0, width))
    assert batch.mask.shape == (0, width)
    assert batch.rows == batch.step_count == 0
    assert Batch([], [], mask=[]).mask.shape == (0, 0)
    assert Batch([], []).mask.shape == (0, 1)


def test_a_mask_without_columns_rejects_every_row():
    assert Batch(**TWO, mask=[[], []]).tokens.tolist() == [0, 0]


REFUSED = {
    # rewards
    "nan": ({"reward": [1, NAN]}, "reward", 1, FINITE, "nan"),
    "inf": ({"reward": [INF, 1]}, "reward", 0, FINITE, "inf"),
    "-inf": ({"reward": [1, -INF]}, "reward", 1, FINITE, "-inf"),
    "text": ({"reward": [1, "x"]}, "reward", 1, "numbers", "'x'"),
    "none": ({"reward": [1, None]}, "reward", 1, "numbers", "None"),
    "object array": (
        {"reward": np.array([1, None], dtype=object)},
        *("reward", 1, "numbers", "None"),
    ),
    "object series": (
        {"reward": pd.Series([1, "x"], dtype=object)},
        *("reward", 1, "numbers", "'x'"),
    ),
    "no rewards": ({"reward": None}, "reward", None, "numbers", "None"),
    "one string": ({"reward": "12"}, "reward", None, "numbers", "'12'"),
    "a mapping": ({"reward": {1: 2}}, "reward", None, "numbers", "{1: 2}"),
    "a scalar": ({"reward": 3.0}, "reward", None, "shape [R]", "shape []"),
    "too deep": (
        {"reward": [[1], [2]]},
        *("reward", None, "shape [R]", "shape [2, 1]"),
    ),
    "complex": (
        {"reward": torch.tensor([1j, 2])},
        *("reward", None, "real numbers", "torch.complex64"),
    ),
    # prompts
    "letters among numbers": ({"prompt": [0, "a"]}, "prompt", 1, NAMES, "'a'"),
    "numbers among letters": ({"prompt": ["a", 0]}, "prompt", 1, NAMES, "0"),
    "no label": ({"prompt": ["a", None]}, "prompt", 1, NAMES, "None"),
    "nan among numbers": (
        {"prompt": [0, NAN]},
        *("prompt", 1, "a whole number", "nan"),
    ),
    "nan among strings": ({"prompt": ["a", NAN]}, "prompt", 1, NAMES, "nan"),
    "a string among numbers": (
        {"prompt": [0, "a"]},
        "prompt",
        1,
        NAMES,
        "'a'",
    ),
    "booleans": ({"prompt": [True, False]}, "prompt", 0, NAMES, "True"),
    "half": ({"prompt": [1, 1.5]}, "prompt", 1, "a whole number", "1.5"),
    "nan tensor": (
        {"prompt": torch.tensor([1, NAN])},
        *("prompt", 1, "a whole number", "nan"),
    ),
    "past int64": (
        {"prompt": [1.0, 1e30]},
        *("prompt", 1, "a whole number", "1e+30"),
    ),
    "past int64, whole": (
        {"prompt": [1, 2**63]},
        *("prompt", 1, "whole numbers below 2**63", "9223372036854775808"),
    ),
    "bool tensor": (
        {"prompt": torch.tensor([True, False])},
        *("prompt", None, "whole numbers", "torch.bool"),
    ),
    "no prompts": (
        {"prompt": None},
        *("prompt", None, "a label a row, shape [R]", "shape []"),
    ),
    "one name": (
        {"prompt": "ab"},
        *("prompt", None, "a label a row, shape [R]", "shape []"),
    ),
    "two labels a row": (
        {"prompt": [["a", "b"], ["c", "d"]]},
        *("prompt", None, "a label a row, shape [R]", "shape [2, 2]"),
    ),
    "one prompt short": (
        {"prompt": [0]},
        *("prompt", None, "2 rows, one for each reward", "1"),
    ),
    "one string short": (
        {"prompt": ["a"]},
        *("prompt", None, "2 rows, one for each reward", "1"),
    ),
    # masks
    "ragged": (
        {"mask": [[1, 1], [1]]},
        *("mask", 1, "2 values, as in row 0", "1 values"),
    ),
    "ragged from nothing": (
        {"mask": [[], [1]]},
        *("mask", 1, "0 values, as in row 0", "1 values"),
    ),
    "ragged to nothing": (
        {"mask": [[1], []]},
        *("mask", 1, "1 values, as in row 0", "0 values"),
    ),
    "a bare cell": (
        {"mask": [[1], 1]},
        *("mask", 1, "1 values, as in row 0", "a single value"),
    ),
    "mask 2": ({"mask": [[1], [2]]}, "mask", 1, "0 or 1 in every cell", "[2]"),
    "mask -1": (
        {"mask": [[-1], [1]]},
        *("mask", 0, "0 or 1 in every cell", "[-1]"),
    ),
    "mask half": (
        {"mask": [[0.5], [1]]},
        *("mask", 0, "0 or 1 in every cell", "[0.5]"),
    ),
    "mask nan": (
        {"mask": [[1], [NAN]]},
        *("mask", 1, "0 or 1 in every cell", "[nan]"),
    ),
    "mask text": ({"mask": [["1"], ["0"]]}, "mask", 0, "numbers", "['1']"),
    "mask none": ({"mask": [[1], [None]]}, "mask", 1, "numbers", "[None]"),
    "flat mask": ({"mask": [1, 0]}, "mask", None, "shape [R, T]", "shape [2]"),
    "deep mask": (
        {"mask": [[[1]], [[0]]]},
        *("mask", None, "shape [R, T]", "shape [2, 1, 1]"),
    ),
    "one mask short": (
        {"mask": [[1]]},
        *("mask", None, "2 rows, one for each reward", "1"),
    ),
    # per row
    "eos 2": ({"eos": [1, 2]}, "eos", 1, "true or false", "2"),
    "eos text": ({"eos": ["yes", "no"]}, "eos", 0, "numbers", "'yes'"),
    "eos short": (
        {"eos": [1]},
        *("eos", None, "2 rows, one for each reward", "1"),
    ),
    "half step": ({"step": [0, 0.5]}, "step", 1, "a whole number", "0.5"),
    "step text": ({"step": ["a", "b"]}, "step", 0, "numbers", "'a'"),
    "no steps": ({"steps": [1, 0]}, "steps", 1, "1 or more", "0"),
    "kept -1": ({"kept_steps": [1, -1]}, "kept_steps", 1, "0 or more", "-1"),
    "kept above": (
        {"steps": [2, 2], "kept_steps": [2, 3]},
        *("kept_steps", 1, "at most the row's steps", "3"),
    ),
    # log-probabilities
    "logp nan": (
        {"logp": [[-1, -1], [-1, NAN]]},
        *("logp", 1, "a finite number at every unmasked token", "[-1.0, nan]"),
    ),
    "ref -inf": (
        {"ref_logp": [[-INF, -1], [-1, -1]], **LOGP},
        *("ref_logp", 0, "a finite number at every unmasked token"),
        "[-inf, -1.0]",
    ),
    "logp width": (
        {"mask": [[1], [1]], **LOGP},
        *("logp", None, "the mask's shape [2, 1]", "[2, 2]"),
    ),
    "ref width": (
        {"ref_logp": [[-1.0], [-1.0]], **LOGP},
        *("ref_logp", None, "the mask's shape [2, 2]", "[2, 1]"),
    ),
    "ref alone": (
        {"ref_logp": [[-1.0, -2.0], [-3.0, -4.0]]},
        *("logp", None, "values beside ref_logp", "none"),
    ),
    "beta without ref": (
        {"settings": Settings(beta=0.1), **LOGP},
        *("ref_logp", None, "values, since beta is not 0", "none"),
    ),
    # settings
    "settings": (
        {"settings": {"eps": 1}},
        *("settings", None, "a gradebook.Settings", "{'eps': 1}"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_place(name):
    given, key, row, expected, found = REFUSED[name]
    with pytest.raises(GradebookError) as caught:
        Batch(**{**TWO, **given})
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == (key, row, expected, found)


def test_the_message_says_the_place():
    with pytest.raises(GradebookError) as caught:
        Batch([0, 1], [1, NAN])
    assert str(caught.value) == (
        "key 'reward', row 1: expected a finite number, found nan"
    )
    placed = caught.value.inside("a.toml")
    assert str(placed).startswith("a.toml, key 'reward', row 1: expected")
    assert isinstance(placed, ValueError)


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(GradebookError) as caught:
        Batch(["a", 7], ["b" * 500, 1])
    assert len(caught.value.found) == 60
    assert caught.value.found.endswith("…")


def test_beta_without_any_logp_is_no_error():
    assert Batch(**TWO, settings=Settings(beta=0.1)).logp is None


# what a batch knows of its rows


def test_places_run_within_each_step():
    batch = Batch([0] * 5, [0] * 5, step=[4, 2, 4, 4, 2])
    assert batch.step_index.tolist() == [0, 1, 0, 0, 1]
    assert batch.step_rows.tolist() == [3, 2]
    assert batch.place.tolist() == [0, 0, 1, 2, 1]


def test_the_group_size_is_the_largest_group_of_the_step():
    batch = Batch([0, 0, 0, 1, 0, 1], [0] * 6, step=[0, 0, 0, 0, 1, 1])
    assert batch.group_size.tolist() == [3, 1]
    five = batch.under(Settings(group_size=5))
    assert five.group_size.tolist() == [5, 5]


def test_a_row_as_long_as_the_padding_has_no_eos_where_width_decides():
    mask = [[1, 1, 0], [1, 1, 1], [0, 0, 0]]
    by_width = Settings(eos_by_width=True)
    batch = Batch([0] * 3, [1, 2, 3], mask=mask, eos=[False] * 3, settings=by_width)
    assert batch.eos.tolist() == [True, False, True]


def test_a_rollout_of_one_name_is_another_in_each_prompt_and_step():
    batch = Batch([0, 0, 1, 1, 0], [0] * 5, rollout=list("abaaa"), step=[0] * 4 + [1])
    assert batch.rollout_index.tolist() == [0, 1, 2, 2, 3]


def test_selecting_keeps_the_order_and_every_field():
    batch = Batch(
        [5, 6, 7],
        [1, 2, 3],
        mask=[[1, 0], [0, 1], [1, 1]],
        eos=[1, 0, 1],
        step=[1, 1, 2],
        steps=[3, 4, 5],
        kept_steps=[0, 1, 2],
        logp=[[-1, 0], [-2, 0], [-3, 0]],
        ref_logp=[[-4, 0], [-5, 0], [-6, 0]],
    )
    taken = batch.select(torch.tensor([True, False, True]))
    assert taken.prompt.tolist() == [5, 7]
    assert taken.reward.tolist() == [1, 3]
    assert taken.mask.tolist() == [[True, False], [True, True]]
    assert taken.eos.tolist() == [True, True]
    assert taken.step.tolist() == [1, 2]
    assert taken.steps.tolist() == [3, 5]
    assert taken.kept_steps.tolist() == [0, 2]
    assert taken.logp[:, 0].tolist() == [-1, -3]
    assert taken.ref_logp[:, 0].tolist() == [-4, -6]


def test_many_labels_far_apart_are_numbered_as_they_appear():
    """Labels 10^6, 0, 3 10^6 over and over, and 2 10^6 last."""
    labels = torch.tensor([10**6, 0, 3 * 10**6] * 100 + [2 * 10**6])
    batch = Batch(prompt=labels, reward=torch.zeros(301))
    assert batch.prompt_index.tolist() == [0, 1, 2] * 100 + [3]
