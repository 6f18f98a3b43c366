"""The server's own part: what it does when it starts, and what it serves
beside Streamlit's pages.

What Gradebook uses of Streamlit beside its public `st.` names, and what breaks
without it:

runtime.get_instance  (ui/security) how much each session uploaded: without it
                      sessions can fill the memory
web.cli.main          (ui/launch) `gradebook app`; `streamlit run app.py` still works
DeltaGenerator        (annotations) nothing but type checks
StreamlitPage         (annotations) nothing but type checks
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gradebook.ui.own_path import own_path
from gradebook.ui.security import Security, parked

VISIT = Path(__file__).parent / "parts" / "visit.py"
"""The script that runs for every visit."""

ENDPOINTS = {
    "/board-edits/{epoch}": "gradebook.ui.board.component",
    "/board-program/{version}/{name}": "gradebook.ui.board.program",
    "/card-pictures/{version}/{name}": "gradebook.ui.parts.thumbnail",
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


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """The server answers its first visitor while torch is imported."""
    warmed = asyncio.get_running_loop().run_in_executor(None, warm_up)
    yield {}
    await warmed
