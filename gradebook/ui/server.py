"""The server's own part: what it does when it starts, and what it serves
beside Streamlit's pages.

What Gradebook uses of Streamlit beside its public `st.` names, and what breaks
without it (tests/ui/test_streamlit_inside.py has a test of each):

runtime.get_instance  (ui/security) how much each session uploaded: without it
                      sessions can fill the memory
_stcore/upload_file   (ui/security) the path of uploads: elsewhere they would have
                      the limit of other requests, 1 MB
_stcore/metrics       (ui/security) the path of metrics: elsewhere all could read them
web.cli.main          (ui/launch) `gradebook app`; `streamlit run app.py` still works
DeltaGenerator        (annotations) its modules could not be imported
StreamlitPage         (annotations) the same for the navigation
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gradebook.ui.security import Security, own_path, parked

HOUR = 3600.0
VISIT = Path(__file__).parent / "parts" / "visit.py"
"""The script that runs for every visit."""

ENDPOINTS = {
    "/board-edits/{epoch}": "gradebook.ui.board.component",
    "/board-program/{version}/{name}": "gradebook.ui.board.program",
    "/card-pictures/{version}/{name}": "gradebook.ui.pages.home",
    "/room-news/{room}": "gradebook.ui.rooms.news",
}
"""Path -> the module whose `answer` answers there."""


def routes() -> list[Route]:
    """Every endpoint, below the server's base path."""
    return [
        Route(own_path(path), _answered_by(module), methods=["GET", "POST"])
        for path, module in ENDPOINTS.items()
    ]


def _answered_by(module: str) -> Callable[[Request], Awaitable[Response]]:
    """Imports the module where somebody asks, so that the server starts at once."""

    async def endpoint(request: Request) -> Response:
        return await importlib.import_module(module).answer(request)

    return endpoint


def middleware() -> list[Middleware]:
    """What stands before Streamlit's own handlers."""
    origins = partial(st.get_option, "server.corsAllowedOrigins")
    return [Middleware(Security, parked=parked, origins=origins)]


def warm_up() -> None:
    """Imports what a bug's page needs."""
    import torch

    import gradebook.ui.pages.bug  # noqa: F401

    torch.set_num_threads(1)  # on a page's few rows, threads cost time


def sweep() -> None:
    """Deletes silent rooms. A database that is away is asked again later."""
    from sqlalchemy.exc import SQLAlchemyError

    from gradebook.ui.rooms import seat

    with suppress(SQLAlchemyError):
        seat.rooms().sweep()


async def _in_the_background() -> None:
    await asyncio.to_thread(warm_up)
    while True:
        await asyncio.to_thread(sweep)
        await asyncio.sleep(HOUR)


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """The server answers its first visitor while torch is imported."""
    task = asyncio.create_task(_in_the_background())
    yield {}
    task.cancel()


# How many pages the server draws at a time, and who waits


AT_A_TIME = 2
"""Pages. They share one interpreter: a hundred at once take longer than a hundred
one after the other, and the first of them is done last."""
PAUSES = (1, 2, 4, 8, 5)
"""Seconds after each of which a page that waits says so; after the last one it is
drawn whatever the others do."""


class Turns:
    """Who came first is drawn first, `at_a_time` together."""

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._line: list[Event] = []
        self._lock = Lock()

    @contextmanager
    def turn(self, waits: Callable[[int], object]) -> Iterator[None]:
        """Waits until this page may be drawn.

        waits  is told again and again how many pages come before it
        """
        mine = Event()
        with self._lock:
            self._line.append(mine)
            self._call()
        try:
            for pause in PAUSES:
                if mine.wait(pause):
                    break
                waits(self._line.index(mine) + 1 - self._at_a_time)
            yield
        finally:
            with self._lock:
                self._line.remove(mine)
                self._call()

    def _call(self) -> None:
        for one in self._line[: self._at_a_time]:
            one.set()


TURNS = Turns()
"""The pages of bugs. Others have no such crowds, and may wait for a check or a
training run."""
