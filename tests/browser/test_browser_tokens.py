"""A board whose lines are tokens, under a mouse and keys, in Chromium."""

import re

import pytest
from playwright.sync_api import expect

KL, MEANS = ("zero_std_kl", "Zero-std KL"), ("micro_batch_means", "Micro-batch means")

PUSH = """([board, line]) => Number(board.querySelector(
  `.over circle.correct[data-line="${line}"]`).dataset.value)"""


def push(board, line):
    return board.page.evaluate(PUSH, [board.whole.element_handle(), line])


def line(board, number):
    return board.whole.locator(f".row[data-line='{number}']")


def test_a_tokens_number_is_dragged_typed_and_undone(read):
    board = read(*KL).board
    page = board.page
    handle = board.whole.locator(".handle[data-line='4']")
    cell = line(board, 4).locator("[data-column=logp]")
    expect(handle).to_have_attribute("aria-label", "Logp of row 2, token 0")
    before = push(board, 4)
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=6)
    page.mouse.up()
    # Nearer to the reference the KL pulls less; the neighbours keep their number.
    expect(board.button("Undo")).to_be_enabled()
    expect(cell).not_to_have_value("\u22121.386294")
    expect(line(board, 5).locator("[data-column=logp]")).to_have_value("\u22121.386294")
    page.wait_for_function(
        f"([board, line, old]) => ({PUSH})([board, line]) < old - 1e-4",
        arg=[board.whole.element_handle(), 4, before],
    )
    handle.press("Control+z")
    expect(cell).to_have_value("\u22121.386294")
    expect(board.button("Undo")).to_be_disabled()
    cell.click()
    cell.press("Control+a")
    page.keyboard.type("-0.693147")
    cell.press("Enter")
    # At the reference the KL pulls nothing: the push is the advantage.
    expect(line(board, 4).locator(".result").first).to_have_text("+0.707")
    expect(page.get_by_text("Token 1 of row 2 of your edited batch")).to_be_visible()
    # Enter has gone to the next line.
    expect(board.whole.locator(".path-title")).to_contain_text("Row 2, token 1")


def test_the_mask_is_painted_over_lines(read):
    board = read(*KL).board
    chips = board.whole.locator(".row .mask")
    boxes = [chips.nth(n).bounding_box() for n in (4, 5)]
    points = [(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2) for b in boxes]
    board.page.mouse.move(*points[0])
    board.page.mouse.down()
    board.page.mouse.move(*points[1], steps=4)
    board.page.mouse.up()
    masked = board.whole.locator(".row.masked")
    expect(masked).to_have_count(2)
    expect(masked.first.locator(".result").first).to_have_text("\u2013")
    board.button("Undo").click()
    expect(masked).to_have_count(0)


def test_a_line_of_equal_tokens_opens_when_it_is_selected(read):
    board = read(*MEANS).board
    folded = board.whole.get_by_role("button", name="row 2, token 0 to 7", exact=True)
    expect(board.rows).to_have_count(6)
    folded.click()
    expect(board.rows).to_have_count(13)
    expect(board.whole.locator(".path-title")).to_contain_text("Row 2, token 0")
    board.whole.get_by_role("button", name="row 2, token 7", exact=True).click()
    expect(board.whole.locator(".path-title")).to_contain_text("Row 2, token 7")
    # A chapter that is one mark opens too.
    board.whole.get_by_role("button", name=re.compile("9 stages")).click()
    expect(board.stage("baseline")).to_be_visible()


@pytest.mark.parametrize("case", [KL, MEANS])
@pytest.mark.parametrize("size", [(1280, 800), (1280, 640), (390, 844)])
def test_the_token_in_question_and_the_answer_are_in_view(read, elsewhere, case, size):
    width, height = size
    reader = read(*case, context=elsewhere(width, height), skip=False)
    board, page = reader.board, reader.page
    asked = board.whole.locator(".row.asked")
    before = asked.bounding_box()
    board.box.get_by_role("button", name="Skip").click()
    expect(board.box.locator(".figures")).to_be_visible()
    sheet = board.box.bounding_box()
    bottom = sheet["y"] if width < 640 else height
    after = asked.bounding_box()
    assert after == before
    assert after["y"] >= 0 and after["y"] + after["height"] <= bottom
    assert sheet["y"] >= 0 and sheet["y"] + 90 <= height
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(wide), "nothing scrolls sideways"
