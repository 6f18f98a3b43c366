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
        address.write = self.write
        self.run()

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
    monkeypatch.setattr(address, "write", None)


def draft():
    return drafts.of(address.case(PAGE))


def reward(value):
    draft().edit(table=draft().table.with_cell(0, "reward", value))


def test_an_edit_is_written_in_place_and_a_reload_brings_it_back():
    first = Tab(present="1")
    reward("7")
    first.run()
    assert first.query["present"] == "1"
    Tab(**first.query)
    assert draft().table["reward"][0] == "7" and draft().edited


@given(some.lists(some.sampled_from(["edit", "undo", "redo", "old", "bare"])))
def test_no_address_changes_a_page_that_is_drawn(acts):
    """Whatever the browser comes with, in time or late, edits stand."""
    tab = Tab()
    old = {**LINK, "row": "3"}
    for number, act in enumerate(acts):
        if act == "edit":
            reward(str(number))
        elif act in ("undo", "redo"):
            getattr(draft(), act)()
        else:
            tab.query.clear()
            tab.query.update(old if act == "old" else {})
        before, at = draft().state, draft().at
        tab.run()
        assert draft().state is before and draft().at == at
        assert draft().edited == ("t" in tab.query)


def test_a_link_that_is_opened_later_is_one_more_edit_and_a_way_back_none():
    tab = Tab()
    reward("7")
    seen, count = dict(tab.run().query), len(draft().states)
    for query, more in ((seen, 0), ({**LINK, "detector": "1"}, 1)):
        tab.query.clear()
        tab.run("home")
        tab.query.update(query)
        tab.run()
        assert len(draft().states) == count + more
    assert draft().state.typed["eos_by_width"]
    draft().undo()
    assert draft().table["reward"][0] == "7"


def test_what_a_link_says_wrong_is_named_until_an_edit():
    tab = Tab(**LINK, row="99")
    assert "'99'" in st.session_state["address"]["problem"]
    reward("7")
    tab.run()
    assert not st.session_state["address"]["problem"]
