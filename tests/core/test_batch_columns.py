"""The columns scored, rollout, rank and text, and the sizes of a step."""

import pytest
import torch

from gradebook import Batch, GradebookError, Settings

TWO = {"prompt": [7, 8], "reward": [1, 2]}


def test_the_defaults_say_nothing():
    batch = Batch(**TWO)
    assert batch.scored.tolist() == [True, True]
    assert batch.rollout.tolist() == [0, 1]
    assert batch.rank.tolist() == [0, 0]
    assert batch.text.tolist() == [7, 8]


@pytest.mark.parametrize("key", ["rollout", "text"])
def test_labels_are_whole_numbers_or_strings(key):
    found = getattr(Batch(**TWO, **{key: ["b", "a"]}), key)
    assert found.tolist() == [0, 1]
    found = getattr(Batch(**TWO, **{key: torch.tensor([5, 5])}), key)
    assert found.tolist() == [5, 5] and found.dtype == torch.int64


@pytest.mark.parametrize(
    "key, values, row",
    [
        ("scored", [1, 2], 1),
        ("scored", [0.5, 1], 0),
        ("rollout", ["a", 1], 1),
        ("rollout", [1, 1.5], 1),
        ("text", [True, False], 0),
        ("rank", [0, 0.5], 1),
        ("rank", ["a", "b"], 0),
    ],
)
def test_a_bad_value_is_refused_with_its_row(key, values, row):
    with pytest.raises(GradebookError) as caught:
        Batch(**TWO, **{key: values})
    assert (caught.value.key, caught.value.row) == (key, row)


@pytest.mark.parametrize("key", ["scored", "rollout", "rank", "text"])
def test_a_column_of_another_length_is_refused(key):
    with pytest.raises(GradebookError) as caught:
        Batch(**TWO, **{key: [1, 1, 1]})
    assert caught.value.key == key


def test_the_reward_of_a_row_without_a_score_is_finite():
    with pytest.raises(GradebookError, match="key 'reward', row 1"):
        Batch([0, 0], [1, float("nan")], scored=[1, 0])


def test_select_carries_the_columns():
    batch = Batch(
        [0, 0, 1],
        [1, 2, 3],
        scored=[1, 0, 1],
        rollout=[4, 4, 5],
        rank=[0, 1, 2],
        text=["P", "P", "Q"],
    )
    few = batch.select(torch.tensor([False, True, True]))
    assert few.scored.tolist() == [False, True]
    assert few.rollout.tolist() == [4, 5]
    assert few.rank.tolist() == [1, 2]
    assert few.text.tolist() == [0, 1]


def test_labels_are_numbered_within_their_step():
    batch = Batch([0] * 4, [0] * 4, step=[5, 5, 6, 6])
    found = batch.within_step(torch.tensor([3, -1, 3, 3]))
    assert found.tolist() == [0, 1, 2, 2]


def test_rollouts_are_numbered_within_their_prompt_and_step():
    batch = Batch(
        prompt=[0, 0, 1, 0, 0],
        reward=[0] * 5,
        step=[0, 0, 0, 0, 1],
        rollout=[1, 0, 1, 1, 1],
    )
    assert batch.rollout_index.tolist() == [0, 1, 2, 0, 3]


def test_the_place_among_chosen_rows_counts_those_of_the_step():
    batch = Batch([0] * 6, [0] * 6, step=[1, 0, 1, 0, 1, 0])
    chosen = torch.tensor([True, False, False, True, True, True])
    assert batch.place_among(chosen).tolist() == [0, 0, 1, 0, 1, 1]
    assert batch.place.tolist() == [0, 0, 1, 1, 2, 2]


def test_the_sizes_of_a_step_come_from_the_settings_or_the_step():
    rows = {"prompt": [0, 1, 0, 2], "reward": [0] * 4, "step": [0, 0, 1, 0]}
    batch = Batch(**rows)
    assert batch.prompts_per_step.tolist() == [3, 1]
    assert batch.micro_batch.tolist() == [3, 1]
    settings = Settings(prompts_per_step=5, micro_batch=2)
    batch = Batch(**rows, settings=settings)
    assert batch.prompts_per_step.tolist() == [5, 5]
    assert batch.micro_batch.tolist() == [2, 2]


@pytest.mark.parametrize("key", ["prompts_per_step", "micro_batch"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_a_size_is_a_whole_number_from_one(key, value):
    with pytest.raises(GradebookError) as caught:
        Settings(**{key: value})
    assert caught.value.key == key
    assert caught.value.expected == "a whole number from 1"


def test_whiten_ddof_is_one_or_zero():
    with pytest.raises(GradebookError, match="whiten_ddof"):
        Settings(whiten_ddof=2)
    assert Settings(whiten_ddof=0).whiten_ddof == 0
