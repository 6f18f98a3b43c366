"""The two games in a real browser: keys, the board, and their links."""

import re

import pytest
from playwright.sync_api import expect


def test_reports_are_judged_by_keys_and_typing_is_no_answer(read):
    game = read("bug_or_not?v=1&seed=FIRST&round=13", "Bug or not?")
    page = game.page
    game.keyed("quiz-again").get_by_role("button").click()
    heading = page.get_by_text("Report 1 of 12")
    expect(heading).to_be_visible()
    game.board.type(0, "nb", column="prompt")
    game.settled()
    expect(page.get_by_text("Is that a bug?")).to_be_visible()
    page.get_by_role("heading", level=1).click()  # out of the text field
    page.keyboard.press("n")
    expect(game.keyed("verdict")).to_contain_text("You said not a bug")
    # Any report may come first: a false alarm has its numbers, a bug its stage.
    alarm = "Not a bug:" in game.keyed("verdict").inner_text()
    told = "The numbers that settle it" if alarm else "The first stage that differs"
    expect(page.get_by_text(told)).to_be_visible()
    game.settled()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Report 2 of 12")).to_be_visible()
    game.settled()
    page.keyboard.press("b")
    expect(game.keyed("verdict")).to_contain_text("You said a bug")
    expect(page).to_have_url(re.compile("v=1&seed=[A-Z0-9]+$"))


@pytest.mark.long
def test_a_mystery_is_edited_by_hand_and_named(read):
    """seed7 hides no bug."""
    game = read("mystery?v=1&seed=seed7", "Mystery trainer")
    page, board = game.page, game.board
    board.shows(correct={4: 1.5, 5: -0.5})
    expect(board.whole).to_have_class(re.compile("unnamed"))
    board.type(5, "1")
    board.shows(correct={4: 0.866, 5: 0.866, 6: -0.866})
    expect(page.get_by_text("1 edit so far.")).to_be_visible()
    game.settled()
    board.drag(0, -40)
    expect(board.cell(0)).not_to_have_value("1")
    expect(page.get_by_text("2 edits so far.")).to_be_visible()
    expect(page).to_have_url(re.compile("seed=seed7$"))
    board.button("Undo").click()
    board.shows(correct={0: 0.866, 5: 0.866})
    board.button("Undo").click()
    board.shows(correct={0: 0.866, 5: -0.5})
    stage = game.page.get_by_text("no stage")
    stage.click()
    game.page.get_by_text("No bug: the trainer is correct").click()
    game.keyed("mystery-name").get_by_role("button").click()
    said = "You named it in 2 edits. The trainer has no bug."
    expect(game.keyed("verdict")).to_contain_text(said)
    game.settled()
    game.board.drag(0, -40)
    expect(game.board.cell(0)).not_to_have_value("1")
    game.page.get_by_role("heading", level=1).click()
    game.page.keyboard.press("Control+z")
    expect(game.board.cell(0)).to_have_value("1")
