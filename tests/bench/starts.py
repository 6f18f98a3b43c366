"""Cold starts, and a new learner's first page."""

from __future__ import annotations

import compileall
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page
from served import (
    DEEP,
    ROOT,
    SETTLED,
    answers,
    empty_app,
    launched,
    line,
    served,
)

WATCH = (
    DEEP
    + """
window.gbSeen = {};
const marks = {
  text: () => gbText(),
  board: () => gbFind('.board .over .correct[data-row]'),
  home: () => gbFind('.home circle.correct'),
  matter: () => gbFind('[class*=st-key-predict-training] button'),
};
const look = () => {
  for (const [name, there] of Object.entries(marks))
    if (!(name in gbSeen) && there())
      scheduler.postTask(
        () => gbSeen[name] ??= performance.timeOrigin + performance.now(),
        {priority: 'user-blocking'});
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
)
"""When each was first painted, by the wall clock.
Kept in the page: to ask it from outside takes up to a second while it is
busy."""


def first_seen(
    playwright, script: Path, path: str, last: str, warm: bool
) -> dict[str, float]:
    """Milliseconds to the first text, the board, Home's frame or the question of "Does
    it matter?", up to `last`:
    from the start of the process, or when `warm` from the second learner's
    arrival at a running server. A fresh browser each time."""
    browser = launched(playwright)

    def visit(address: str) -> Page:
        size = {"width": 1280, "height": 800}
        # The app forbids eval, which Playwright waits with.
        page = browser.new_context(viewport=size, bypass_csp=True).new_page()
        page.add_init_script(WATCH)
        page.goto(f"{address}/{path}", wait_until="commit")
        page.wait_for_function(f"gbSeen.{last}", timeout=60_000)
        return page

    try:
        start = time.time()
        with served(script) as address:
            answers(address)
            if warm:
                visit(address).wait_for_selector(SETTLED, state="attached")
                browser.close()
                browser = launched(playwright)
                start = time.time()
            seen = visit(address).evaluate("gbSeen")
            return {name: at - start * 1000 for name, at in seen.items()}
    finally:
        browser.close()


def starts(playwright, warm: bool, runs: int = 4) -> None:
    """Starts of both apps in turn. As on any start but the first, Gradebook
    is compiled to bytecode; so is Streamlit, from its installation on."""
    compileall.compile_dir(ROOT / "gradebook", quiet=1)
    app, found = ROOT / "app.py", []
    with empty_app() as script:
        for _ in range(runs):
            found.append(
                [
                    first_seen(playwright, script, "", "text", warm),
                    first_seen(playwright, app, "partial_groups", "board", warm),
                    first_seen(playwright, app, "", "home", warm),
                    first_seen(playwright, app, "consequences", "matter", warm),
                ]
            )
    empty, bug, home, matter = zip(*found)
    name = "new learner" if warm else "cold start"
    floor = float(np.median([seen["text"] for seen in empty]))

    def said(title: str, runs: tuple, mark: str, aim: str) -> None:
        line(title, np.array([seen[mark] for seen in runs]), floor, aim)

    aim = "aim 1.3" if warm else "aim 2.0"
    said(f"empty app: {name}", empty, "text", "the ruler")
    said(f"{name}, a bug's page", bug, "board", aim)
    said(f"{name}, Home", home, "home", aim)
    said(f"{name}, Does it matter?", matter, "matter", aim)
