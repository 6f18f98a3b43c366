"""Cold starts, and a new learner's first page."""

from __future__ import annotations

import compileall
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page
from served import (
    DEEP,
    OPEN,
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
  number: () => Array.from(
      document.querySelectorAll('[data-testid=stMain] p, pre, [data-testid=stText]'),
    ).some(at => /[+−][0-9]\\.[0-9]{3}|value is [0-9]/.test(at.textContent)),
  board: () => gbFind('.board .over .correct[data-row]'),
  plot: () => document.querySelector('.js-plotly-plot .point'),
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
"""When the frame was painted in which each first stood, by the wall clock.
Kept in the page: to ask it from outside takes up to a second while it is
busy."""


def first_seen(
    playwright, script: Path, path: str, last: str, warm: bool
) -> dict[str, float]:
    """Milliseconds to the first number, board and plot, up to `last`:
    from the start of the process, or when `warm` from the second learner's
    arrival at a running server. A fresh browser each time."""
    browser = launched(playwright)

    def visit(address: str) -> Page:
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
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
                    first_seen(playwright, script, "", "number", warm),
                    first_seen(playwright, app, OPEN, "plot", warm),
                    first_seen(playwright, app, "", "board", warm),
                ]
            )
    empty, bug, home = zip(*found)
    name = "new learner" if warm else "cold start"
    floor = float(np.median([seen["number"] for seen in empty]))

    def said(title: str, runs: tuple, mark: str, aim: str) -> None:
        line(title, np.array([seen[mark] for seen in runs]), floor, aim)

    first = ("", "") if warm else ("aim 1.45", "aim 1.55")
    said(f"empty app: {name}", empty, "number", "the ruler")
    said(f"{name}, a bug's page", bug, "number", first[0])
    said("  its board", bug, "board", "aim 1.8")
    said("  its plot of a stage", bug, "plot", "")
    said(f"{name}, Home", home, "number", first[1])
    said("  its board", home, "board", "aim 1.8")
