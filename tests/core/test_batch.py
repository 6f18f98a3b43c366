"""What a batch takes, and what it refuses with key, row, expected, found."""

import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from drawn import columns, taken
from hypothesis import assume, given
from hypothesis import strategies as some

from gradebook import Batch, GradebookError, Settings
from gradebook.core.batch import FEW
from gradebook.core.columns import ALL, COLUMNS

NAN, INF = math.nan, math.inf
TWO = {"prompt": [0, 1], "reward": [1, 2]}
LOGP = {"logp": [[-1.0, -2.0], [-3.0, -4.0]]}
FINITE = "a finite number"
NAMES = "whole numbers, or strings in every row"


KINDS = {
    "list": list,
    "tuple": tuple,
    "tensor": torch.tensor,
    "array": np.array,
    "read-only array": lambda v: np.broadcast_to(v, len(v)),
    "array of objects": lambda v: np.array(v, dtype=object),
    "series with an index": lambda v: pd.Series(v, index=range(7, 7 + len(v))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_is_read(kind):
    of = KINDS[kind]
    columns = {
        "prompt": [4, 9, 4],
        "reward": [1.5, -2.0, 0.0],
        "eos": [True, False, True],
        "step": [3, 3, 5],
        "steps": [2, 4, 6],
        "kept_steps": [2, 0, 1],
        "rollout": [5, 5, 6],
        "text": [7, 7, 7],
    }
    batch = Batch(**{name: of(values) for name, values in columns.items()})
    for name, values in columns.items():
        assert getattr(batch, name).tolist() == values
    assert batch.prompt.dtype == batch.kept_steps.dtype == torch.int64
    assert batch.eos.dtype == torch.bool


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
@pytest.mark.parametrize("cell", [bool, int, float])
def test_flags_are_read_from_bools_integers_and_floats(kind, cell):
    mask = kind([[cell(1), cell(0)], [cell(0), cell(0)]])
    batch = Batch(**TWO, mask=mask, eos=kind([cell(1), cell(0)]))
    assert batch.mask.tolist() == [[True, False], [False, False]]
    assert batch.eos.tolist() == [True, False]
    assert batch.mask.dtype == batch.eos.dtype == torch.bool
    assert batch.tokens.tolist() == [1, 0]


def test_an_absent_column_has_its_default_or_follows_another_column():
    batch = Batch([0, 1], [1, 2])
    assert batch.mask.tolist() == [[True], [True]]
    assert batch.eos.tolist() == [True, True]
    assert batch.step.tolist() == [0, 0]
    assert batch.steps.tolist() == batch.kept_steps.tolist() == [1, 1]
    assert batch.scored.tolist() == [True, True]
    assert batch.rollout.tolist() == batch.text.tolist() == [0, 1]
    assert batch.rank.tolist() == [0, 0]
    assert batch.logp is None and batch.ref_logp is None
    assert Batch(**TWO, **LOGP).mask.tolist() == [[True, True]] * 2
    assert Batch(**TWO, steps=[3, 4]).kept_steps.tolist() == [3, 4]
    assert Batch(**TWO, kept_steps=[0, 4]).steps.tolist() == [1, 4]
    assert batch.settings == Settings()


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
def test_strings_are_numbered_as_they_appear(kind):
    batch = Batch(kind(["b", "a", "b", "ü"]), [1, 2, 3, 4])
    assert batch.prompt.tolist() == [0, 1, 0, 2]


def test_the_table_has_every_column_of_a_batch_and_each_alias_once():
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
    for kind in (torch.float32, torch.float64, torch.float16, torch.int64):
        reward = torch.ones(2, dtype=kind)
        batch = Batch([0, 1], reward, logp=torch.zeros(2, 1, dtype=torch.float64))
        kept = torch.float32 if kind == torch.float32 else torch.float64
        assert batch.reward.dtype == batch.logp.dtype == kept
    # 2^24 and 2^24 + 1 are one number in float32.
    batch = Batch([16777216.0, 16777217.0], [0.1, 2])
    assert batch.prompt.tolist() == [16777216, 16777217]
    assert batch.reward.tolist() == [0.1, 2]
    reward = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not Batch([0, 1], reward).reward.requires_grad


@pytest.mark.parametrize("width", [0, 3])
def test_an_empty_batch_keeps_its_width(width):
    batch = Batch([], [], mask=torch.zeros(0, width))
    assert batch.mask.shape == (0, width)
    assert batch.rows == batch.step_count == 0
    assert Batch([], [], mask=[]).mask.shape == (0, 0)
    assert Batch([], []).mask.shape == (0, 1)
    assert Batch(**TWO, mask=[[], []]).tokens.tolist() == [0, 0]


ROWS = "2 rows, one for each reward"
REFUSED = {
    ("reward", FINITE): [([1, NAN], 1, "nan"), ([INF, 1], 0, "inf")],
    ("reward", "numbers"): [
        *(([1, cell], 1, repr(cell)) for cell in ("x", None)),
        (pd.Series([1, "x"], dtype=object), 1, "'x'"),
        ({1: 2}, None, "{1: 2}"),
    ],
    ("reward", "shape [R]"): [([[1], [2]], None, "shape [2, 1]")],
    ("reward", "real numbers"): [
        (torch.tensor([1j, 2]), None, "torch.complex64 on cpu"),
        (torch.zeros(2, device="meta"), None, "torch.float32 on meta"),
    ],
    ("prompt", NAMES): [
        ([0, "a"], 1, "'a'"),
        (["a", 0], 1, "0"),
        (["a", NAN], 1, "nan"),
    ],
    ("prompt", "a whole number"): [
        ([0, NAN], 1, "nan"),
        ([1, 1.5], 1, "1.5"),
        ([1, 2**63], 1, "9.223372036854776e+18"),
    ],
    ("prompt", "whole numbers"): [([True, False], None, "torch.bool")],
    ("prompt", "numbers"): [(None, None, "None"), ([0, None], 1, "None")],
    ("prompt", ROWS): [([0], None, "1"), (["a"], None, "1")],
    ("mask", "shape [2], as in row 0"): [([[1, 1], [1]], 1, "shape [1]")],
    ("mask", "shape [1], as in row 0"): [
        ([[1], []], 1, "shape [0]"),
        ([[1], 1], 1, "shape []"),
    ],
    ("mask", "0 or 1"): [([[1], [2]], 1, "2")],
    ("mask", "numbers"): [([["1"], ["0"]], 0, "['1']")],
    ("mask", "shape [R, T]"): [([1, 0], None, "shape [2]")],
    ("mask", ROWS): [([[1]], None, "1")],
    ("eos", "true or false"): [([1, 2], 1, "2")],
    ("scored", "true or false"): [([0.5, 1], 0, "0.5")],
    ("step", "a whole number"): [([0, 0.5], 1, "0.5")],
    ("rank", "numbers"): [(["a", "b"], 0, "'a'")],
    ("steps", "1 or more"): [([1, 0], 1, "0")],
    ("kept_steps", "0 or more"): [([1, -1], 1, "-1")],
    ("settings", "a gradebook.Settings"): [({"eps": 1}, None, "{'eps': 1}")],
}


@pytest.mark.parametrize("key, expected", REFUSED)
def test_a_column_is_refused_with_its_place(key, expected):
    for value, row, found in REFUSED[key, expected]:
        refused({key: value}, key, row, expected, found)


def refused(columns, *place):
    with pytest.raises(GradebookError) as caught:
        Batch(**{**TWO, **columns})
    error = caught.value
    assert (error.key, error.row, error.expected, error.found) == place


def test_columns_that_do_not_fit_together_are_refused_with_their_place():
    steps = {"steps": [2, 2], "kept_steps": [2, 3]}
    refused(steps, "kept_steps", 1, "at most the row's steps", "3")
    each = "a finite number"
    refused({"logp": [[-1, -1], [-1, NAN]]}, "logp", 1, each, "nan")
    far = {"ref_logp": [[-INF, -1], [-1, -1]], **LOGP}
    refused(far, "ref_logp", 0, each, "-inf")
    narrow = {"mask": [[1], [1]], **LOGP}
    refused(narrow, "logp", None, "the mask's shape [2, 1]", "[2, 2]")
    alone = {"ref_logp": LOGP["logp"]}
    refused(alone, "logp", None, "values beside ref_logp", "none")
    without = {"settings": Settings(beta=0.1), **LOGP}
    refused(without, "ref_logp", None, "values, since beta is not 0", "none")
    assert Batch(**TWO, settings=Settings(beta=0.1)).logp is None


def test_the_message_says_the_place_and_cuts_a_long_value():
    with pytest.raises(GradebookError) as caught:
        Batch([0, 1], [1, NAN])
    message = "key 'reward', row 1: expected a finite number, found nan"
    assert str(caught.value) == message
    with pytest.raises(GradebookError) as of_token:
        Batch([0, 1], [1, 0], old_logp=[[-1, -1], [-1, NAN]], logp=[[-1, -1]] * 2)
    message_of_token = "key 'old_logp', row 1, token 1: expected a finite number"
    assert str(of_token.value) == f"{message_of_token}, found nan"
    assert str(caught.value.inside("a.toml")) == f"a.toml, {message}"
    with pytest.raises(GradebookError) as caught:
        Batch(["a", 7], ["b" * 500, 1])
    assert len(caught.value.found) == 60 and caught.value.found.endswith("…")


# what a batch knows of its rows


def test_places_run_within_each_step():
    batch = Batch([0] * 6, [0] * 6, step=[4, 2, 4, 2, 4, 2])
    assert batch.step_index.tolist() == [0, 1, 0, 1, 0, 1]
    assert batch.rows_per_step.tolist() == [3, 3]
    assert batch.place.tolist() == [0, 0, 1, 1, 2, 2]
    chosen = torch.tensor([True, False, False, True, True, True])
    assert batch.select(chosen).place.tolist() == [0, 0, 1, 1]
    labels = torch.tensor([3, 3, -1, 3, 3, 3])
    assert batch.within_step(labels).tolist() == [0, 1, 2, 1, 0, 1]


def test_the_sizes_of_a_step_come_from_the_settings_or_the_step():
    rows = {"prompt": [0, 1, 0, 2, 0], "reward": [0] * 5, "step": [0, 0, 1, 0, 0]}
    batch = Batch(**rows)
    assert batch.prompts_per_step.tolist() == [3, 1]
    assert batch.micro_batch.tolist() == [4, 1]
    assert batch.group_size.tolist() == [2, 1]
    batch = batch.under(Settings(prompts_per_step=5, micro_batch=2, group_size=7))
    assert batch.prompts_per_step.tolist() == [5, 5]
    assert batch.micro_batch.tolist() == [2, 2]
    assert batch.group_size.tolist() == [7, 7]


def test_copies_have_steps_of_their_own():
    batch = Batch([0, 1, 0], [1, 2, 3], step=[7, 7, 8], rollout=[1, 2, 1])
    copies = batch.copies(2)
    assert copies.reward.tolist() == [1, 2, 3, 1, 2, 3]
    assert copies.step_index.tolist() == [0, 0, 1, 2, 2, 3]
    assert copies.rollout_index.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_row_as_long_as_the_padding_has_no_eos_if_width_decides():
    mask = [[1, 1, 0], [1, 1, 1], [0, 0, 0]]
    by_width = Settings(eos_by_width=True)
    batch = Batch([0] * 3, [1, 2, 3], mask=mask, eos=[False] * 3, settings=by_width)
    assert batch.eos.tolist() == [True, False, True]


def test_equal_rollout_names_are_different_rollouts_in_each_prompt_and_step():
    batch = Batch([0, 0, 1, 1, 0], [0] * 5, rollout=list("abaaa"), step=[0] * 4 + [1])
    assert batch.rollout_index.tolist() == [0, 1, 2, 2, 3]


@given(columns(), some.data())
def test_selecting_keeps_the_order_and_every_column(rows, data):
    count = len(rows["reward"])
    keep = data.draw(some.lists(some.booleans(), min_size=count, max_size=count))
    assume(any(keep))
    few = Batch(**rows).select(torch.tensor(keep))
    alone = Batch(**taken(rows, [row for row, kept in enumerate(keep) if kept]))
    for name in COLUMNS:
        kept, cells = getattr(few, name), getattr(alone, name)
        assert (kept is None) == (cells is None), name
        assert kept is None or kept.tolist() == cells.tolist(), name
