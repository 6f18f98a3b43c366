"""Each condition of a challenge, and edits to a batch."""

from dataclasses import replace

import pytest
from analysis.tries import judged, reward, state

import gradebook
from gradebook.analysis.attempt import changes
from gradebook.analysis.challenges import apply_solution, judge
from gradebook.cases.challenge import (
    AddRow,
    Cell,
    Order,
    RemoveRow,
    Setting,
)
from gradebook.cases.scenario import names

AGREE = {"kind": "agree"}
FLIP = {"kind": "flip"}


# Each condition, on batches whose numbers the scenario files work out


def advantage(side, **bounds):
    return {"kind": "advantage", "of": side, **bounds}


# partial_groups: rows 8, 9, 10 are -1, 0, +1 correct and -0.520, -0.500,
# -0.480 faulty; row 11 is 0 correct and +1.500 faulty; 0 to 7 agree.
# no_eos_outliers: row 0 is 0 correct and -49.5 faulty; row 1 is 0 on both.
@pytest.mark.parametrize(
    "name, condition, missing",
    [
        ("partial_groups", AGREE | {"within": 1.5}, ""),
        ("partial_groups", AGREE | {"within": 1.4}, "up to 1.5 apart"),
        ("partial_groups", FLIP, ""),
        ("partial_groups", FLIP | {"to": "negative"}, ""),
        ("partial_groups", FLIP | {"to": "positive"}, "flips to positive"),
        ("partial_groups", FLIP | {"some": [8, 9]}, "No row flips"),
        ("partial_groups", FLIP | {"some": "best", "to": "negative"}, ""),
        (
            "partial_groups",
            advantage("faulty", every=[8, 9, 10], most=-0.4),
            "",
        ),
        (
            "partial_groups",
            advantage("faulty", every=[8, 9, 10], most=-0.5),
            "row 10 is -0.4797, not at most -0.5",
        ),
        (
            "partial_groups",
            advantage("correct", some="all", size_least=1.2, size_most=1.3),
            "",
        ),
        (
            "partial_groups",
            advantage("correct", every=[11], size_most=0),
            "",
        ),
        (
            "partial_groups",
            advantage("correct", every=[12], size_most=0),
            "There is no row 12.",
        ),
        ("partial_groups", {"kind": "ratio", "every": [10], "most": -0.4}, ""),
        (
            "partial_groups",
            {"kind": "ratio", "every": [8], "least": 0.53},
            "ratio of faulty to correct of row 8 is +0.5201",
        ),
        (
            "partial_groups",
            {"kind": "ratio", "some": [11], "least": 1},
            "No row has a ratio",
        ),
        (
            "partial_groups",
            {"kind": "values", "column": "reward", "some": "all", "least": 99},
            "",
        ),
        (
            "partial_groups",
            {"kind": "equal", "column": "reward", "rows": [11]},
            "",
        ),
        (
            "partial_groups",
            {"kind": "equal", "column": "reward", "equal": False},
            "",
        ),
        (
            "partial_groups",
            {"kind": "equal", "column": "tokens", "equal": False},
            "equal values of tokens",
        ),
        ("partial_groups", {"kind": "sizes", "of": "prompt", "least": 1}, ""),
        (
            "partial_groups",
            {"kind": "sizes", "of": "prompt", "least": 2},
            "Every prompt needs 2 rows.",
        ),
        (
            "partial_groups",
            {"kind": "setting", "setting": "group_size", "value": 4},
            "",
        ),
        (
            "partial_groups",
            {"kind": "setting", "setting": "group_size", "but": 4},
            "The setting group_size is 4.",
        ),
        ("partial_groups", {"kind": "differ", "some": "added"}, "no added"),
        ("partial_groups", {"kind": "crash"}, "The faulty engine still runs."),
        ("partial_groups", {"kind": "loss turns"}, "no loss without logp"),
        ("zero_std_kl", {"kind": "loss turns"}, "+0.007364 correct"),
        (
            "no_eos_outliers",
            {"kind": "like the correct start"},
            "row 0 is -49.5, and the correct one was 0",
        ),
        ("no_eos_outliers", {"kind": "differ", "some": "credited"}, ""),
        ("no_eos_outliers", {"kind": "differ", "some": "uncredited"}, "No"),
    ],
)
def test_a_condition_holds_or_says_what_is_missing(name, condition, missing):
    found = judged(name, [], condition)
    assert (missing in found) if missing else (found == "")


def moved(side, **rows):
    return {"kind": "moved", "of": side, **rows}


# Row 11 at -100: stride 8 to 11 has mean -24.25, so rows 8 to 10 are above.
@pytest.mark.parametrize(
    "condition, missing",
    [
        (moved("faulty", every=[8, 9, 10], turned=True), ""),
        (moved("faulty", every="old"), "row 0 has to move"),
        (moved("correct", every="old", moved=False), ""),
        (moved("faulty", every="old", moved=False), "row 8 has moved"),
        (moved("faulty", some="added"), "There is no added row."),
        (moved("correct", some="all"), "No row's correct advantage has moved"),
    ],
)
def test_a_row_moves_against_the_case_as_it_came(condition, missing):
    found = judged("partial_groups", [reward(11, -100.0)], condition)
    assert (missing in found) if missing else (found == "")


def test_rows_are_followed_when_one_is_put_between_them():
    now = [AddRow({"prompt": "E", "reward": 0.0}), Order((12, *range(12)))]
    still = moved("correct", every="old", moved=False)
    assert judged("partial_groups", now, still) == ""
    assert judged("partial_groups", now, moved("faulty", some=[11])) == ""


# Edits, and applying a solution


def test_edits_are_told_by_value():
    before = state("partial_groups")
    same = apply_solution(before, [reward(11, 100)])
    assert changes(before, same).count == 0
    found = changes(before, apply_solution(before, [reward(3, 7.0)]))
    assert found.cells == {(3, "reward"): (-1.0, 7.0)} and found.count == 1
    now = apply_solution(before, [Setting("ddof", 0), RemoveRow(11)])
    found = changes(before, now)
    assert found.settings == {"ddof"} and found.removed == 1
    assert not found.cells and found.count == 2


def test_a_mask_is_one_column():
    before = state("rejected_rows")
    now = apply_solution(before, [Cell(0, "mask", [1, 0, 1])])
    assert {*changes(before, now).cells} == {(0, "mask")}
    assert now.batch().mask[0].tolist() == [True, False, True]


def test_rows_in_another_order_are_no_changed_cells():
    before = state("rejected_rows")
    found = changes(before, apply_solution(before, [Order((2, 0, 1))]))
    assert found.reordered and not found.cells
    assert found.came_from == (2, 0, 1)


def test_a_solution_leaves_the_state_it_starts_from():
    before = state("no_eos_outliers")
    kept = [row.cells for row in before.table.rows]
    changes = [
        reward(0, 2.5),
        Cell(1, "eos", True),
        Setting("reward_clip", 3.0),
        Setting("mask_no_eos", False),
        AddRow({"prompt": "B", "reward": 1, "eos": False, "mask": [1, 1, 0]}),
        RemoveRow(1),
    ]
    now = apply_solution(before, changes)
    assert [row.cells for row in before.table.rows] == kept
    assert before.same(state("no_eos_outliers"))
    batch = now.batch()
    assert batch.reward.tolist() == [2.5, 1.0]
    assert batch.prompt.tolist() == [0, 1]
    assert batch.eos.tolist() == [True, False]
    assert batch.settings.reward_clip == 3.0
    assert batch.settings.mask_no_eos is False
    assert now.table.headers == before.table.headers
    assert now.typed["reward_clip"] == "3"


def test_the_selected_row_stays_inside():
    before = replace(state("partial_groups"), row=11)
    assert apply_solution(before, [RemoveRow(0)]).row == 10


def test_a_row_that_is_gone_is_an_error():
    with pytest.raises(gradebook.GradebookError, match="0 to 11"):
        apply_solution(state("partial_groups"), [reward(12, 1.0)])


def test_an_unreadable_state_is_an_error():
    name = names()[0]
    challenge = gradebook.load(name).challenges[0]
    before = state(name)
    table = before.table.with_cell(0, "reward", "many")
    with pytest.raises(gradebook.GradebookError, match="reward"):
        judge(challenge, replace(before, table=table))


def test_a_challenge_stays_with_its_file():
    for name in names():
        scenario = gradebook.load(name)
        assert bool(scenario.challenges) is not scenario.variant
