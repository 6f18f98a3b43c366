"""Challenges: every solution works, nothing is solved beforehand, and a
condition or a limit that is not met is said in one sentence."""

import pytest
from one_a_stage import SHIPPED

import gradebook
from gradebook.analysis.challenges import (
    Attempt,
    allowed,
    apply_solution,
    changes,
    missing,
)
from gradebook.cases.case import Challenge, Change, Edits
from gradebook.cases.scenario import names
from gradebook.cases.schema import read
from gradebook.cases.state import start

ALL = [
    pytest.param(name, challenge, id=f"{name}-{challenge.title}")
    for name in names()
    for challenge in gradebook.load(name).challenges
]


def state(name):
    return start(gradebook.load(name))


def reward(row, value):
    return Change(row=row, column="reward", value=value)


def judged(name, made, *conditions, edits=None):
    """What a challenge of these conditions misses after some changes; ""
    if it is solved."""
    document = {
        "title": "x",
        "goal": "y",
        "insight": "z",
        "solved": list(conditions),
        "solution": [{"remove_row": 0}],
    }
    challenge = read(Challenge, document | ({"edits": edits} if edits else {}))
    return missing(challenge, Attempt(apply_solution(state(name), made)))


@pytest.mark.parametrize("name, challenge", ALL)
def test_its_solution_solves_it_and_no_step_of_it_is_idle(name, challenge):
    now = apply_solution(state(name), challenge.solution)
    assert missing(challenge, Attempt(now)) == ""
    for place in range(len(challenge.solution)):
        rest = [*challenge.solution]
        del rest[place]
        try:
            now = apply_solution(state(name), rest)
            assert missing(challenge, Attempt(now))
        except gradebook.GradebookError:
            pass  # what is left is no batch


@pytest.mark.parametrize("name, challenge", ALL)
def test_the_case_as_it_came_does_not_solve_it(name, challenge):
    sentence = missing(challenge, Attempt(state(name)))
    assert sentence.endswith(".") and len(sentence) <= 90


@pytest.mark.parametrize("bug", SHIPPED)
def test_every_bug_has_three_or_more(bug):
    assert len(gradebook.load(bug).challenges) >= 3


# What may be edited

ELSE = "There is an edit that this challenge does not allow."
A_ROW = Change(add_row={"prompt": "A", "reward": 1.0, "eos": True, "mask": [1, 0, 0]})
DDOF, SWAPPED = Change(setting="ddof", value=0), Change(order=(1, 0))
ALWAYS = {"kind": "bounds", "of": "rows", "rows": "all", "least": 0}


@pytest.mark.parametrize(
    "edits, made, sentence",
    [
        ({"settings": ["any"]}, [DDOF], ""),
        ({"settings": ["eps"]}, [DDOF], ELSE),
        ({"columns": ["any"]}, [Change(row=1, column="eos", value=True)], ""),
        ({"columns": ["eos", "mask"]}, [reward(0, 2.0)], ELSE),
        ({"columns": ["reward"], "rows": [1]}, [reward(1, 2.0)], ""),
        ({"columns": ["reward"], "rows": [1]}, [reward(0, 2.0)], ELSE),
        ({"add": True}, [A_ROW], ""),
        ({"add": True}, [Change(remove_row=0)], ELSE),
        ({"add": True, "most": 1}, [A_ROW] * 2, "There are 2 edits."),
        ({"remove": True}, [Change(remove_row=0)], ""),
        ({"reorder": True}, [SWAPPED], ""),
        ({"add": True}, [SWAPPED], ELSE),
    ],
)
def test_what_may_not_be_edited_is_said(edits, made, sentence):
    assert judged("no_eos_outliers", made, ALWAYS, edits=edits) == sentence


@pytest.mark.parametrize(
    "edits, sentence",
    [
        (Edits(columns=("reward",), rows=(0, 1, 2)), "reward of rows 0, 1 and 2"),
        (Edits(columns=("reward",), most=1), "reward, one edit at most"),
        (Edits(settings=("eps",)), "the setting eps"),
        (Edits(columns=("any",)), "any cell"),
        (Edits(add=True, remove=True), "adding rows, removing rows"),
    ],
)
def test_what_may_be_edited_is_said(edits, sentence):
    assert allowed(edits) == f"Allowed: {sentence}."


# Each condition, on batches whose numbers the scenario files work out


def bounds(of, **limits):
    return {"kind": "bounds", "of": of, **limits}


# partial_groups: rows 8, 9, 10 are -1, 0, +1 correct and -0.520, -0.500,
# -0.480 faulty; row 11 is 0 correct and +1.500 faulty; 0 to 7 agree.
@pytest.mark.parametrize(
    "condition, part",
    [
        ({"kind": "agree", "within": 1.51}, ""),
        ({"kind": "agree", "within": 1.4}, "in the advantage"),
        (bounds("faulty", rows=[8, 9, 10], every=True, most=-0.4), ""),
        (bounds("faulty", rows=[8, 9, 10], every=True, most=-0.5), "row 10 is −0.4797"),
        (bounds("faulty", rows=[9, 10], most=-0.5), "row 9 is −0.4999"),
        (bounds("correct size", rows="all", every=True, most=1.2), "row 5 is 1.24"),
        (bounds("correct", rows=[12], most=0), "No row has a correct advantage."),
        (bounds("ratio", rows=[10], most=-0.4), ""),
        (bounds("ratio", rows=[8], least=0.53), "row 8 is 0.5201"),
        (bounds("ratio", rows=[11], least=1), "No row has a ratio"),
        (bounds("ratio", rows="best", most=-0.001), ""),
        (bounds("reward", rows=[1], among=[0, 1]), "The reward of row 1 is −0.5."),
        (bounds("rows", rows="all", most=11), "number of rows is 12"),
        (bounds("pieces", rows="all", every=True, least=2), "row 11 is 1"),
        (bounds("loss ratio", rows="all", most=0), "No row has a ratio"),
        (bounds("faulty shift", rows="all", every=True, most=0), ""),
        ({"kind": "equal", "column": "reward", "rows": [11]}, ""),
        ({"kind": "equal", "column": "reward"}, "different values in one prompt"),
        ({"kind": "equal", "column": "tokens", "equal": False}, "equal values in each"),
        ({"kind": "differ", "rows": "whole"}, ""),
        (
            {"kind": "differ", "rows": [0, 7]},
            "Both engines give these rows the same advantage.",
        ),
        ({"kind": "crash"}, "The faulty engine still runs."),
    ],
)
def test_a_condition_holds_or_says_what_is_missing(condition, part):
    sentence = judged("partial_groups", [], condition)
    assert (part in sentence) if part else (sentence == "")


def test_a_loss_a_gradient_and_whole_prompts_are_judged_too():
    # The faulty loss is 10 tokens of KL, the correct one 6.
    ratio = bounds("loss ratio", rows="all", least=1.66, most=1.67)
    assert judged("zero_std_kl", [], ratio) == ""
    differ = {"kind": "differ", "of": "gradient"}
    assert judged("zero_std_kl", [], {**differ, "rows": [0, 1]}) == ""
    assert "gradient" in judged("zero_std_kl", [], {**differ, "rows": [2, 3]})
    whole = {"kind": "differ", "rows": "whole"}
    assert "the same advantage" in judged("rejected_rows", [], whole)


def test_a_shift_follows_its_row_through_edits():
    # Row 11 at -100: the stride of rows 8 to 11 has mean -24.25.
    lower = [reward(11, -100.0)]
    moved = bounds("faulty shift", rows=[8, 9, 10], every=True, least=0.99)
    assert judged("partial_groups", lower, moved) == ""
    still = bounds("correct shift", rows="all", every=True, most=0)
    assert judged("partial_groups", lower, still) == ""
    new = Change(add_row={"prompt": "E", "reward": 0.0})
    first = [new, Change(order=(12, *range(12)))]
    assert judged("partial_groups", first, still) == ""
    moved = bounds("faulty shift", rows=[0], least=0)
    assert "No row has" in judged("partial_groups", first, moved)


# Edits


@pytest.mark.parametrize(
    "made, cells, settings, removed",
    [
        ([reward(11, 100)], set(), set(), 0),
        ([reward(3, 7.0)], {(3, "reward")}, set(), 0),
        ([DDOF, Change(remove_row=11)], set(), {"ddof"}, 1),
    ],
)
def test_edits_are_counted_by_value(made, cells, settings, removed):
    before = state("partial_groups")
    edited = changes(before, apply_solution(before, made))
    assert (edited.cells, edited.settings, edited.removed) == (cells, settings, removed)


def test_rows_in_another_order_are_no_changed_cells():
    before = state("rejected_rows")
    edited = changes(before, apply_solution(before, [Change(order=(2, 0, 1))]))
    assert edited.came_from == (2, 0, 1) and not edited.cells


def test_a_solution_that_removes_rows_keeps_the_selected_row():
    before = state("partial_groups")
    after = apply_solution(before, [Change(remove_row=0), Change(remove_row=10)])
    assert after.table["reward"][after.row] == before.table["reward"][before.row]
    assert after.row == before.row - 1


def test_a_row_that_is_gone_is_an_error():
    with pytest.raises(gradebook.GradebookError, match="0 to 11"):
        apply_solution(state("partial_groups"), [reward(12, 1.0)])


def test_a_bound_on_a_push_is_about_one_token_and_passes_over_masked_ones():
    # Row 2: advantage 0.707, and 0.04 of KL; row 0 has no token 2.
    push = {"kind": "bounds", "of": "faulty push", "rows": [2], "token": 1}
    far = judged("zero_std_kl", [], push | {"least": 1.0})
    assert far == "The faulty push of row 2, token 1, is 0.747."
    assert judged("zero_std_kl", [], push | {"least": 0.7}) == ""
    masked = {"rows": [0], "token": 2, "least": 0.0}
    assert judged("zero_std_kl", [], push | masked) == "No row has a faulty push."
