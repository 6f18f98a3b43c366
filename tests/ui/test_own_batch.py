"""A batch that is not the case's own: opened from another page, or by a link."""

import pytest
from streamlit.testing.v1.element_tree import Block

from gradebook.cases.edits import set_cell
from gradebook.cases.link import encode
from gradebook.cases.scenario import load
from gradebook.cases.state import start
from gradebook.ui.board.lesson import answered, lesson, note_solved
from gradebook.ui.parts.address import from_elsewhere
from gradebook.ui.parts.drafts import SKIPPED, Guess, PageDraft, Progress

CASE = load("partial_groups")
EDITED = set_cell(start(CASE), 11, "reward", "3")
"""Row 10's block is now 0, 1, 2, 3: mean 1.5, deviation 1.291."""


def opened():
    draft = PageDraft(CASE)
    draft.become(from_elsewhere(EDITED, "These rows are step 4."))
    return draft


def of_the_report():
    return Progress({CASE.name: Guess(0, 1.0)})


def test_a_batch_from_elsewhere_speaks_of_itself_alone():
    shown = lesson(opened(), of_the_report())
    box = shown["box"]
    assert box["otherBatch"]["source"] == "These rows are step 4."
    # 0, 1, 2 in block and prompt: (0 - 1) / 1 and (0 - 1.5) / 1.291, and so on; row 11
    # has 0 and (3 - 1.5) / 1.291.
    assert box["otherBatch"]["sentence"].startswith("4 of 12 rows differ in advantage")
    assert (box["row"], shown["row"]) == (11, 11)  # 1.162 apart, more than others
    assert shown["challenge"] is None and "verdict" not in box
    assert box["guess"] is None and box["place"] is None
    assert "ghosts" not in shown["panels"][0] and shown["handles"]["before"] == []


def test_what_is_edited_further_has_ghosts_of_the_batch_as_it_came():
    draft = opened()
    draft.take({"do": "cell", "row": 11, "column": "reward", "value": "7"})
    shown = lesson(draft, of_the_report())
    assert shown["handles"]["before"][11] == 3
    assert shown["panels"][0]["ghosts"][1][11] == pytest.approx(1.162, abs=1e-3)
    draft.reset()
    assert (
        "verdict" in lesson(draft, of_the_report())["box"] and not draft.has_other_batch
    )


def test_undo_goes_back_to_the_case():
    draft = opened()
    draft.undo()
    assert not draft.has_other_batch and not draft.edited
    draft.redo()
    assert draft.has_other_batch


def test_a_covered_link_asks_about_the_numbers_on_the_board():
    draft = opened()
    box = lesson(draft, Progress())["box"]
    assert box["question"].startswith("In this batch row 11 gets 0.000")
    assert [choice["place"] for choice in box["choices"]][1] == 0
    assert answered(draft, False, 2, 0.7) == (SKIPPED, None)
    box = lesson(draft, of_the_report())["box"]
    assert (
        box["otherBatch"]["right"] and box["otherBatch"]["choice"] == "A larger number"
    )
    # If the room votes, the question is the case's.
    voted = lesson(draft, Progress(), votes=True)["box"]
    assert voted["question"] == CASE.prediction.question
    assert answered(draft, True, 1, None) == (1, None)


def test_a_link_with_edits_opens_as_a_batch_from_elsewhere(visit):
    page = visit(CASE.name, **encode(EDITED, covered=False))
    assert page.board["source"] == "This batch came with a link."
    assert "otherBatch" in page.board["box"] and "What happened" not in page.text
    assert "both engines agree exactly" not in page.text
    assert cases(page) == "Case: another batch"
    page.press("reset")
    assert page.board["source"] == "" and "both engines agree exactly" in page.text
    assert cases(page) == "Case: The report"


def cases(page):
    """What the menu of cases is called."""
    blocks = [page.app.main]
    while blocks:
        block = blocks.pop()
        blocks += [
            child for child in block.children.values() if isinstance(child, Block)
        ]
        if block.type == "popover" and block.proto.popover.label.startswith("Case"):
            return block.proto.popover.label
    return ""


def test_the_question_follows_its_row():
    draft, progress = PageDraft(CASE), of_the_report()
    draft.take({"do": "move", "row": 10, "to": 0})
    assert lesson(draft, progress)["box"]["row"] == 0
    draft.take({"do": "remove", "row": 0})
    assert lesson(draft, progress)["box"]["row"] == -1


def test_a_challenge_is_judged_when_the_value_is_committed():
    """Row 10 is positive in the faulty engine once row 11's reward is at most 4."""
    draft, progress = PageDraft(CASE), of_the_report()

    def typed(value, **more):
        cell = {"do": "cell", "row": 11, "column": "reward", "value": value}
        draft.take({**cell, "gesture": 1, **more})
        note_solved(draft, progress)
        return lesson(draft, progress)["challenge"]

    note_solved(draft, progress)
    assert not typed("1")["solved"] and not progress.solved.get(CASE.name)
    assert not typed("100", commit=True)["solved"]
    assert not typed("1")["solved"]
    assert typed("1", commit=True)["solved"]
    assert progress.solved[CASE.name] == {0}
    assert not typed("", commit=True)["solved"]  # an emptied cell is no value
    assert lesson(draft, progress)["challenge"]["done"] == [True, False, False, False]


def test_numbers_that_are_too_large_are_named():
    draft = PageDraft(CASE)
    draft.take({"do": "cell", "row": 11, "column": "reward", "value": "1e300"})
    said = lesson(draft, of_the_report())["overflow"]
    assert said == (
        "Too large for a number (above 1.8e308): scale of rows 8, 9, 10 and 11"
        " in the faulty engine."
    )
    assert lesson(draft, Progress())["overflow"] == ""
