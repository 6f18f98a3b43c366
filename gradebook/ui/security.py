"""What the server refuses, and the headers of what it answers.

It stands before Streamlit's own handlers, as a plain ASGI application.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SEAT_COOKIE = "gradebook-seat"
"""The browser's random token in rooms. No script can read it."""
ROUTE_COOKIE = "gradebook_route"
"""Which of several servers has the browser's session: a proxy sends it there.
nginx has no variable for a cookie with a hyphen."""
TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
COOKIE_RULES = "; Path=/; HttpOnly; SameSite=Lax"
A_DAY = 24 * 3600
MB = 1024 * 1024
MOST_BODY = MB
"""Bytes of a request that is no upload."""
MOST_OF_SESSION, MOST_OF_SERVER = 200 * MB, 1024 * MB
"""Bytes of uploads that are held at a time."""
FILES_OF_ONE = 4
"""File descriptors that a learner's session takes, at most."""
SPARE_FILES = 100
"""File descriptors that the server needs for itself."""

POLICY = {
    "default-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "frame-ancestors": "'self'",
    # Streamlit starts a component's program, the board's too, from a blob, and
    # the page writes its address with a script inside an element. Streamlit's
    # messages count in 64 bits by WebAssembly; without it they fall back, and the
    # console notes a violation at each page.
    "script-src": "'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
    # Streamlit and Plotly style elements in place.
    "style-src": "'self' 'unsafe-inline'",
    # Icons and Plotly's pictures are data; a picture to download is a blob.
    "img-src": "'self' data: blob:",
    # Plotly's font for its own buttons is data.
    "font-src": "'self' data:",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{k} {v}" for k, v in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
FULL = """<!doctype html><title>Gradebook is full</title>
<h1>This server is full</h1>
<p>Everybody who is here already goes on. Try again in a few minutes.</p>"""


class TooLarge(Exception):
    """A body is longer than its request may have."""


class Security:
    """Refuses what could stop the server, and adds headers and the cookie.

    parked  the bytes of uploads that each session holds
    origins further origins that may send requests, as "https://host"
    """

    def __init__(
        self,
        app: ASGIApp,
        parked: Callable[[], dict[str, int]],
        origins: Callable[[], list[str]] = list,
    ) -> None:
        self.app = app
        self._parked = parked
        self._origins = origins
        self._coming: Counter[str] = Counter()
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        asked = HTTPConnection(scope)
        if self._is_foreign(asked):
            return await _refuse(scope, receive, send, 403, "another site's request")
        if scope["type"] == "websocket":
            return await self._socket(scope, receive, send)
        if scope["path"] == own_path("/_stcore/metrics"):
            return await _refuse(scope, receive, send, 404, "not found")
        if "text/html" in asked.headers.get("accept", "") and self._is_full():
            page = HTMLResponse(FULL, 503, headers=HEADERS | {"Retry-After": "60"})
            return await page(scope, receive, send)
        uploads, answer = own_path("/_stcore/upload_file/"), _with_headers(asked, send)
        if scope["method"] == "PUT" and scope["path"].startswith(uploads):
            session = scope["path"].removeprefix(uploads).split("/")[0]
            await self._upload(scope, receive, answer, session)
        else:
            await self._bounded(scope, receive, answer, MOST_BODY)

    def _is_foreign(self, asked: HTTPConnection) -> bool:
        """A page of another site asks: a browser says so in Origin."""
        origin = asked.headers.get("origin")
        reads = asked["type"] == "http" and asked["method"] in ("GET", "HEAD")
        if origin is None or reads:
            return False
        same = urlsplit(origin).netloc == asked.headers.get("host")
        return not same and origin not in self._origins()

    def _is_full(self) -> bool:
        return (self._sockets + 1) * FILES_OF_ONE + SPARE_FILES > most_files()

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_full():
            return await _refuse(scope, receive, send, 503, "full")

        async def answer(message: Message) -> None:
            """Names this server to the browser whose session it takes over."""
            name = os.environ.get("GRADEBOOK_SERVER", "")
            if message["type"] == "websocket.accept" and NAME.fullmatch(name):
                message.setdefault("headers", [])
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", f"{ROUTE_COOKIE}={name}{COOKIE_RULES}")
            await send(message)

        self._sockets += 1
        try:
            await self.app(scope, receive, answer)
        finally:
            self._sockets -= 1

    async def _upload(
        self, scope: Scope, receive: Receive, send: Send, session: str
    ) -> None:
        """An upload says how long it is, and both limits hold while others
        are on their way."""
        length = _length(scope)
        if length is None:
            return await _refuse(scope, receive, send, 411, "no length")
        held = Counter(self._parked()) + self._coming
        of_session, of_server = held[session] + length, held.total() + length
        if of_session > MOST_OF_SESSION or of_server > MOST_OF_SERVER:
            return await _refuse(scope, receive, send, 413, "too many uploads")
        self._coming[session] += length
        try:
            await self._bounded(scope, receive, send, length)
        finally:
            self._coming[session] -= length

    async def _bounded(
        self, scope: Scope, receive: Receive, send: Send, most: int
    ) -> None:
        """The application, which reads at most so many bytes."""
        if (_length(scope) or 0) > most:
            return await _refuse(scope, receive, send, 413, "too large")
        came, began = 0, False

        async def bounded() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self.app(scope, bounded, noted)
        except TooLarge:
            if not began:
                await _refuse(scope, receive, send, 413, "too large")


def most_files() -> float:
    """The file descriptors that this server may open."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return float("inf")
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def seat_of(cookies: Mapping[str, str]) -> str:
    """The seat that the browser came with, or ''."""
    seat = str(cookies.get(SEAT_COOKIE, ""))
    return seat if TOKEN.fullmatch(seat) else ""


def _with_headers(asked: HTTPConnection, send: Send) -> Send:
    """Sends the headers of every answer, and with a page the seat."""

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            is_page = headers.get("content-type", "").startswith("text/html")
            if is_page and not seat_of(asked.cookies):
                seat = f"{SEAT_COOKIE}={secrets.token_urlsafe(18)}; Max-Age={A_DAY}"
                secure = "; Secure" * (asked.scope["scheme"] == "https")
                headers.append("Set-Cookie", seat + COOKIE_RULES + secure)
        await send(message)

    return answer


def _length(scope: Scope) -> int | None:
    length = HTTPConnection(scope).headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


async def _refuse(
    scope: Scope, receive: Receive, send: Send, status: int, why: str
) -> None:
    answer: Response = PlainTextResponse(why, status, headers=HEADERS)
    if scope["type"] == "websocket":  # before it is accepted: an HTTP answer
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            return await send({"type": "websocket.close", "code": 1008})
    await answer(scope, receive, send)


def parked() -> dict[str, int]:
    """The bytes of uploads that Streamlit holds for each session."""
    from streamlit.runtime import get_instance

    files: Any = get_instance().uploaded_file_mgr
    return {
        session: sum(len(file.data) for file in held.values())
        for session, held in list(files.file_storage.items())
    }


# Where a browser finds what this app serves beside Streamlit's own


def own_path(path: str) -> str:
    """The path below `server.baseUrlPath`, which a team sets behind a proxy
    that serves more than this app."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}{path}" if base else path
