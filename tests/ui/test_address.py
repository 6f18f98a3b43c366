"""A page reads its address on arrival, and writes it in place."""

import tomllib

from hypothesis import given
from hypothesis import strategies as some
from one_a_stage import SHIPPED

from gradebook.bugs import BUGS
from gradebook.cases.edits import set_cell
from gradebook.core import PROJECT
from gradebook.ui.parts.address import page_files

PAGE = "partial_groups"
LINK = {"v": "1", "s": PAGE, "open": "1"}


def draft_of(page):
    return page.app.session_state["drafts"][PAGE]


def at(page, query):
    page.app.query_params.clear()
    page.app.query_params.update(query)
    return page


def test_an_edit_is_written_in_place_and_a_reload_brings_it_back(visit):
    first = visit(PAGE, present="1").cell(0, reward="7")
    assert first.address["present"] == "1"
    page = visit(PAGE, **first.address)
    assert page.table["reward"][0] == "7" and page.board["edited"]


@given(some.lists(some.sampled_from(["edit", "undo", "redo", "old", "bare"])))
def test_no_address_changes_a_page_that_is_drawn(visit, acts):
    page = visit(PAGE)
    draft = draft_of(page)
    for number, act in enumerate(acts):
        if act == "edit":
            draft.do(set_cell, 0, "reward", str(number))
        elif act in ("undo", "redo"):
            getattr(draft, act)()
        else:
            at(page, {**LINK, "row": "3"} if act == "old" else {})
        before, step = draft.state, draft.history.at
        page.run()
        assert draft.state is before and draft.history.at == step
        assert draft.edited == ("t" in page.address)


def test_opening_a_link_adds_an_undo_step_and_going_back_does_not(visit):
    page = visit(PAGE).cell(0, reward="7")
    draft, seen = draft_of(page), page.address
    count = len(draft.history.states)
    for query, more in ((seen, 0), ({**LINK, "detector": "1"}, 1)):
        at(at(page, {}).go(""), query).go(PAGE)
        assert draft_of(page) is draft and len(draft.history.states) == count + more
    assert draft.state.settings.eos_by_width
    assert page.press("undo").table["reward"][0] == "7"


def test_what_a_link_says_wrong_is_named_until_an_edit(visit):
    page = visit(PAGE, **LINK, row="99")
    assert "could not be read" in page.text and "'99'" in page.text
    assert "could not be read" not in page.cell(0, reward="7").run().text


def test_every_page_has_its_place_in_the_order():
    """A page that somebody adds works without one, and comes last; of those that are
    shipped each is named."""
    order = [*tomllib.loads((PROJECT / "pages/order.toml").read_text("utf-8"))]
    assert [name for name in page_files() if name in order] == order
    tools = [name for name in page_files() if name not in BUGS]
    assert {*SHIPPED, *tools} <= {*order}
