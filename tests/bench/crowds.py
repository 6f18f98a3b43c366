"""Many learners at once, what one edit costs, and what a learner leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import numpy as np
from edits import keystrokes
from playwright.sync_api import Browser
from served import (
    BOARD,
    OPEN,
    ROOT,
    answers,
    cpu_seconds,
    line,
    opened,
    served,
    server_of,
)
from sessions import Learner, learners
from websockets.asyncio.client import connect


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
            asyncio.run(learners(address, OPEN, count, stop, ready, think, drag))
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
    """What one edit costs, by part: bytes received, and the server's CPU."""

    async def edits(address: str, process: int) -> None:
        async with session(address) as learner:
            await learner.open()
            await learner.edit(0, "1")
            for final in (False, True):
                name = "with all that follows" if final else "the board alone"
                before, sent = cpu_seconds(process), Counter()
                for turn in range(turns):
                    await learner.edit(0, str(turn % 7), final=final)
                    sent += learner.bytes
                spent = 1000 * (cpu_seconds(process) - before) / turns
                each = {part: size // turns for part, size in sent.items()}
                print(
                    f"  an edit, {name}: {spent:.0f} ms CPU,"
                    f" {sum(each.values())} bytes: {each}"
                )

    with served(ROOT / "app.py") as address:
        answers(address)
        asyncio.run(edits(address, server_of(address)))


COUNT = """
import gc, signal
def told(*_):
    from gradebook.ui.parts.drafts import PageDraft
    things = gc.get_objects()
    print(sum(isinstance(x, PageDraft) for x in things), len(things), flush=True)
signal.signal(signal.SIGUSR1, told)
"""


def left(count: int = 20, minutes: float = 3) -> None:
    """Live objects of learners while they are there, and after they left."""

    async def visit(address: str) -> tuple[int, int]:
        async with AsyncExitStack() as there:
            for _ in range(count):
                learner = await there.enter_async_context(session(address))
                await learner.open()
                await learner.edit(0, "2.5")
            return counted(address)

    def counted(address: str) -> tuple[int, int]:
        os.kill(server_of(address), signal.SIGUSR1)
        time.sleep(3)
        drafts, objects = Path(said.name).read_text().split()[-2:]
        return int(drafts), int(objects)

    with (
        tempfile.NamedTemporaryFile() as said,
        served(ROOT / "app.py", COUNT, said.name) as address,
    ):
        answers(address)
        found = {f"{count} learners": asyncio.run(visit(address))}
        time.sleep(60 * minutes)
        found |= {f"{minutes:g} minutes after": counted(address)}
        for name, (drafts, objects) in found.items():
            print(f"  {name}: {drafts} drafts, {objects} objects in all")


@asynccontextmanager
async def session(address: str) -> AsyncIterator[Learner]:
    """A learner who has not opened the page yet."""
    async with connect(
        address.replace("http", "ws") + "/_stcore/stream",
        subprotocols=["streamlit"],
        max_size=2**26,
    ) as socket:
        yield Learner(socket, OPEN)
