"""How fast a page answers, in real Chromium, beside an empty Streamlit app.

    python tests/bench/page.py [turns] [case ...]     20 turns, every case
    cases: edits cold join crowd drags hundred cost

Every time is printed as a multiple of the empty app's in the same run: the
number of milliseconds belongs to the machine, the ratio to Gradebook.

edits    one learner on a whole page: a keystroke, a drag, a flag, a chip
cold     a started server's first page; join: a new learner's page
crowd    30 learners who type every two seconds, beside one
drags    30 learners who drag at once
hundred  100 learners who type every five seconds
cost     what an edit costs the server, by part: bytes and CPU
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
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright
from websockets.asyncio.client import connect

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "browser"), str(ROOT)]

from board import Board  # noqa: E402
from sessions import Learner, learners  # noqa: E402

from gradebook.cases.link import encode, query_string  # noqa: E402
from gradebook.cases.scenario import load  # noqa: E402
from gradebook.cases.state import start  # noqa: E402
from gradebook.cases.table import Table  # noqa: E402

EMPTY = """\
import streamlit as st
value = st.number_input("Value", value=1.0, key="value")
st.text(f"value is {value}")
"""

OPEN = "partial_groups?v=1&s=partial_groups&open=1"
FLAGS = "no_eos_outliers?v=1&s=no_eos_outliers&open=1"
SETTLED = (
    "[data-testid=stApp][data-test-script-state=notRunning]:not("
    ":has([data-stale=true]))"
)

BOARD = ".board .over .faulty[data-row]"

DEEP = """
window.gbFind = (selector) => {
  const roots = [document];
  for (const at of document.querySelectorAll('*'))
    if (at.shadowRoot) roots.push(at.shadowRoot);
  for (const root of roots) {
    const found = root.querySelector(selector);
    if (found) return found;
  }
  return null;
};
window.gbMarks = () => {
  gbBoard = window.gbBoard?.isConnected ? gbBoard : gbFind('.board');
  if (!gbBoard) return null;
  return [...gbBoard.querySelectorAll('.over [data-row]')]
    .map((mark) => mark.dataset.value).join();
};
window.gbText = () =>
  document.querySelector('[data-testid=stText]')?.textContent ?? null;
"""
"""What the page shows: the board's marks, or the empty app's text."""

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
() => {
  const found = window.gbStroll = { answers: 0, frames: 0, moves: 0 };
  let before = gbMarks(), hand = null;
  const until = performance.now() + 3000;
  const look = () => {
    found.frames += 1;
    const value = gbMarks();
    if (value !== before) found.answers += 1;
    before = value;
    const at = gbBoard.querySelector('.handle[aria-grabbed], .handle.held')
      ?? gbBoard.querySelector('.handle:active');
    if (performance.now() < until) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
"""
"""Counts frames and drawn answers for three seconds."""


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
    page.add_init_script(DEEP)
    page.goto(address, wait_until="commit")
    page.wait_for_selector(ready, state="attached", timeout=60_000)
    page.wait_for_selector(SETTLED, state="attached", timeout=60_000)
    return page


# One learner's edits


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
        found.append(
            timed(page, "gbMarks", "input", lambda: page.keyboard.type(key))
        )
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
            timed(
                page, "gbMarks", "pointermove", lambda: page.mouse.move(to, y)
            )
        )
    page.mouse.up()
    return np.array(found[3:])


def stroll(page: Page, row: int) -> tuple[float, float]:
    """Answers drawn and frames a second while a handle is dragged."""
    board = Board(page)
    board.handle(row).scroll_into_view_if_needed()
    x, y = board.centre(row)
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(STROLL)
    until, turn = time.monotonic() + 3, 0
    while time.monotonic() < until:
        turn += 1
        page.mouse.move(x - 40 + 40 * np.cos(turn / 15), y)
    page.mouse.up()
    found = page.evaluate("gbStroll")
    return found["answers"] / 3, found["frames"] / 3


def flags(page: Page, turns: int) -> np.ndarray:
    """A click on a flag or a chip: from the click to the marks."""
    box = (
        Board(page)
        .whole.locator("input[type=checkbox], .mask .chip, .mask rect")
        .first
    )
    box.scroll_into_view_if_needed()
    found = [
        timed(page, "gbMarks", "pointerdown", box.click)
        for _ in range(turns + 3)
    ]
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


def line(name: str, times: np.ndarray, ruler: float, aim: str) -> None:
    """Prints median and 95th percentile over the ruler."""
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{name:34}{p50 / ruler:6.2f} (p95 {p95 / ruler:5.2f}){aim:>28}"
        f"   [{p50:.0f} ms of {ruler:.0f}]",
        flush=True,
    )


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


# Starts


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


# Many learners


def crowd(browser: Browser, turns: int, others: int = 29) -> None:
    """A learner in Chromium alone, and beside others who type every two
    seconds over real sessions."""
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, f"{address}/{OPEN}", BOARD)
        alone = keystrokes(page, turns)
        with beside(address, others, think=2) as told:
            crowded = keystrokes(page, turns)
        page.context.close()
    floor = float(np.percentile(alone, 95))
    line("one learner", alone, floor, "the ruler: its p95")
    line(f"beside {others} others", crowded, floor, "aim p95 1.5")
    _others(told)


def drags(browser: Browser, turns: int, others: int = 29) -> None:
    """A learner who types in Chromium, beside others who drag."""
    with served(ROOT / "app.py") as address:
        answers(address)
        page = opened(browser, f"{address}/{OPEN}", BOARD)
        with beside(address, others, think=0, drag=True) as told:
            times = keystrokes(page, turns)
        page.context.close()
    line(f"typing beside {others} who drag", times, 1000, "aim p95 1.0 s")
    print(
        f"  each who drags gets {told['edits'] / told['seconds'] / others:.1f} answers a second (aim 1)"
    )
    _others(told)


def hundred() -> None:
    """100 learners without a browser, who type every five seconds."""
    with served(ROOT / "app.py") as address:
        answers(address)
        with beside(address, 100, think=5) as told:
            time.sleep(30)
    line(
        "100 learners",
        np.array([told["p50"], told["p95"]]),
        1000,
        "aim p95 1 s",
    )
    _others(told)


@contextmanager
def beside(
    address: str, count: int, think: float, drag: bool = False
) -> Iterator[dict[str, float]]:
    """Learners over websockets, meanwhile; what became of them, afterwards."""
    stop, ready = threading.Event(), threading.Event()
    told: dict[str, float] = {}

    def run() -> None:
        told.update(
            asyncio.run(
                learners(address, OPEN, count, stop, ready, think, drag)
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(300)
    try:
        yield told
    finally:
        stop.set()
        thread.join(120)


def _others(told: dict[str, float]) -> None:
    print(
        f"  the others: {told['edits']:.0f} edits, p50"
        f" {told['p50']:.0f} ms, p95 {told['p95']:.0f} ms, errors"
        f" {told['errors']:.0f} {told['error']}"
    )


def cost(turns: int = 40) -> None:
    """What one edit costs: bytes received, and the server's CPU."""

    async def edits(address: str, process: int) -> tuple[float, float]:
        async with connect(
            address.replace("http", "ws") + "/_stcore/stream",
            subprotocols=["streamlit"],
            max_size=2**26,
        ) as socket:
            learner = Learner(socket, OPEN)
            await learner.open()
            await learner.edit(0, "1")
            before, sent = cpu_seconds(process), 0
            for turn in range(turns):
                await learner.edit(0, str(turn % 7), final=final)
                sent += learner.bytes
            spent = cpu_seconds(process) - before
            return sent / turns, 1000 * spent / turns

    with served(ROOT / "app.py") as address:
        answers(address)
        for final in (False, True):
            name = "with all that follows" if final else "the board alone"
            sent, spent = asyncio.run(edits(address, server_of(address)))
            print(f"  an edit, {name}: {sent:.0f} bytes, {spent:.0f} ms CPU")


def server_of(address: str) -> int:
    """The process that listens at the address."""
    wanted = f"--server.port={urlsplit(address).port}".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                return int(path.parent.name)
    raise LookupError(address)


def cpu_seconds(process: int) -> float:
    """Seconds of CPU that the process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


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
    every = ("edits", "cold", "join", "crowd", "drags", "hundred", "cost")
    turns = int(next((a for a in sys.argv[1:] if a.isdecimal()), 20))
    cases = set(sys.argv[1:]) & set(every) or set(every)
    print("load", os.getloadavg(), "cores", os.cpu_count())
    print(f"{'':34}times the ruler")
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for name, run in (
            ("edits", one_learner),
            ("crowd", crowd),
            ("drags", drags),
        ):
            if name in cases:
                run(browser, turns)
        browser.close()
        for name in ("cold", "join"):
            if name in cases:
                starts(playwright, warm=name == "join")
    if "hundred" in cases:
        hundred()
    if "cost" in cases:
        cost()


if __name__ == "__main__":
    main()
