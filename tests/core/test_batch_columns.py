"""The columns scored, rollout, rank and text, and the sizes of a step."""

import pytest
import torch

from gradebook import Batch, GradebookError, Settings

TWO = {"prompt": [7, 8], "reward": [1, 2]}


@pytest.mark.parametrize("key", ["rollout", "text"])
def test_labels_are_whole_numbers_or_strings(key):
    found = getattr(Batch(**TWO, **{key: ["b", "a"]}), key)
    assert found.tolist() == [0, 1]
    found = getattr(Batch(**TWO, **{key: torch.tensor([5, 5])}), key)
    assert found.tolist() == [5, 5] and found.dtype == torch.int64


def test_the_reward_of_a_row_without_a_score_is_finite():
    with pytest.raises(GradebookError, match="key 'reward', row 1"):
        Batch([0, 0], [1, float("nan")], scored=[1, 0])


def test_labels_are_numbered_within_their_step():
    batch = Batch([0] * 4, [0] * 4, step=[5, 5, 6, 6])
    found = batch.within_step(torch.tensor([3, -1, 3, 3]))
    assert found.tolist() == [0, 1, 2, 2]


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
