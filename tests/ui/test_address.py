"""A page reads its address on arrival, and writes it in place."""

from urllib.parse import parse_qsl

import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as some

from gradebook.ui.parts import address, drafts, predict

PAGE = "partial_groups"
LINK = {"v": "1", "s": PAGE, "open": "1"}


class Query(dict):
    """Streamlit's query parameters."""

    def to_dict(self):
        return dict(self)


class Tab:
    """A browser's tab: an address, which scripts replace, and one session."""

    def __init__(self, **query):
        self.query = Query(query)
        st.session_state, st.query_params = {}, self.query
        predict.progress().answer(PAGE, predict.SKIPPED)

    def write(self, data, **_):
        self.query.clear()
        self.query.update(parse_qsl(data[0]["query"]))

    def run(self, page=PAGE):
        address.enter(page)
        if page == PAGE:
            address.arrive(page)
            address.depart(page)
        return self


@pytest.fixture(autouse=True)
def streamlit(monkeypatch):
    for name in ("session_state", "query_params"):
        monkeypatch.setattr(st, name, None)
    monkeypatch.setattr(address, "write", None)  # each tab brings its own


def tab(**query):
    made = Tab(**query)
    address.write = made.write
    return made.run()


def draft():
    return drafts.of(address.case(PAGE))


def reward(value):
    draft().edit(table=draft().table.with_cell(0, "reward", value))


def test_an_edit_is_written_in_place_and_a_reload_brings_it_back():
    first = tab()
    reward("7")
    first.run()
    tab(**first.query)
    assert draft().table["reward"][0] == "7" and draft().edited


@given(some.lists(some.sampled_from(["edit", "undo", "redo", "old", "bare"])))
def test_no_address_changes_a_page_that_is_drawn(acts):
    """Whatever the browser comes with, in time or late, edits stand."""
    one = tab()
    old = {**LINK, "row": "3"}
    for number, act in enumerate(acts):
        if act == "edit":
            reward(str(number))
        elif act in ("undo", "redo"):
            getattr(draft(), act)()
        else:
            one.query.clear()
            one.query.update(old if act == "old" else {})
        before, at = draft().state, draft().at
        one.run()
        assert draft().state is before and draft().at == at
        assert draft().edited == ("t" in one.query)


def test_back_from_another_page_finds_the_edits_and_adds_none():
    one = tab()
    reward("7")
    seen, count = dict(one.run().query), len(draft().states)
    one.query.clear()
    one.run("home")
    one.query.update(seen)
    one.run()
    assert draft().table["reward"][0] == "7" and len(draft().states) == count


def test_a_link_that_is_opened_later_is_one_more_edit():
    one = tab()
    reward("7")
    one.run().run("home")
    one.query.clear()
    one.query.update({**LINK, "detector": "1"})
    one.run()
    assert draft().state.typed["eos_by_width"] and draft().edited
    draft().undo()
    assert draft().table["reward"][0] == "7"


def test_a_page_that_is_as_it_came_has_a_bare_address():
    st.session_state = {}
    one = tab()
    predict.progress().hidden.add(PAGE)
    assert one.run().query == {}


def test_what_an_address_holds_besides_stays():
    one = tab(present="1")
    reward("7")
    one.run()
    assert one.query["present"] == "1" and "t" in one.query


def test_what_a_link_says_wrong_is_named_until_an_edit():
    one = tab(**LINK, row="99")
    assert "'99'" in st.session_state["address"]["problems"][0]
    reward("7")
    one.run()
    assert not st.session_state["address"]["problems"]
