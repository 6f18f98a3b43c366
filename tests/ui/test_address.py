"""Who changed the address: an edit, or the browser's Back."""

import pytest
import streamlit as st

from gradebook.ui.parts import address, drafts, predict

PAGE = "partial_groups"
LINK = {"v": "1", "s": PAGE, "open": "1"}


class Query(dict):
    """Streamlit's query parameters."""

    def to_dict(self):
        return dict(self)

    def from_dict(self, given):
        self.clear()
        self.update(given)

    def get_all(self, name):
        return [*self.passed.get(name, ()), self[name]]

    passed = {}


@pytest.fixture
def query(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(st, "query_params", Query())
    predict.answer(PAGE, predict.SKIPPED)
    run()
    return st.query_params


def run(edited=False):
    """A run of the whole page, or of the part that a widget edited."""
    if not edited:
        address.arrive(PAGE)
    address.depart(PAGE, edited=edited)


def draft():
    return drafts.of(address.case(PAGE))


def reward(value):
    draft().edit(table=draft().table.with_cell(0, "reward", value))


def edit(value):
    """An edit, its own run and a whole one after it."""
    reward(value)
    run(edited=True)
    run()


def test_a_run_that_wrote_no_address_makes_way_for_the_next(monkeypatch):
    """Such as one that follows the lead to another case of the page."""
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(st, "query_params", Query())
    address.arrive(PAGE)
    st.query_params.from_dict({"v": "1", "s": f"{PAGE}-tail"})
    address.arrive(PAGE)
    assert address.case(PAGE).name == f"{PAGE}-tail"


@pytest.mark.parametrize("known", [False, True])
def test_back_before_the_address_came_undoes_one_edit(query, known):
    """Where the browser has not come with the last edit's address yet, it
    was still at the edit before and went one too far."""
    came, first = dict(query), draft().table["reward"][0]
    edit("7")
    seen = dict(query)
    reward("5")
    run(edited=True)
    if known:
        run(edited=True)  # another part of the page asked
    query.from_dict(came)
    run()
    assert draft().table["reward"][0] == (first if known else "7")
    assert query == (came if known else seen)


def test_forward_is_taken_although_backs_run_was_cut_short(query):
    first = draft().table["reward"][0]
    before = dict(query)
    edit("7")
    after = dict(query)
    query.from_dict(before)
    address.arrive(PAGE)  # Back; the run ends before it can depart
    assert draft().table["reward"][0] == first
    query.from_dict(after)
    run()
    assert draft().table["reward"][0] == "7" and query == after


def test_back_right_after_an_edit_is_still_back(query):
    edit("7")
    seen = dict(query)
    reward("5")
    run(edited=True)
    query.from_dict(seen)
    run()
    assert draft().table["reward"][0] == "7" and query == seen


def test_an_edit_is_written_into_the_address(query):
    before = dict(query)
    reward("7")
    run(edited=True)
    assert query != before
    run()
    assert draft().table["reward"][0] == "7"


def test_the_address_stays_bare_until_something_is_edited(query):
    """An answer alone adds nothing to the browser's history, so Back leaves
    the page at once."""
    assert query == {}
    run()
    edit("7")
    assert query["open"] == "1"


def test_the_address_of_before_is_back(query):
    edit("7")
    first = dict(query)
    edit("8")
    query.from_dict(first)
    run()
    assert draft().table["reward"][0] == "7"
    assert draft().at == 1 and len(draft().states) == 3


def test_a_browser_that_is_behind_is_not_back(query):
    """The next edit came with the address of before the last one."""
    edit("7")
    behind = dict(query)
    reward("8")
    run(edited=True)
    written = dict(query)
    query.from_dict(behind)
    run(edited=True)  # nothing new was edited, but a widget asked
    assert query == written
    run()
    assert draft().table["reward"][0] == "8"


def test_an_edit_beside_an_old_address_stands(query):
    edit("7")
    query.from_dict({})
    reward("8")
    run()
    assert draft().table["reward"][0] == "8"


def test_what_an_address_may_hold_besides_stays(query):
    query["present"] = "1"
    reward("7")
    run(edited=True)
    assert query["present"] == "1" and "t" in query


def test_what_a_link_gives_twice_is_named(query):
    """The last one counts, as Streamlit has it."""
    query.passed = {"row": ["10", "4"]}
    query.from_dict({**LINK, "row": "3"})
    run()
    assert draft().row == 3
    assert st.session_state["address"]["problems"] == (
        "In this link 'row' should be given once, but is given 3 times; '3' is taken.",
    )


def test_a_bare_address_has_no_problem(query):
    query.from_dict({**LINK, "row": "many"})
    run()
    assert len(st.session_state["address"]["problems"]) == 1
    query.clear()
    run()
    assert st.session_state["address"]["problems"] == ()
