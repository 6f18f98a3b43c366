"""Challenges: every solution works, nothing is solved beforehand, and a
condition or a limit that is not met is said in one sentence."""

import pytest
from analysis.tries import judged, reward, state, tried

import gradebook
from gradebook.analysis.attempt import allowed
from gradebook.analysis.challenges import Verdict, apply_solution, judge
from gradebook.analysis.conditions import JUDGES
from gradebook.cases.challenge import (
    AddRow,
    Cell,
    Edits,
    Order,
    RemoveRow,
    Setting,
)
from gradebook.cases.conditions import CONDITIONS
from gradebook.cases.scenario import names

ALL = [
    (name, challenge)
    for name in names()
    for challenge in gradebook.load(name).challenges
]
IDS = [f"{name}-{challenge.title}" for name, challenge in ALL]


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

ELSE = "Something else was edited."


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
    title = "Flip row 10 from another prompt"
    found = tried("partial_groups", title, *changes)
    assert found == Verdict(False, ELSE)


def test_a_switch_is_an_edit():
    solution = reward(1, 1.0)
    assert tried("no_eos_outliers", "One reward to agree", solution).solved
    found = tried("no_eos_outliers", "One reward to agree", solution, detector=True)
    assert found.missing == ELSE


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
            ELSE,
        ),
        ({"settings": ["eps"]}, [reward(0, 2.0)], ELSE),
        ({"columns": ["any"]}, [Cell(1, "eos", True)], ""),
        ({"columns": ["any"]}, [AddRow(A_ROW)], ELSE),
        (
            {"columns": ["eos", "mask"]},
            [reward(0, 2.0)],
            ELSE,
        ),
        ({"add": True}, [AddRow(A_ROW)], ""),
        ({"add": True}, [RemoveRow(0)], ELSE),
        ({"add": True, "most": 1}, [AddRow(A_ROW)] * 2, "There are 2 edits."),
        ({"remove": True}, [RemoveRow(0)], ""),
        ({"remove": True}, [AddRow(A_ROW)], ELSE),
        ({"reorder": True}, [Order((1, 0))], ""),
        (
            {"reorder": True},
            [reward(0, 2.0)],
            ELSE,
        ),
        ({"add": True}, [Order((1, 0))], ELSE),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1), reward(1, 100.1)],
            "",
        ),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1)],
            "The rows changed by different numbers.",
        ),
        (
            {"columns": ["reward"], "alike": True},
            [reward(0, 1.1), reward(1, 100.2)],
            "The rows changed by different numbers.",
        ),
    ],
)
def test_what_may_not_be_edited_is_said(edits, changes, missing):
    found = judged("no_eos_outliers", changes, OUT, edits=edits)
    assert found == missing


@pytest.mark.parametrize(
    "edits, said",
    [
        (Edits(columns=("reward",), rows=(11,)), "reward of row 11"),
        (Edits(columns=("reward",), most=1), "reward, one edit at most"),
        (Edits(settings=("eps",)), "the setting eps"),
        (Edits(columns=("any",)), "any cell"),
        (Edits(columns=("eos", "mask")), "eos and mask"),
        (Edits(add=True, remove=True), "adding rows, removing rows"),
        (Edits(reorder=True), "another order of the rows"),
    ],
)
def test_what_may_be_edited_is_said(edits, said):
    assert allowed(edits) == f"Allowed: {said}."


# Near misses of the shipped challenges


@pytest.mark.parametrize(
    "name, title, changes, missing",
    [
        (
            "partial_groups",
            "Flip row 10 from another prompt",
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
            "There are 2 edits.",
        ),
        (
            "no_eos_outliers",
            "One setting to agree",
            [Setting("mask_no_eos", False), Setting("eps", 0.1)],
            "There are 2 edits.",
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
            "Something else was edited.",
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
            "The guard stops it: step 0: 11 rows do not divide by the group size 4.",
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
            ELSE,
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
            "Something else was edited.",
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
