"""A finished edit runs the page only if something outside the board changes."""

import pytest

from gradebook.ui.board.component import OPEN, taken
from gradebook.ui.parts.drafts import SKIPPED, Guess, Progress

PAGE, OF_TOKENS = "partial_groups", "frozen_kl"
BROUGHT = {"gradebook_board", "gradebook_shortcuts"}
"""The board brings its own data; the keys count runs."""


@pytest.fixture
def opened(visit):
    """A bug's page on which nothing is open."""

    def at(name, **state):
        page = visit(name, state)
        for menu in ("settings", "cases"):
            page.app.session_state[f"{menu}-{name}"] = False
        page.app.session_state["open-settings"] = False
        return page.run()

    return at


def answer(page, **edit):
    """What the server answers to an edit, without a run of the page."""
    data = page.board
    draft = OPEN[data["epoch"]]
    numbered = {"n": draft.channel.ack + 1, **edit}
    return taken(draft, {"epoch": data["epoch"], "edits": [numbered]})


def outside(page):
    """Everything that the page shows, apart from the board."""
    elements = [
        node.proto
        for node in page.app._tree
        if hasattr(node, "proto") and node.proto is not None
    ]
    return [
        str(proto)
        for proto in elements
        if getattr(proto, "component_name", "") not in BROUGHT
    ]


EDITS = {
    "cell": {"do": "cell", "row": 0, "column": "reward", "value": "0.25"},
    "select": {"do": "select", "row": 1},
    "unreadable": {"do": "cell", "row": 0, "column": "reward", "value": "much"},
    "add": {"do": "add", "row": 0},
    "undo": {"do": "undo"},
    "reset": {"do": "reset"},
}


@pytest.mark.parametrize("name", [PAGE, OF_TOKENS])
def test_a_run_after_an_edit_would_draw_what_is_drawn_already(opened, name):
    page = opened(name)
    before = outside(page)
    assert len(before) > 20
    for edit in EDITS.values():
        assert not answer(page, **edit)["behind"]
        assert outside(page.run()) == before


@pytest.mark.parametrize("open_it", ["stage", "home", "settings"])
def test_what_is_open_follows_each_edit(opened, open_it):
    page = opened(PAGE)
    if open_it == "stage":
        assert answer(page, do="stage", stage="baseline")["behind"]
        page.run()
    elif open_it == "home":
        page.end("home")
    else:
        page.app.session_state[f"settings-{PAGE}"] = True
        page.run()
    assert answer(page, **EDITS["cell"])["behind"]


def test_a_page_whose_stage_was_closed_is_run_once_more(opened):
    page = opened(PAGE)
    answer(page, do="stage", stage="baseline")
    page.run()
    assert answer(page, do="stage", stage="")["behind"]
    page.run()
    assert not answer(page, **EDITS["cell"])["behind"]


def test_a_solved_challenge_runs_the_page_once(opened):
    page = opened(PAGE, progress=Progress({PAGE: Guess(SKIPPED)}))
    assert "transfer" not in page.buttons
    solution = {"do": "cell", "row": 11, "column": "reward", "value": "0"}
    assert answer(page, **solution)["behind"]
    assert "transfer" in page.run().buttons
    assert not answer(page, **EDITS["select"])["behind"]


def test_the_answer_brings_the_selected_rows_formula_and_the_address(opened):
    page = opened(PAGE)
    shown = answer(page, do="select", row=1)
    assert "<h3>Row 1 in numbers</h3>" in shown["formula"]
    shown = answer(page, **EDITS["cell"])
    assert "<h3>Row 1 of your edited batch in numbers</h3>" in shown["formula"]
    own, others = shown["address"]
    assert "t=" in own and "row=1" in own and {*others} == {"room", "present"}
    assert answer(page, do="reset")["address"][0] == ""


def test_a_covered_page_gets_no_formula(opened):
    page = opened(PAGE, progress=Progress())
    shown = answer(page, **EDITS["cell"])
    assert shown["covered"] and "formula" not in shown and not shown["behind"]
