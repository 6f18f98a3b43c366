"""What the server refuses, and the headers of what it answers.

It stands before Streamlit's own handlers, as a plain ASGI application.
"""

import os
import re
import secrets
from collections import Counter
from collections.abc import Mapping
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
COOKIE_RULES = "; Path=/; HttpOnly; SameSite=Lax"
A_DAY = 24 * 3600
MB = 1024 * 1024
MOST_BODY, MOST_OF_SESSION, MOST_OF_SERVER = MB, 200 * MB, 1024 * MB
"""Bytes of a request that is no upload, and of uploads that are held at a time."""
FILES_OF_ONE, SPARE_FILES = 4, 100
"""File descriptors that a learner's session takes, at most, and the server."""

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


class Security:
    """Refuses what could stop the server, and adds headers and the cookies."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        # What is open or on its way counts for the requests beside it.
        self._coming: Counter[str] = Counter()
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        asked, is_socket = HTTPConnection(scope), scope["type"] == "websocket"
        uploads = re.escape(own_path("/_stcore/upload_file/"))
        upload = re.match(f"{uploads}([^/]+)", scope["path"])
        session = upload[1] if upload and scope.get("method") == "PUT" else ""
        header = asked.headers.get("content-length", "")
        length = int(header[:16]) if header.isdecimal() else 0
        refusal = self._refusal(asked, session, length)
        if refusal is not None:
            if is_socket:  # before it is accepted: an HTTP answer
                await receive()
            return await refusal(scope, receive, send)
        self._sockets += is_socket
        self._coming += Counter({session: length})
        messages: list[Message] = []

        async def read() -> Message:
            return messages.pop(0) if messages else await receive()

        try:
            most = length if session else MOST_BODY
            while not is_socket and (not messages or messages[-1].get("more_body")):
                messages.append(await receive())
                most -= len(messages[-1].get("body", b""))
                if most < 0:
                    return await _no(413, "too large")(scope, receive, send)
            await self.app(scope, read, _answering(asked, send))
        finally:
            self._sockets -= is_socket
            self._coming -= Counter({session: length})

    def _refusal(
        self, asked: HTTPConnection, session: str, length: int
    ) -> Response | None:
        """The answer to a request that is refused unread. It uploads a file of so
        many bytes to the session, where that is not ''."""
        is_socket = asked.scope["type"] == "websocket"
        reads = not is_socket and asked.scope["method"] in ("GET", "HEAD")
        # A browser says so where a page of another site asks.
        origin, host = asked.headers.get("origin", ""), asked.headers.get("host")
        allowed = ("", *st.get_option("server.corsAllowedOrigins"))
        if not (reads or origin in allowed or urlsplit(origin).netloc == host):
            return _no(403, "another site's request")
        if asked.scope["path"] == own_path("/_stcore/metrics"):
            return _no(404, "not found")
        is_page = "text/html" in asked.headers.get("accept", "")
        files = (self._sockets + 1) * FILES_OF_ONE + SPARE_FILES
        if (is_socket or is_page) and files > most_files():
            return HTMLResponse(FULL, 503, headers=HEADERS | {"Retry-After": "60"})
        if not session:
            return _no(413, "too large") if length > MOST_BODY else None
        if not length:
            return _no(411, "no length")
        held = Counter(parked()) + self._coming
        of_session, of_server = held[session] + length, held.total() + length
        if of_session > MOST_OF_SESSION or of_server > MOST_OF_SERVER:
            return _no(413, "too many uploads")
        return None


def _no(status: int, why: str) -> Response:
    return PlainTextResponse(why, status, headers=HEADERS)


def _answering(asked: HTTPConnection, send: Send) -> Send:
    """Sends headers with every answer, with a page the seat, and with a socket the
    name of the server that has its session."""

    async def answer(message: Message) -> None:
        name = os.environ.get("GRADEBOOK_SERVER", "")
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for header, value in HEADERS.items():
                headers.setdefault(header, value)
            is_page = headers.get("content-type", "").startswith("text/html")
            if is_page and not seat_of(asked.cookies):
                seat = f"{SEAT_COOKIE}={secrets.token_urlsafe(18)}; Max-Age={A_DAY}"
                secure = "; Secure" * (asked.scope["scheme"] == "https")
                headers.append("Set-Cookie", seat + COOKIE_RULES + secure)
        elif message["type"] == "websocket.accept" and name:
            message.setdefault("headers", [])
            cookie = f"{ROUTE_COOKIE}={name}{COOKIE_RULES}"
            MutableHeaders(scope=message).append("Set-Cookie", cookie)
        await send(message)

    return answer


def most_files() -> float:
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return float("inf")
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def seat_of(cookies: Mapping[str, str]) -> str:
    """The seat that the browser came with, or ''."""
    seat = str(cookies.get(SEAT_COOKIE, ""))
    return seat if TOKEN.fullmatch(seat) else ""


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
