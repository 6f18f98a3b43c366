"""What the session keeps beside a draft."""

import pytest
import streamlit as st

import gradebook
from gradebook.cases import edits
from gradebook.ui import keys
from gradebook.ui.parts import drafts

SCENARIO = gradebook.load("rejected_rows")


def test_a_session_has_one_draft_of_a_case(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    mine = drafts.of(SCENARIO)
    mine.edit(table=mine.table.with_cell(0, "reward", "7"))
    assert drafts.of(SCENARIO) is mine
    monkeypatch.setattr(st, "session_state", {})
    other = drafts.of(SCENARIO)
    assert not other.edited and other.epoch != mine.epoch


def both(comparison):
    """The advantages of both engines in one list."""
    traces = (comparison.correct, comparison.faulty)
    return [value for trace in traces for value in trace.advantage.tolist()]


def test_the_comparison_of_the_case_belongs_to_its_bugs():
    draft = drafts.Draft(SCENARIO)
    draft.edit(table=draft.table.with_cell(0, "reward", "7"))
    # Rewards 100, 1, 2, the first of them rejected: see the case's file.
    correct, faulty = [0, -0.7071, 0.7071], [0, -0.5861, -0.5686]
    assert both(draft.original) == pytest.approx(correct + faulty, abs=1e-4)
    draft.edit(bugs=())
    assert both(draft.original) == pytest.approx(correct * 2, abs=1e-4)


def test_what_an_engine_cannot_compute_leaves_the_last_good_comparison():
    """Fixed strides need whole groups: 2 rows of 3 are none."""
    draft = drafts.Draft(gradebook.load("partial_groups"))
    good = draft.comparison
    draft.do(edits.set_setting, "prompts_per_step", "5")
    draft.edit(bugs=("filtered_first",), table=draft.table.take(range(7)))
    assert draft.faults and draft.comparison is not None
    draft.edit(bugs=())
    assert draft.comparison.agree and draft.faults == []
    draft.go(0)
    assert both(draft.comparison) == both(good)


def test_no_two_keys_of_a_session_share_a_name():
    names = [key.name for key in vars(keys).values() if isinstance(key, keys.Key)]
    assert len(names) > 10 and len(set(names)) == len(names)
