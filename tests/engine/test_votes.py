"""Which rows vote: scored rows, and one row of each rollout."""

import pytest
from engine.traces import trace

from gradebook import Settings

NONE = Settings(scale="none")
LOO = Settings(baseline="leave_one_out", scale="none")


def test_a_row_without_a_score_neither_learns_nor_votes():
    # (2 + 1 + 1) / 3 = 4/3; the filler 0 would make it 1.
    found = trace([0] * 4, [2, 1, 1, 0], settings=NONE, scored=[1, 1, 1, 0])
    assert found.credited.tolist() == [True, True, True, False]
    assert found.counted.tolist() == [True, True, True, False]
    assert found.advantage.tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0])


@pytest.mark.parametrize("filler", [-100, 0, 3])
def test_the_filler_of_a_row_without_a_score_moves_no_row(filler):
    rows = {"prompt": [0] * 3, "scored": [1, 1, 0]}
    for settings in (NONE, LOO, Settings(), Settings(scale="others_std")):
        rows["settings"] = settings
        found = trace(reward=[1, 0, filler], **rows).advantage
        expected = trace(reward=[1, 0, 9], **rows).advantage
        assert found.equal(expected)


def test_a_rollout_in_several_rows_votes_once():
    # Rewards 1, 0 and 0.5 of three rollouts: mean 0.5, deviation 0.5.
    rows = {
        "prompt": [0] * 5,
        "rollout": [0, 0, 0, 1, 2],
        "reward": [1, 1, 1, 0, 0.5],
    }
    found = trace(**rows, eps=0)
    assert found.counted.tolist() == [True, False, False, True, True]
    assert found.advantage.tolist() == pytest.approx([1, 1, 1, -1, 0])


def test_the_first_credited_row_votes_if_the_rewards_of_a_rollout_differ():
    # Row 0 has no token, so row 1 votes: the mean is (3 + 1) / 2.
    rows = {
        "prompt": [0] * 4,
        "rollout": [0, 0, 0, 1],
        "reward": [9, 3, 5, 1],
        "mask": [[0], [1], [1], [1]],
    }
    found = trace(**rows, settings=NONE)
    assert found.counted.tolist() == [False, True, False, True]
    assert found.advantage.tolist() == [0, 1, 3, -1]


def test_leave_one_out_leaves_out_the_vote_of_the_rows_rollout():
    rows = {
        "prompt": [0] * 4,
        "rollout": [0, 1, 1, 1],
        "reward": [1, 0, 0, 0],
    }
    assert trace(**rows, settings=LOO).advantage.tolist() == [1, -1, -1, -1]


def test_leave_one_out_keeps_a_vote_that_another_group_has():
    # Strides of two cut rollout 1 in half: rows 0 and 1, rows 2 and 3. Row
    # 2 is not in row 1's group, so the group's only vote is row 3's.
    rows = {"rollout": [0, 1, 1, 2], "settings": LOO, "group_size": 2}
    found = trace([0] * 4, [4, 0, 0, 6], "partial_groups", **rows)
    assert found.counted.tolist() == [True, True, False, True]
    assert found.baseline.tolist() == [0, 4, 6, 6]


@pytest.mark.parametrize("lone_row, advantage", [("raw", 0.7), ("zero", 0)])
def test_a_lone_rollout_in_three_rows_is_alone(lone_row, advantage):
    rows = {"prompt": [0] * 3, "rollout": [5] * 3, "reward": [0.7] * 3}
    for baseline in ("group_mean", "leave_one_out"):
        settings = Settings(baseline=baseline, lone_row=lone_row, scale="none")
        found = trace(**rows, settings=settings)
        assert found.advantage.tolist() == [advantage] * 3
        assert found.trained.tolist() == [lone_row == "raw"] * 3
