"""The answer comes, and box, board and path stand where they stood."""

import pytest
from one_a_stage import BY_STAGE
from playwright.sync_api import expect

SIZES = [(1280, 800), (1440, 900), (1920, 1080), (390, 844)]
PLACES = """(board) => Object.fromEntries(
  ["box", "frame", "path"].map((name) => {
    const { x, y, width, height } = board
      .querySelector(`.${name}`)
      .getBoundingClientRect();
    return [name, [x, y, width, height].map(Math.round)];
  }))"""
PAGES = {("partial_groups", SIZES[0]), ("double_normalization", SIZES[-1])}
LONG = {(bug, SIZES[0]) for bug in BY_STAGE.values()} - PAGES
LONG |= {("partial_groups", size) for size in SIZES} - PAGES


@pytest.mark.parametrize(
    "bug, size",
    [
        *sorted(PAGES),
        *(pytest.param(*one, marks=pytest.mark.long) for one in sorted(LONG)),
    ],
)
def test_the_answer_moves_nothing(chromium, server, bug, size):
    width, height = size
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(f"{server.url}/{bug}")
    board = page.locator(".board").first
    expect(page.locator(".show")).to_be_visible(timeout=60_000)
    before = board.evaluate(PLACES)
    page.locator(".choice").first.click()
    page.get_by_role("button", name="Show what it does").click()
    expect(page.locator(".figure").last).to_be_visible(timeout=60_000)
    expect(page.locator(".board[data-stage]")).to_have_count(0, timeout=60_000)
    expect(page.locator(".st-key-the-end")).to_be_visible(timeout=60_000)
    assert board.evaluate(PLACES) == before
    row = board.locator(".row.asked").bounding_box()
    assert row["y"] >= 0 and row["y"] + row["height"] <= height
    page.reload()
    expect(page.locator(".figure").last).to_be_visible(timeout=60_000)
    assert board.evaluate(PLACES) == before
    context.close()


def test_the_guess_covers_no_answer_on_a_phone(chromium, server):
    """The guess is beyond the axis, and −49.5 so near to it that "you" has no
    room on either side: it stands below."""
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{server.url}/no_eos_outliers")
    page.locator(".choice", has_text="100").click()
    page.get_by_role("button", name="Show what it does").click()
    words = page.locator(".board .guess .place")
    expect(words).to_have_text("you", timeout=60_000)
    expect(page.locator(".board[data-stage]")).to_have_count(0, timeout=60_000)
    box = words.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    marks = page.locator(".board .over :is(.correct, .faulty)[data-row='0']").all()
    assert len(marks) == 2
    for box in (mark.bounding_box() for mark in marks):
        across = box["x"] <= x <= box["x"] + box["width"]
        assert not (across and box["y"] <= y <= box["y"] + box["height"])
    context.close()
