"""Frames of a drag on Home, which holds every setting and asks for nothing."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Page
from served import ROOT, answers, line, opened, served

COUNT = """() => {
  window.gbTimes = [];
  window.gbCounts = true;
  const count = (time) => {
    gbTimes.push(time);
    if (gbCounts) requestAnimationFrame(count);
  };
  requestAnimationFrame(count);
}"""
SENT = """() => {
  window.gbSent = 0;
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...data) {
    gbSent += 1;
    return send.apply(this, data);
  };
}"""
"""Counts what goes to the server from now on."""
HANDLE = '.home .handle[data-row="3"]'
REST = 2000
"""Milliseconds of the page at rest, with which a drag is compared."""


def home_drag(browser, turns: int) -> None:
    """Drags Home's reward down and up. Prints the time between frames over that of the
    page at rest, and what the page asked the server for meanwhile."""
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, address, HANDLE)
        page.evaluate(SENT)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.evaluate(COUNT)
        page.wait_for_timeout(REST)
        rest = gaps(page)
        dragged = [drag(page) for _ in range(turns)]
        ruler = float(np.median(rest))
        line("Home at rest: a frame", rest, ruler, "the ruler")
        line("Home: a frame of a drag", np.concatenate(dragged), ruler, "aim 1.2")
        second = 1000 / np.mean(np.concatenate(dragged))
        sent = len(asked) + page.evaluate("gbSent")
        print(f"{second:.0f} frames a second; {sent} requests", flush=True)
        page.context.close()


def drag(page: Page) -> np.ndarray:
    """Milliseconds between the frames of one drag, two pixels a move."""
    box = page.locator(HANDLE).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT)
    for step in range(60):
        page.mouse.move(x + 2 * abs(step - 30) - 60, y)
    found = gaps(page)
    page.mouse.up()
    return found


def gaps(page: Page) -> np.ndarray:
    """Stops counting; milliseconds between the frames that were counted."""
    return np.diff(page.evaluate("() => { gbCounts = false; return gbTimes; }"))
