"""The server's own part: what it does when it starts, and what it serves
beside Streamlit's pages.

What Gradebook uses of Streamlit beside its public `st.` names, and what breaks
without it (tests/ui/test_server.py has a test of each):

runtime.get_instance  (ui/security) which sessions are open and how much each one
                      uploaded: without it strangers can fill the memory
_stcore/ paths        (ui/security) of uploads and metrics: elsewhere uploads would
                      have the limit of other requests, 1 MB, and all could read
                      the metrics
DeltaGenerator        (annotations) its modules could not be imported
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gradebook.core.errors import GradebookError
from gradebook.ui.idle import CONNECTIONS
from gradebook.ui.program import program
from gradebook.ui.security import own_path

PAUSE = 600.0
"""Seconds before each deletion of silent rooms, and of garbage that a quiet server
would keep: the first visitors come first."""
YOUNG = 100
"""Collections of young garbage before a full one, in which nobody is answered. Python's
10 let full ones interrupt the edits of 300 learners two or three times a minute, for
0.1 s each. With 120 edits a second, the slowest 5 % of them took 55 ms and more in a
phase with such an interruption, and with this number 28 ms (2026-11-28)."""
VISIT = Path(__file__).parent / "visit" / "script.py"
"""The script that runs for every visit."""
MOVED = {"/map": "/"}
"""Addresses that pages had once, and those that have their contents today."""


def routes() -> list[Route]:
    """Every endpoint, below the server's base path. Its module is imported at the first
    request, so that the server starts at once."""

    async def answer(module: str, request: Request) -> Response:
        return await import_module(f"gradebook.ui.{module}").answer(request)

    async def redirect(to: str, request: Request) -> Response:
        return RedirectResponse(f"{to}?{request.url.query}".rstrip("?"))

    edits, news = partial(answer, "board.component"), partial(answer, "rooms.news")
    return [
        Route(own_path("/board-edits/{epoch}"), edits, methods=["GET", "POST"]),
        Route(own_path("/board-program/{version}/{name}"), program),
        Route(own_path("/room-news/{room}"), news),
        *(
            Route(own_path(old), partial(redirect, own_path(new)))
            for old, new in MOVED.items()
        ),
    ]


def warm_up() -> None:
    import torch

    import gradebook.ui.pages.bug  # noqa: F401

    torch.set_num_threads(1)  # on a page's few rows, threads cost time
    # What is imported by now stays. Without it a full collection of garbage, in which
    # nobody is answered, takes 0.2 to 0.26 s of CPU with 300 learners, and took 0.32
    # to 0.46 s (2026-11-28).
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], YOUNG)


def sweep() -> None:
    """Deletes silent rooms. A database that is away is asked again later."""
    from gradebook.ui.rooms import seat

    with suppress(GradebookError):
        seat.rooms().sweep()


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """The server answers its first visitor while torch is imported."""

    async def in_the_background() -> None:
        await asyncio.to_thread(warm_up)
        while True:
            await asyncio.sleep(PAUSE)
            gc.collect()
            await asyncio.to_thread(sweep)

    watches = CONNECTIONS.watch(st.get_option("server.port"))
    tasks = [asyncio.create_task(work) for work in (in_the_background(), watches)]
    yield {}
    for task in tasks:
        task.cancel()


def limits() -> dict[str, str]:
    """Every limit of a server -> what it protects."""
    from gradebook.cases import link
    from gradebook.classroom import room, store
    from gradebook.logs import worker
    from gradebook.logs.read import files
    from gradebook.ui import idle, turns
    from gradebook.ui import security as limit
    from gradebook.ui.board import component
    from gradebook.ui.rooms import news, seat

    def size(count: int) -> str:
        return f"{count // limit.MB:,} MB"

    of_one, of_all = seat.WRONG_CODES
    unpacked = (
        f"{size(files.UPLOADED)} in an upload when it is unpacked, and"
        f" {files.EXPANSION} times its size (at least {size(files.LEAST_UNPACKED)})"
    )
    codes = (
        f"{of_one.free} wrong codes from an address (of IPv6, a /64 network), and"
        f" {of_all.free} from all, until an address with a wrong code waits"
    )
    return {
        f"{size(limit.MOST_BODY)} in a request that is no upload": "memory",
        f"{size(limit.MOST_BODIES)} in all such requests on their way": "memory",
        f"{size(limit.MOST_OF_SESSION)} uploaded by a session,"
        f" {size(limit.MOST_OF_SERVER)} by all, counted as they arrive": "memory",
        f"{limit.A_PART:g} s without a byte, {limit.A_BODY:g} s for a body,"
        f" {limit.AN_UPLOAD:g} s for an upload": "connections and memory",
        f"{idle.SILENT:g} s without a request on an open connection": "connections",
        f"{limit.FILES_OF_ONE} file descriptors free for a newcomer, counted over all"
        " connections": "learners who are there already",
        f"{turns.PAGES_AT_A_TIME} bugs' pages drawn at a time": "the time of an edit",
        f"{component.MOST_THREADS} edits under way, one of them"
        " computed": "the time of an edit",
        f"{link.MOST_UNPACKED:,} bytes, {link.MOST_ROWS:,} rows and"
        f" {link.MOST_HEADERS} columns in a link": "time and memory",
        f"{files.MOST_COLUMNS} columns in a log": "memory",
        unpacked: "memory",
        f"{size(worker.MEMORY)} of memory and {worker.SECONDS} s of computing for a"
        " check, one at a time in a process of its own": "everybody else's pages",
        f"{worker.WAITING} checks in the queue": "memory",
        f"{store.PATIENCE} s in which the rooms' database has to answer somebody,"
        f" {store.QUEUE} s for one in a queue": "pages of a room; no other page asks"
        " it",
        f"{news.MOST_THREADS} threads for a room's news": "edits, which have others",
        f"{room.MOST_ROOMS:,} rooms, {store.MOST_SEATS} seats each": "the database",
        codes: "the codes of rooms",
        f"{seat.OPENINGS.free} rooms opened from an address until it waits": "rooms",
    }
