"""What the session keeps beside a draft."""

import pytest
import streamlit as st

import gradebook
from gradebook.ui.parts import drafts

SCENARIO = gradebook.load("rejected_rows")


def test_a_session_has_one_draft_of_a_case(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    mine = drafts.of(SCENARIO)
    mine.edit(table=mine.table.with_cell(0, "reward", "7"))
    assert drafts.of(SCENARIO) is mine
    assert drafts.of(gradebook.load("partial_groups")) is not mine
    monkeypatch.setattr(st, "session_state", {})
    other = drafts.of(SCENARIO)
    assert not other.edited and other.epoch != mine.epoch


def test_the_comparison_of_the_case_belongs_to_its_bugs():
    draft = drafts.Draft(SCENARIO)
    draft.edit(table=draft.table.with_cell(0, "reward", "7"))
    # Rewards 100, 1, 2, the first of them rejected: see the case's file.
    sides = [[0, -0.7071, 0.7071], [0, -0.5861, -0.5686]]
    assert of(draft.original) == pytest.approx(sides[0] + sides[1], abs=1e-4)
    draft.edit(bugs=())
    assert of(draft.original) == pytest.approx(sides[0] * 2, abs=1e-4)


def test_a_bad_cell_leaves_the_last_good_comparison_under_the_bugs_of_now():
    draft = drafts.Draft(SCENARIO)
    good = draft.comparison
    draft.edit(table=draft.table.with_cell(0, "reward", "x"))
    assert draft.comparison is good and "'x'" in draft.faults[0]
    draft.edit(bugs=())
    assert draft.comparison.agree and len(draft.faults) == 1
    draft.undo()
    draft.undo()
    assert of(draft.comparison) == of(good) and draft.faults == []


def of(found):
    """The advantages of both engines in one list."""
    return [
        *found.correct.advantage.tolist(),
        *found.faulty.advantage.tolist(),
    ]


def test_a_reset_starts_the_draws_again():
    draft = drafts.Draft(SCENARIO)
    draft.edit(table=draft.table.with_cell(0, "reward", "7"))
    draft.seed = 3
    draft.reset()
    assert draft.seed == -1 and not draft.edited


def test_what_is_wrong_is_said_in_words():
    draft = drafts.Draft(SCENARIO)
    typed = {**draft.state.typed, "reward_clip": "x"}
    draft.edit(table=draft.table.with_cell(1, "reward", "1,5"), typed=typed)
    assert draft.wrong() == [
        "reward, row 1: expected a number with a decimal point, found '1,5'",
        "Reward clip: expected a number, found 'x'",
    ]
