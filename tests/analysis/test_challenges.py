"""Challenges: every solution works, nothing is solved beforehand, and a
condition or a limit that is not met is said in one sentence."""

from dataclasses import replace

import pytest

import gradebook
from gradebook.analysis.attempt import changes
from gradebook.analysis.challenges import Verdict, apply_solution, judge
from gradebook.analysis.conditions import JUDGES
from gradebook.cases.challenge import (
    AddRow,
    Cell,
    Challenge,
    Order,
    RemoveRow,
    Setting,
)
from gradebook.cases.conditions import CONDITIONS
from gradebook.cases.scenario import names
from gradebook.cases.schema import read
from gradebook.cases.state import start

ALL = [
    (name, challenge)
    for name in names()
    for challenge in gradebook.load(name).challenges
]
IDS = [f"{name}-{challenge.title}" for name, challenge in ALL]


def state(name):
    return start(gradebook.load(name))


def tried(name, title, *changes, **switches):
    """The verdict of a challenge of a scenario after some changes."""
    (challenge,) = (
        c for c in gradebook.load(name).challenges if c.title == title
    )
    now = apply_solution(state(name), changes)
    return judge(challenge, replace(now, **switches))


def judged(name, changes, *conditions, edits=None):
    """What a challenge of these conditions misses after some changes; ""
    where it is solved."""
    document = {
        "title": "x",
        "goal": "y",
        "solved": list(conditions),
        "solution": [{"remove_row": 0}],
    }
    challenge = read(Challenge, document | ({"edits": edits} if edits else {}))
    found = judge(challenge, apply_solution(state(name), changes))
    assert found.solved == (found.missing == "")
    return found.missing


def reward(row, value):
    return Cell(row, "reward", value)


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_its_solution_solves_it(name, challenge):
    now = apply_solution(state(name), challenge.solution)
    assert judge(challenge, now) == Verdict(True, "")


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_it_is_not_solved_to_begin_with(name, challenge):
    found = judge(challenge, state(name))
    assert not found.solved
    assert found.missing.endswith(".") and len(found.missing) <= 80


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_no_step_of_the_solution_is_idle(name, challenge):
    for place in range(len(challenge.solution)):
        rest = [*challenge.solution]
        del rest[place]
        try:
            now = apply_solution(state(name), rest)
            assert not judge(challenge, now).solved
        except gradebook.GradebookError:
            pass  # what is left is no batch


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_every_bug_has_three_or_more(bug):
    challenges = gradebook.load(bug).challenges
    assert len(challenges) >= 3
    for one in challenges:
        assert len(one.title) <= 40
        assert one.goal.endswith(".") and "!" not in one.goal + one.hint


def test_every_condition_has_a_judge():
    assert set(JUDGES) == set(CONDITIONS.values())


# What may be edited


@pytest.mark.parametrize(
    "changes",
    [
        [reward(9, -200.0)],
        [reward(11, 0.0), Cell(0, "prompt", "E")],
        [reward(11, 0.0), Setting("eps", 1e-3)],
        [reward(11, 0.0), RemoveRow(0)],
    ],
)
def test_row_10_turns_by_the_reward_of_row_11_only(changes):
    title = "Turn row 10 from another prompt"
    found = tried("partial_groups", title, *changes)
    said = "Something else was edited. Allowed: reward of row 11."
    assert found == Verdict(False, said)


def test_a_switch_is_an_edit():
    solution = reward(1, 1.0)
    assert tried("no_eos_outliers", "One reward to agree", solution).solved
    found = tried(
        "no_eos_outliers", "One reward to agree", solution, detector=True
    )
    said = "Something else was edited. Allowed: reward, one edit at most."
    assert found.missing == said


A_ROW = {"prompt": "A", "reward": 1.0, "eos": True, "mask": [1, 0, 0]}
AGREE = {"kind": "agree"}
FLIP = {"kind": "flip"}
OUT = {"kind": "trains", "of": "correct", "most": 99}


@pytest.mark.parametrize(
    "edits, changes, missing",
    [
        ({"settings": ["any"]}, [Setting("ddof", 0)], ""),
        (
            {"settings": ["eps"]},
            [Setting("ddof", 0)],
            "Allowed: the setting eps.",
        ),
        ({"settings": ["eps"]}, [reward(0, 2.0)], "Allowed: the setting eps."),
        ({"columns": ["any"]}, [Cell(1, "eos", True)], ""),
        ({"columns": ["any"]}, [AddRow(A_ROW)], "Allowed: any cell."),
        (
            {"columns": ["eos", "mask"]},
            [reward(0, 2.0)],
            "Allowed: eos and mask.",
        ),
        ({"add": True}, [AddRow(A_ROW)], ""),
        ({"add": True}, [RemoveRow(0)], "Allowed: adding rows."),
        ({"add": True, "most": 1}, [AddRow(A_ROW)] * 2, "There are 2 edits. "),
        ({"remove": True}, [RemoveRow(0)], ""),
        ({"remove": True}, [AddRow(A_ROW)], "Allowed: removing rows."),
        ({"reorder": True}, [Order((1, 0))], ""),
        (
            {"reorder": True},
            [reward(0, 2.0)],
            "Allowed: another order of the rows.",
        ),
        ({"add": True}, [Order((1, 0))], "Allowed: adding rows."),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1), reward(1, 100.1)],
            "",
        ),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1)],
            "The rows changed by different numbers. ",
        ),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1), reward(1, 100.2)],
            "The rows changed by different numbers. ",
        ),
    ],
)
def test_what_may_not_be_edited_is_said(edits, changes, missing):
    found = judged("no_eos_outliers", changes, OUT, edits=edits)
    assert (missing in found) if missing else (found == "")


# Near misses of the shipped challenges


@pytest.mark.parametrize(
    "name, title, changes, missing",
    [
        (
            "partial_groups",
            "Turn row 10 from another prompt",
            [reward(11, 50.0)],
            "The faulty advantage of row 10 is -0.4589, not at least 0.01.",
        ),
        (
            "no_eos_outliers",
            "One reward to agree",
            [reward(1, 2.0)],
            "The engines still differ in the advantage.",
        ),
        (
            "no_eos_outliers",
            "One reward to agree",
            [reward(0, 1.5), reward(1, 1.5)],
            "There are 2 edits. Allowed: reward, one edit at most.",
        ),
        (
            "no_eos_outliers",
            "One setting to agree",
            [Setting("mask_no_eos", False), Setting("eps", 0.1)],
            "There are 2 edits. Allowed: any setting, one edit at most.",
        ),
        (
            "no_eos_outliers",
            "No outlier needed",
            [reward(1, 1.0)],
            "No row has another advantage in the faulty engine.",
        ),
        (
            "rejected_rows",
            "An estimator that does not leak",
            [Setting("baseline", "none"), Setting("scale", "none")],
            "The setting baseline is none.",
        ),
        (
            "rejected_rows",
            "Turn the siblings",
            [reward(1, 200.0)],
            "Something else was edited. Allowed: reward of row 0.",
        ),
        (
            "rejected_rows",
            "Turn the siblings",
            [reward(0, 50.0)],
            "No row's faulty advantage has changed its sign.",
        ),
        (
            "rejected_rows",
            "A zero that leaks",
            [Cell(0, "mask", [1, 1, 1])],
            "There is no row that may earn no advantage.",
        ),
        (
            "rejected_rows",
            "Into another prompt",
            [AddRow({"prompt": "B", "reward": 0.0, "mask": [1, 1, 1]})],
            "No row of a prompt in which every row counts has another"
            " advantage in the faulty engine.",
        ),
        (
            "partial_groups",
            "Past the guard",
            [RemoveRow(11)],
            "The guard stops it: step 0: 11 rows do not divide by the group"
            " size 4.",
        ),
        (
            "partial_groups",
            "Past the guard",
            [RemoveRow(8)] * 4,
            "No row has another advantage in the faulty engine.",
        ),
        (
            "partial_groups",
            "Blow it up",
            [Setting("eps", 1e-9)],
            "Something else was edited. Allowed: any cell, adding rows,"
            " removing rows.",
        ),
        (
            "double_normalization",
            "Three times too large",
            [Cell(1, "steps", 11), Cell(1, "kept_steps", 11)],
            "The faulty advantage of row 0 is +2.345, not at least 3.",
        ),
        (
            "double_normalization",
            "Hide it by length",
            [Cell(0, "kept_steps", 0), Cell(1, "kept_steps", 0)],
            "The kept_steps of row 0 is 0, not at least 1.",
        ),
        (
            "double_normalization",
            "Signal from nothing",
            [
                Cell(1, "prompt", "B"),
                Setting("baseline", "none"),
                Setting("scale", "none"),
            ],
            "The correct advantage of row 0 is +4, not 0.",
        ),
        (
            "zero_std_kl",
            "The neighbours notice",
            [Setting("loss", "dr_grpo")],
            "No row that trains in both engines has another gradient in the"
            " faulty engine.",
        ),
        (
            "zero_std_kl",
            "The neighbours notice",
            [Setting("loss", "bnpo"), Setting("beta", 0.1)],
            "Something else was edited. Allowed: the setting loss.",
        ),
        (
            "zero_std_kl",
            "Nothing left to train",
            [reward(0, 0.0)],
            "The correct engine still trains 4 rows.",
        ),
    ],
)
def test_a_near_miss_says_what_is_missing(name, title, changes, missing):
    assert tried(name, title, *changes) == Verdict(False, missing)


def test_three_means_three_though_eps_takes_a_hair_of_it():
    longer = [Cell(1, "steps", 18), Cell(1, "kept_steps", 18)]
    title = "Three times too large"
    assert tried("double_normalization", title, *longer).solved


def test_a_tail_or_a_longer_row_solves_it_another_way():
    plain = {"prompt": "D", "reward": 0.0}
    added = [AddRow(plain)] * 4
    assert tried("partial_groups", "Past the guard", *added).solved
    tail = [AddRow(plain), AddRow(plain | {"reward": 5.0})]
    assert tried("partial_groups", "Blow it up", *tail).solved


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_an_empty_batch_solves_nothing(name, challenge):
    now = state(name)
    now = apply_solution(now, [RemoveRow(0)] * now.rows)
    assert judge(challenge, now) == Verdict(False, "There are no rows.")


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
            {"kind": "sizes", "of": "rollout", "uneven": True},
            "Every rollout has the same number of rows.",
        ),
        (
            "partial_groups",
            {"kind": "setting", "setting": "group_size", "value": 4},
            "",
        ),
        (
            "partial_groups",
            {"kind": "differ", "some": "unscored"},
            "There is no row without a score.",
        ),
        ("partial_groups", {"kind": "differ", "some": "added"}, "no added"),
        ("partial_groups", {"kind": "torn"}, "No rollout has rows"),
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


def test_a_rollout_is_torn_where_its_rows_have_opposite_signs():
    # Two pieces of one rollout in two strides of two: 1 beside 0, 1 beside 3.
    rows = [
        {"prompt": "A", "reward": 1.0, "rollout": "a"},
        {"prompt": "B", "reward": 0.0, "rollout": "b"},
        {"prompt": "A", "reward": 1.0, "rollout": "a"},
        {"prompt": "B", "reward": 3.0, "rollout": "c"},
    ]
    case = gradebook.load("partial_groups")
    settings = replace(case.settings, group_size=2)
    case = replace(
        case,
        rows=tuple(rows),
        settings=settings,
        focus=0,
        challenges=(),
        expected=case.expected.__class__(correct=(0.0,) * 4),
    )
    challenge = read(
        Challenge,
        {
            "title": "x",
            "goal": "y",
            "solved": [{"kind": "torn"}],
            "solution": [{"remove_row": 0}],
        },
    )
    assert judge(challenge, start(case)).solved


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
    with pytest.raises(gradebook.GradebookError, match="row 12"):
        apply_solution(state("partial_groups"), [reward(12, 1.0)])


def test_an_unreadable_state_is_an_error():
    name, challenge = ALL[0]
    before = state(name)
    table = before.table.with_cell(0, "reward", "many")
    with pytest.raises(gradebook.GradebookError, match="reward"):
        judge(challenge, replace(before, table=table))


def test_a_challenge_stays_with_its_file():
    for name in names():
        scenario = gradebook.load(name)
        assert bool(scenario.challenges) is not scenario.variant
