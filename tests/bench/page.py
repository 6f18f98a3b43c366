"""How fast a page answers, in real Chromium, beside an empty Streamlit app.

    python tests/bench/page.py [edits] [case ...]     20 edits, every case
    cases: typed table cold join learners

Every time is printed as a multiple of the empty app's in the same run: the
number of milliseconds belongs to the machine, the ratio to Gradebook.
"""

from __future__ import annotations

import asyncio
import compileall
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "browser")]

from glide import Grid  # noqa: E402
from sessions import learners  # noqa: E402

DEBOUNCE = 150
"""Milliseconds that Streamlit's table waits before it sends an edit."""

EMPTY = """\
import streamlit as st
value = st.number_input("Value", value=1.0, key="value")
st.text(f"value is {value}")
"""

OPEN = "partial_groups?v=1&s=partial_groups&open=1"
SETTLED = (
    "[data-testid=stApp][data-test-script-state=notRunning]:not("
    ":has([data-stale=true]))"
)

CLOCK = """
(read) => {
  const now = Function('return (' + read + ')()');
  const before = now();
  window.gbDone = new Promise(done => {
    addEventListener('keydown', event => {
      if (event.key !== 'Enter') return;
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
"""Milliseconds from the next Enter to the end of the frame that shows another
value: the task with the highest priority comes when it is painted."""

TEXT = """() => {
  const at = document.querySelector('[data-testid=stText]');
  return at ? at.textContent : null;
}"""

PICTURE = """() => {
  const at = document.querySelector('.st-key-fresh .js-plotly-plot');
  if (!at || !at._fullData || !at.querySelector('.scatterlayer .point'))
    return null;
  if (getComputedStyle(at).visibility !== 'visible') return null;
  return JSON.stringify(at._fullData.map(d => Array.from(d.x || [])));
}"""


# Servers


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def served(script: Path) -> Iterator[str]:
    """A Streamlit server of the script; its address."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", script.name]
    options = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    with open(os.devnull, "w") as quiet:
        server = subprocess.Popen(
            command, cwd=script.parent, stdout=quiet, stderr=quiet
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def answers(address: str) -> None:
    """Waits for the server's health."""
    while True:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
            return
        except OSError:
            time.sleep(0.01)


@contextmanager
def empty_app() -> Iterator[Path]:
    """The script of an app with one input and one line of text."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty.py"
        script.write_text(EMPTY)
        yield script


def opened(browser: Browser, address: str, ready: str) -> Page:
    """A fresh browser context on the page, when `ready` shows."""
    page = browser.new_context(
        viewport={"width": 1280, "height": 800}
    ).new_page()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(ready, state="attached", timeout=60_000)
    page.wait_for_selector(SETTLED, state="attached", timeout=60_000)
    return page


# Edits


def timed(page: Page, read: str, edit: Callable[[], None]) -> float:
    """Milliseconds from the Enter of `edit` to the frame that shows it."""
    page.evaluate(CLOCK, read)
    edit()
    found = page.evaluate("window.gbDone")
    page.wait_for_selector(SETTLED, state="attached")
    return found


def typed_times(page: Page, field: str, read: str, edits: int) -> np.ndarray:
    """Milliseconds of edits typed into a text field."""
    box = page.locator(field).first
    found = []
    for turn in range(edits + 3):
        box.fill(f"{3 + turn / 8:g}")
        found.append(timed(page, read, lambda: box.press("Enter")))
        page.wait_for_timeout(120)
    return np.array(found[3:])


def table_times(page: Page, edits: int) -> np.ndarray:
    """Milliseconds of edits made in the table."""
    grid = Grid(page)
    found = []
    for turn in range(edits + 3):
        grid.select(10, "reward")
        page.keyboard.press("Enter")
        editor = page.get_by_test_id("portal").locator("input, textarea")
        editor.first.fill(f"{turn / 8 - 4:g}")
        found.append(timed(page, PICTURE, lambda: editor.first.press("Enter")))
        page.wait_for_timeout(250)
    return np.array(found[3:])


REWARD = '[class*="st-key-reward-partial_groups__at__"] input'
CHART = ".st-key-fresh .js-plotly-plot .scatterlayer .point"


def line(name: str, times: np.ndarray, ruler: float, aim: str) -> None:
    """Prints median and 95th percentile over the ruler."""
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{name:34}{p50 / ruler:6.2f} (p95 {p95 / ruler:5.2f}){aim:>28}"
        f"   [{p50:.0f} ms of {ruler:.0f}]",
        flush=True,
    )


def typed_and_table(browser: Browser, edits: int, cases: set[str]) -> None:
    """One learner's edits, beside the empty app's."""
    with empty_app() as script, served(script) as address:
        answers(address)
        page = opened(browser, address, "[data-testid=stText]")
        ruler = typed_times(page, "input[type=number]", TEXT, edits)
        page.context.close()
    floor = float(np.median(ruler))
    line("empty app: input to text", ruler, floor, "the ruler")
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, f"{address}/{OPEN}", CHART)
        if "typed" in cases:
            times = typed_times(page, REWARD, PICTURE, edits)
            line("typed edit to picture", times, floor, "aim 1.5")
        if "table" in cases:
            times = table_times(page, edits)
            line("table edit over its debounce", times, DEBOUNCE, "aim 1.7")
        page.context.close()


# Starts


WATCH = """
window.gbSeen = {};
const marks = {
  number: () => Array.from(
      document.querySelectorAll('[data-testid=stMain] p, pre, [data-testid=stText]'),
    ).some(at => /[+−][0-9]\\.[0-9]{3}|value is [0-9]/.test(at.textContent)),
  table: () => document.querySelector('[data-testid=stDataFrame] canvas'),
  picture: () => document.querySelector('.js-plotly-plot .point'),
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
"""When the frame was painted in which each first stood, by the wall clock.
Kept in the page: to ask it from outside takes up to a second while it is
busy."""


def first_seen(
    playwright, script: Path, path: str, last: str, warm: bool
) -> dict[str, float]:
    """Milliseconds to the first number, table and picture, up to `last`:
    from the start of the process, or when `warm` from the second learner's
    arrival at a running server. A fresh browser each time."""
    browser = launched(playwright)

    def visit(address: str) -> Page:
        page = browser.new_context(
            viewport={"width": 1280, "height": 800}
        ).new_page()
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


def starts(playwright, warm: bool, runs: int = 5) -> None:
    """Starts of both apps in turn. As on any start but the first, Gradebook
    is compiled to bytecode; so is Streamlit, from its installation on."""
    compileall.compile_dir(ROOT / "gradebook", quiet=1)
    app, found = ROOT / "app.py", []
    with empty_app() as script:
        for _ in range(runs):
            found.append(
                [
                    first_seen(playwright, script, "", "number", warm),
                    first_seen(playwright, app, OPEN, "picture", warm),
                    first_seen(playwright, app, "", "picture", warm),
                ]
            )
    empty, bug, home = zip(*found)
    name = "new learner" if warm else "cold start"
    aim = "aim 1.2" if warm else "aim 1.5"
    floor = float(np.median([seen["number"] for seen in empty]))

    def said(title: str, runs: tuple, mark: str, aim: str) -> None:
        line(title, np.array([seen[mark] for seen in runs]), floor, aim)

    said(f"empty app: {name}", empty, "number", "the ruler")
    said(f"{name}, a bug's page", bug, "number", aim)
    said("  its table", bug, "table", "")
    said("  its picture", bug, "picture", "")
    said(f"{name}, Home", home, "number", aim)
    said("  its first picture", home, "picture", "")


# Thirty learners


def crowd(browser: Browser, edits: int, others: int = 29) -> None:
    """A learner in Chromium alone, and beside others who edit every five
    seconds over real sessions."""
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, f"{address}/{OPEN}", CHART)
        alone = typed_times(page, REWARD, PICTURE, edits)
        stop = threading.Event()
        ready = threading.Event()
        told: dict[str, float] = {}

        def run() -> None:
            told.update(
                asyncio.run(learners(address, OPEN, others, stop, ready))
            )

        thread = threading.Thread(target=run)
        thread.start()
        ready.wait(120)
        beside = typed_times(page, REWARD, PICTURE, edits)
        stop.set()
        thread.join(60)
        page.context.close()
    floor = float(np.percentile(alone, 95))
    line("one learner", alone, floor, "the ruler: its p95")
    line(f"beside {others} others", beside, floor, "aim p95 1.3")
    print(
        f"  the others: {told['edits']:.0f} edits, p50"
        f" {told['p50']:.0f} ms, p95 {told['p95']:.0f} ms, errors"
        f" {told['errors']:.0f}"
    )


def launched(playwright) -> Browser:
    """Chromium without a screen."""
    path = os.environ.get("GRADEBOOK_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "google-chrome")))
    )
    return playwright.chromium.launch(
        executable_path=path,
        args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
    )


def main() -> None:
    every = ("typed", "table", "cold", "join", "learners")
    edits = int(next((a for a in sys.argv[1:] if a.isdecimal()), 20))
    cases = set(sys.argv[1:]) & set(every) or set(every)
    print("load", os.getloadavg(), "cores", os.cpu_count())
    print(f"{'':34}times the ruler")
    with sync_playwright() as playwright:
        browser = launched(playwright)
        if cases & {"typed", "table"}:
            typed_and_table(browser, edits, cases)
        if "learners" in cases:
            crowd(browser, edits)
        browser.close()
        for name in ("cold", "join"):
            if name in cases:
                starts(playwright, warm=name == "join")


if __name__ == "__main__":
    main()
