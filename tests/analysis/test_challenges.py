"""Challenges: every solution works, nothing is solved beforehand, and a
condition or a limit that is not met is said in one sentence."""

import pytest
from analysis.tries import judged, reward, state, tried
from one_a_stage import SHIPPED

import gradebook
from gradebook.analysis.challenges import (
    Verdict,
    allowed,
    apply_solution,
    changes,
    judge,
)
from gradebook.cases.challenge import (
    Change,
    Edits,
)
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
    assert found.missing.endswith(".") and len(found.missing) <= 90


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


@pytest.mark.parametrize("bug", SHIPPED)
def test_every_bug_has_three_or_more(bug):
    challenges = gradebook.load(bug).challenges
    assert len(challenges) >= 3
    for one in challenges:
        assert len(one.title) <= 40
        assert one.goal.endswith(".") and "!" not in one.goal + one.hint


# What may be edited

ELSE = "Something else was edited."
A_ROW = {"prompt": "A", "reward": 1.0, "eos": True, "mask": [1, 0, 0]}
ALWAYS = {"kind": "bounds", "of": "rows", "every": "all", "least": 0}


@pytest.mark.parametrize(
    "edits, made, missing",
    [
        ({"settings": ["any"]}, [Change(setting="ddof", value=0)], ""),
        ({"settings": ["eps"]}, [Change(setting="ddof", value=0)], ELSE),
        ({"settings": ["eps"]}, [reward(0, 2.0)], ELSE),
        ({"columns": ["any"]}, [Change(row=1, column="eos", value=True)], ""),
        ({"columns": ["any"]}, [Change(add_row=A_ROW)], ELSE),
        ({"columns": ["eos", "mask"]}, [reward(0, 2.0)], ELSE),
        ({"columns": ["reward"], "rows": [1]}, [reward(1, 2.0)], ""),
        ({"columns": ["reward"], "rows": [1]}, [reward(0, 2.0)], ELSE),
        ({"add": True}, [Change(add_row=A_ROW)], ""),
        ({"add": True}, [Change(remove_row=0)], ELSE),
        ({"add": True, "most": 1}, [Change(add_row=A_ROW)] * 2, "There are 2 edits."),
        ({"remove": True}, [Change(remove_row=0)], ""),
        ({"remove": True}, [Change(add_row=A_ROW)], ELSE),
        ({"reorder": True}, [Change(order=(1, 0))], ""),
        ({"reorder": True}, [reward(0, 2.0)], ELSE),
        ({"add": True}, [Change(order=(1, 0))], ELSE),
    ],
)
def test_what_may_not_be_edited_is_said(edits, made, missing):
    assert judged("no_eos_outliers", made, ALWAYS, edits=edits) == missing


@pytest.mark.parametrize(
    "edits, said",
    [
        (Edits(columns=("reward",), rows=(11,)), "reward of row 11"),
        (Edits(columns=("reward",), rows=(0, 1, 2)), "reward of rows 0, 1 and 2"),
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


# Each condition, on batches whose numbers the scenario files work out


def bounds(of, **limits):
    return {"kind": "bounds", "of": of, **limits}


# partial_groups: rows 8, 9, 10 are -1, 0, +1 correct and -0.520, -0.500,
# -0.480 faulty; row 11 is 0 correct and +1.500 faulty; 0 to 7 agree.
@pytest.mark.parametrize(
    "condition, missing",
    [
        ({"kind": "agree", "within": 1.51}, ""),
        ({"kind": "agree", "within": 1.4}, "in the advantage"),
        (bounds("faulty", every=[8, 9, 10], most=-0.4), ""),
        (bounds("faulty", every=[8, 9, 10], most=-0.5), "row 10 is −0.4797"),
        (bounds("faulty", some=[9, 10], most=-0.5), "row 9 is −0.4999"),
        (bounds("faulty size", some="all", least=1.45), ""),
        (bounds("correct size", every="all", most=1.2), "row 5 is 1.24"),
        (bounds("correct", every=[12], most=0), "No row has a correct advantage."),
        (bounds("ratio", every=[10], most=-0.4), ""),
        (bounds("ratio", every=[8], least=0.53), "row 8 is 0.5201"),
        (bounds("ratio", some=[11], least=1), "No row has a ratio"),
        (bounds("ratio", some="best", most=-0.001), ""),
        (bounds("ratio", some=[8, 9], most=-0.001), "row 8 is 0.5201"),
        (bounds("reward", some="all", least=99), ""),
        (bounds("reward", every=[1], among=[0, -0.5]), ""),
        (bounds("reward", every=[1], among=[0, 1]), "is −0.5; the goal is 0 or 1"),
        (bounds("rows", every="all", most=11), "number of rows is 12"),
        (bounds("pieces", every="all", least=2), "row 11 is 1"),
        (bounds("correct trains", every="all", most=12), ""),
        (bounds("loss ratio", every="all", most=0), "No row has a ratio"),
        (bounds("faulty shift", every="all", most=0), ""),
        ({"kind": "equal", "column": "reward", "rows": [11]}, ""),
        ({"kind": "equal", "column": "reward", "equal": False}, ""),
        ({"kind": "equal", "column": "reward"}, "one prompt have different values"),
        ({"kind": "equal", "column": "tokens", "within": "batch"}, ""),
        ({"kind": "equal", "column": "tokens", "equal": False}, "equal values"),
        ({"kind": "differ"}, ""),
        ({"kind": "differ", "some": [0, 7]}, "None of these rows"),
        ({"kind": "crash"}, "The faulty engine still runs."),
    ],
)
def test_a_condition_holds_or_says_what_is_missing(condition, missing):
    found = judged("partial_groups", [], condition)
    assert (missing in found) if missing else (found == "")


def test_a_loss_and_a_gradient_are_judged_too():
    # The faulty loss is 10 tokens of KL, the correct one 6.
    ratio = bounds("loss ratio", every="all", least=1.66, most=1.67)
    assert judged("zero_std_kl", [], ratio) == ""
    differ = {"kind": "differ", "of": "gradient"}
    assert judged("zero_std_kl", [], {**differ, "some": [0, 1]}) == ""
    assert "gradient" in judged("zero_std_kl", [], {**differ, "some": [2, 3]})


def test_a_shift_follows_its_row_through_edits():
    # Row 11 at -100: the stride of rows 8 to 11 has mean -24.25.
    lower = [reward(11, -100.0)]
    moved = bounds("faulty shift", every=[8, 9, 10], least=0.99)
    assert judged("partial_groups", lower, moved) == ""
    still = bounds("correct shift", every="all", most=0)
    assert judged("partial_groups", lower, still) == ""
    first = [
        Change(add_row={"prompt": "E", "reward": 0.0}),
        Change(order=(12, *range(12))),
    ]
    assert judged("partial_groups", first, still) == ""
    new = bounds("faulty shift", every=[0], least=0)
    assert "No row has" in judged("partial_groups", first, new)


def test_a_whole_prompt_has_lost_no_row():
    whole = {"kind": "differ", "some": "whole"}
    assert "whole prompt" in judged("rejected_rows", [], whole)
    assert judged("partial_groups", [], whole) == ""


@pytest.mark.parametrize(
    "name, title, made, missing",
    [
        (
            "rejected_rows",
            "An estimator that does not leak",
            [
                Change(setting="baseline", value="none"),
                Change(setting="scale", value="none"),
            ],
            "The correct advantage of row 1 is 1; the goal is at most 0.",
        ),
        (
            "rejected_rows",
            "Into another prompt",
            [Change(add_row={"prompt": "B", "reward": 0.0, "mask": [1, 1, 1]})],
            "No row of a whole prompt has another faulty advantage.",
        ),
        (
            "swapped_scale",
            "The other setting",
            [Change(setting="scale", value="nonzero_share")],
            "The faulty advantage of row 0 is 2; the goal is at least 1.49 and at"
            " most 1.51.",
        ),
        (
            "micro_batch_means",
            "Turn the sign of the loss",
            [Change(setting="micro_batch", value=3)],
            "The ratio of the faulty loss to the correct one is 1.111; the goal is at"
            " most −0.001.",
        ),
    ],
)
def test_a_near_miss_of_a_shipped_challenge(name, title, made, missing):
    verdict = tried(name, title, *made)
    assert verdict.solved == (missing == "")
    assert verdict.missing == missing


def test_three_means_three_though_eps_takes_a_hair_of_it():
    longer = [
        Change(row=1, column="steps", value=18),
        Change(row=1, column="kept_steps", value=18),
    ]
    assert tried("double_normalization", "Three times too large", *longer).solved


def test_a_tail_or_a_longer_row_solves_it_another_way():
    plain = {"prompt": "D", "reward": 0.0}
    assert tried(
        "partial_groups", "Past the guard", *[Change(add_row=plain)] * 4
    ).solved
    tail = [Change(add_row=plain), Change(add_row=plain | {"reward": 5.0})]
    assert tried("partial_groups", "Blow it up", *tail).solved


def test_an_empty_batch_solves_nothing():
    for name, challenge in ALL:
        now = state(name)
        now = apply_solution(now, [Change(remove_row=0)] * now.rows)
        assert judge(challenge, now) == Verdict(False, "There are no rows.")


# Edits, and applying a solution


def test_edits_are_counted_by_value():
    before = state("partial_groups")
    same = apply_solution(before, [reward(11, 100)])
    assert changes(before, same).count == 0
    found = changes(before, apply_solution(before, [reward(3, 7.0)]))
    assert found.cells == {(3, "reward")} and found.count == 1
    now = apply_solution(
        before, [Change(setting="ddof", value=0), Change(remove_row=11)]
    )
    found = changes(before, now)
    assert found.settings == {"ddof"} and found.removed == 1
    assert not found.cells and found.count == 2


def test_a_mask_is_one_column():
    before = state("rejected_rows")
    now = apply_solution(before, [Change(row=0, column="mask", value=[1, 0, 1])])
    assert changes(before, now).cells == {(0, "mask")}
    assert now.batch().mask[0].tolist() == [True, False, True]


def test_rows_in_another_order_are_no_changed_cells():
    before = state("rejected_rows")
    found = changes(before, apply_solution(before, [Change(order=(2, 0, 1))]))
    assert found.reordered and not found.cells
    assert found.came_from == (2, 0, 1)


def test_a_row_that_is_gone_is_an_error():
    with pytest.raises(gradebook.GradebookError, match="0 to 11"):
        apply_solution(state("partial_groups"), [reward(12, 1.0)])


def test_a_challenge_stays_with_its_file():
    for name in names():
        scenario = gradebook.load(name)
        if scenario.bug in SHIPPED:
            assert bool(scenario.challenges) is not scenario.variant
