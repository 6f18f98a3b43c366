"""The answer comes, and box, board and path stay in place; the page that
it opens is short."""

import pytest
from playwright.sync_api import expect

import gradebook

SIZES = [(1280, 800), (1440, 900), (1920, 1080), (390, 844)]
PLACES = """(board) => Object.fromEntries(
  ["box", "frame", "path"].map((name) => {
    const { x, y, width, height } = board
      .querySelector(`.${name}`)
      .getBoundingClientRect();
    return [name, [x, y, width, height].map(Math.round)];
  }))"""
HEIGHT = "document.querySelector('.stMain').scrollHeight"
# What is in sight and takes a press or a key, outside the board's rows and
# Streamlit's header.
CONTROLS = """() => {
  const found = [];
  const within = (root) => root.querySelectorAll("*").forEach((e) => {
    if (e.shadowRoot) within(e.shadowRoot);
    const acts = "button, a[href], input, select, textarea, summary, [role=slider]";
    if (e.matches(acts) && e.checkVisibility({ visibilityProperty: true })
        && !e.closest(".rows, [data-testid=stHeader], [data-testid=stSidebar]"))
      found.push(e.innerText || e.getAttribute("aria-label") || e.className);
  });
  within(document);
  return found;
}"""
SHORT = {("double_normalization", SIZES[-1])}
# Larger windows differ by the board alone: one board of rows, two of tokens.
LARGE = ("double_normalization", "blind_kl", "tool_wall")
MOST = 2000
"""Pixels of an answered page with all parts folded. The longest is that of Zero-std KL,
with its board of tokens and its second question (1,924)."""


@pytest.fixture
def page(elsewhere, server, bug, size):
    """A bug's page in a window of this size, not answered yet."""
    page = elsewhere(*size, reduced_motion="no-preference").new_page()
    page.goto(f"{server.url}/{bug}")
    expect(page.locator(".show")).to_be_visible(timeout=60_000)
    return page


def answer(page, choice):
    choice.click()
    page.get_by_role("button", name="Show what it does").click()
    expect(page.locator(".figure").last).to_be_visible(timeout=60_000)
    expect(page.locator(".board[data-stage]")).to_have_count(0, timeout=60_000)
    expect(page.locator(".st-key-the-end")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(
    "bug, size",
    [
        pytest.param(bug, size, marks=() if (bug, size) in SHORT else pytest.mark.long)
        for bug in gradebook.BUGS
        for size in SIZES
        if bug in LARGE or size in (SIZES[0], SIZES[-1])
    ],
)
def test_the_answer_moves_nothing_and_its_page_is_short(page, size):
    board = page.locator(".board").first
    before = board.evaluate(PLACES)
    answer(page, page.locator(".choice").first)
    assert board.evaluate(PLACES) == before
    row = board.locator(".row.asked").bounding_box()
    assert row["y"] >= 0 and row["y"] + row["height"] <= size[1]
    expect(page.locator(".gb-listing")).to_have_count(2)
    expect(page.locator(".gb-formula").first).to_be_visible()
    if size == SIZES[0]:
        assert page.evaluate(HEIGHT) <= MOST
        controls = page.evaluate(CONTROLS)
        assert len(controls) <= 40, controls
    page.reload()
    expect(page.locator(".figure").last).to_be_visible(timeout=60_000)
    assert board.evaluate(PLACES) == before


@pytest.mark.parametrize("bug, size", [("no_eos_outliers", (390, 844))])
def test_the_guess_covers_no_answer_on_a_phone(page):
    answer(page, page.locator(".choice", has_text="100"))
    words = page.locator(".board .guess .place")
    expect(words).to_have_text("you", timeout=60_000)
    box = words.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    marks = page.locator(".board .over :is(.correct, .faulty)[data-row='0']").all()
    assert len(marks) == 2
    for box in (mark.bounding_box() for mark in marks):
        across = box["x"] <= x <= box["x"] + box["width"]
        assert not (across and box["y"] <= y <= box["y"] + box["height"])
