"""What the session keeps beside a draft."""

import streamlit as st

import gradebook
from gradebook.analysis.state_comparison import compared
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
    draft.own = found = compared(draft.origin)
    draft.edit(bugs=())
    assert draft.own is None
    draft.undo()
    assert draft.own is found


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
