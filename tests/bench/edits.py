"""One learner's edits on a whole page, in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from board import Board
from playwright.sync_api import Browser, Page
from served import (
    BOARD,
    OPEN,
    ROOT,
    SETTLED,
    answers,
    empty_app,
    line,
    opened,
    served,
)

from gradebook.cases.link import encode, query_string
from gradebook.cases.scenario import load
from gradebook.cases.state import start
from gradebook.cases.table import Table

FLAGS = "no_eos_outliers?v=1&s=no_eos_outliers&open=1"
CLOCK = """
([read, kind]) => {
  const now = window[read];
  const before = now();
  window.gbDone = new Promise((done) => {
    addEventListener(kind, () => {
      const start = performance.now();
      const look = () => {
        const value = now();
        if (value === null || value === before)
          return requestAnimationFrame(look);
        scheduler.postTask(() => done(performance.now() - start),
                           {priority: 'user-blocking'});
      };
      requestAnimationFrame(look);
    }, {capture: true, once: true});
  });
}
"""
"""Milliseconds from the next event of a kind to the end of the frame that
shows another value: the task of the highest priority comes when the frame is
painted."""

STROLL = """
([row, seconds]) => new Promise((done) => {
  const handle = gbBoard.querySelectorAll('.handle')[row];
  const box = handle.getBoundingClientRect();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const found = { answers: 0, frames: 0 };
  let before = gbMarks();
  const until = performance.now() + 1000 * seconds;
  const look = () => {
    found.frames += 1;
    const value = gbMarks();
    if (value !== before) found.answers += 1;
    before = value;
    handle.dispatchEvent(new PointerEvent('pointermove', {
      clientX: x - 40 + 40 * Math.cos(found.frames / 15), clientY: y,
      bubbles: true, composed: true, pointerId: 1,
    }));
    if (performance.now() < until) requestAnimationFrame(look);
    else done(found);
  };
  requestAnimationFrame(look);
})
"""
"""Moves a held handle once a frame, as a hand does, and counts frames and
drawn answers. Playwright's own mouse makes 16 moves a second here, since it
waits for the page after each."""


def timed(page: Page, read: str, kind: str, act: Callable[[], None]) -> float:
    """Milliseconds from an event to the painted frame that shows it."""
    page.evaluate(CLOCK, [read, kind])
    act()
    found = page.evaluate("window.gbDone")
    page.wait_for_selector(SETTLED, state="attached")
    page.wait_for_timeout(150)
    return found


def keystrokes(page: Page, turns: int) -> np.ndarray:
    """One key into a reward cell: from its input to the marks."""
    cell = Board(page).cell(11)
    found = []
    for turn in range(turns + 3):
        cell.click()
        cell.press("Control+a")
        key = str(1 + turn % 9)
        found.append(timed(page, "gbMarks", "input", lambda: page.keyboard.type(key)))
    return np.array(found[3:])


def drag_messages(page: Page, turns: int, row: int) -> np.ndarray:
    """One move of a held handle: from the pointer to the marks."""
    board = Board(page)
    board.handle(row).scroll_into_view_if_needed()
    x, y = board.centre(row)
    page.mouse.move(x, y)
    page.mouse.down()
    found = []
    for turn in range(turns + 3):
        to = x - 10 - 9 * (turn % 2) - turn / 2
        found.append(
            timed(page, "gbMarks", "pointermove", lambda: page.mouse.move(to, y))
        )
    page.mouse.up()
    return np.array(found[3:])


def stroll(page: Page, row: int, seconds: float = 3) -> tuple[float, float]:
    """Answers drawn and frames a second while a handle is dragged."""
    board = Board(page)
    board.handle(row).scroll_into_view_if_needed()
    page.mouse.move(*board.centre(row))
    page.mouse.down()
    found = page.evaluate(STROLL, [row, seconds])
    page.mouse.up()
    return found["answers"] / seconds, found["frames"] / seconds


def flags(page: Page, turns: int) -> np.ndarray:
    """A click on a flag or a chip: from the click to the marks."""
    box = (
        Board(page).whole.locator("input[type=checkbox], .mask .chip, .mask rect").first
    )
    box.scroll_into_view_if_needed()
    found = [timed(page, "gbMarks", "pointerdown", box.click) for _ in range(turns + 3)]
    return np.array(found[3:])


def large() -> str:
    """The address of a batch of 32 rows with 16 tokens each."""
    origin = start(load("rejected_rows"))
    rows = [
        {
            "prompt": "ABCDEFGH"[r // 4],
            "reward": (r * 7 % 11) / 10,
            "mask": [int(t < 16 - r % 5) for t in range(16)],
        }
        for r in range(32)
    ]
    state = replace(origin, table=Table.of(rows))
    return f"rejected_rows?{query_string(encode(state, covered=False))}"


def one_learner(browser: Browser, turns: int) -> None:
    """One learner's edits on whole pages, beside the empty app's."""
    with empty_app() as script, served(script) as address:
        answers(address)
        page = opened(browser, address, "[data-testid=stText]")
        box = page.locator("input[type=number]").first
        ruler = []
        for turn in range(turns + 3):
            box.fill(f"{3 + turn / 8:g}")
            press = partial(box.press, "Enter")
            ruler.append(timed(page, "gbText", "keydown", press))
        page.context.close()
    floor = float(np.median(ruler[3:]))
    line("empty app: input to text", np.array(ruler[3:]), floor, "the ruler")
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, f"{address}/{OPEN}", BOARD)
        line("keystroke, 12 rows", keystrokes(page, turns), floor, "aim 0.8")
        line("drag, 12 rows", drag_messages(page, turns, 11), floor, "aim 0.8")
        drawn, frames = stroll(page, 11)
        print(
            f"  a drag draws {drawn:.0f} answers (aim 15) and {frames:.0f}"
            " frames (aim 50) a second"
        )
        page.context.close()
        page = opened(browser, f"{address}/{FLAGS}", BOARD)
        line("a flag or a chip", flags(page, turns), floor, "aim 0.8")
        page.context.close()
        page = opened(browser, f"{address}/{large()}", BOARD)
        times = drag_messages(page, turns, 5)
        line("drag, 32 rows of 16 tokens", times, floor, "aim 1.0")
        page.context.close()
