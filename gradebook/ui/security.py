"""What the server refuses, and the headers of what it answers.

A plain ASGI application in front of Streamlit's own handlers.
"""

import asyncio
import os
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradebook.ui.idle import CONNECTIONS

SEAT_COOKIE = "gradebook-seat"
"""The browser's random token in rooms. No script can read it."""
ROUTE_COOKIE = "gradebook_route"
"""Which of several servers has the browser's session: a proxy sends it there.
nginx has no variable for a cookie with a hyphen."""
ROOM, BEEN = "room", "gradebook-room"
"""The parameter of an address that invites to a room, and the cookie of a browser that
is in one or was. The room's program (`news.js`) writes it for a day."""
INVITED = f"{BEEN}=1; Path=/; SameSite=Lax; Max-Age=600"
"""The same until that program runs: by then a learner may have gone on to an address
without the room."""
TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")
COOKIE_RULES = "; Path=/; HttpOnly; SameSite=Lax"
A_DAY = 24 * 3600
MB = 1024 * 1024
MOST_BODY, MOST_OF_SESSION, MOST_OF_SERVER = MB, 200 * MB, 1024 * MB
"""Bytes of a request that is no upload, and of uploads that are held at a time."""
MOST_BODIES = 64 * MB
"""Bytes of all such requests that have arrived in part."""
A_PART, A_BODY, AN_UPLOAD = 20.0, 60.0, 900.0
"""Seconds without a byte of a body, of a whole body, and of a whole upload."""
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
        # Bytes of bodies that have arrived and are not answered yet, by the session
        # that uploads them, "" for all others. Announced lengths are not counted.
        self._arrived: Counter[str] = Counter()
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        asked = HTTPConnection(scope)
        with CONNECTIONS.asks(asked):
            await self._answer(asked, receive, send)

    async def _answer(
        self, asked: HTTPConnection, receive: Receive, send: Send
    ) -> None:
        scope, is_socket = asked.scope, asked.scope["type"] == "websocket"
        refusal = self._refusal(asked)
        if refusal is not None:
            if is_socket:  # before it is accepted: an HTTP answer
                await receive()
            return await refusal(scope, receive, send)
        if is_socket:
            self._sockets += 1
            try:
                return await self.app(scope, receive, _answering(asked, send))
            finally:
                self._sockets -= 1
        session = _uploads_to(asked)
        arrived: Counter[str] = Counter()
        try:
            body = await self._body(receive, session, arrived)
            if isinstance(body, Response):
                return await body(scope, receive, send)
            messages = iter(body)

            async def read() -> Message:
                return next(messages, None) or await receive()

            await self.app(scope, read, _answering(asked, send))
        finally:
            self._arrived -= arrived

    async def _body(
        self, receive: Receive, session: str, arrived: Counter[str]
    ) -> list[Message] | Response:
        """The messages of a body, or the answer to one that is too long or too slow.
        What arrives is added to `arrived`."""
        messages: list[Message] = []
        try:
            async with asyncio.timeout(AN_UPLOAD if session else A_BODY):
                while not messages or messages[-1].get("more_body"):
                    message = await asyncio.wait_for(receive(), A_PART)
                    length = len(message.get("body", b""))
                    arrived[session] += length
                    self._arrived[session] += length
                    refusal = self._too_much(session, arrived[session])
                    if refusal is not None:
                        return refusal
                    messages.append(message)
        except TimeoutError:
            return _no(408, "too slow")
        return messages

    def _too_much(self, session: str, length: int) -> Response | None:
        """The answer if a body, or all bodies together, have too many bytes; None if
        not."""
        if not session:
            if length > MOST_BODY:
                return _no(413, "too large")
            is_busy = self._arrived[""] > MOST_BODIES
            return _no(503, "too many requests") if is_busy else None
        held = Counter(parked()) + self._arrived - Counter({"": self._arrived[""]})
        if held[session] > MOST_OF_SESSION or held.total() > MOST_OF_SERVER:
            return _no(413, "too many uploads")
        return None

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """The answer to a request that is refused unread."""
        is_socket = asked.scope["type"] == "websocket"
        reads = not is_socket and asked.scope["method"] in ("GET", "HEAD")
        if not (reads or _is_own(asked)):
            return _no(403, "another site's request")
        if asked.scope["path"] == own_path("/_stcore/metrics"):
            return _no(404, "not found")
        is_page = "text/html" in asked.headers.get("accept", "")
        if (is_socket or is_page) and self._is_full():
            return HTMLResponse(FULL, 503, headers=HEADERS | {"Retry-After": "60"})
        return None if is_socket else _refusal_of_body(asked)

    def _is_full(self) -> bool:
        """One more session could take more file descriptors than there are. Every open
        connection has one, whatever it is for."""
        descriptors = max(self._sockets * FILES_OF_ONE + SPARE_FILES, open_files())
        return descriptors + FILES_OF_ONE > most_files()


def _refusal_of_body(asked: HTTPConnection) -> Response | None:
    """The refusal of a request by the size and kind that its head states for the body;
    None if it may come."""
    session = _uploads_to(asked)
    header = asked.headers.get("content-length", "")
    length = int(header[:16]) if header.isdecimal() else 0
    if length > (MOST_OF_SESSION if session else MOST_BODY):
        return _no(413, "too large")
    if session and not length:
        return _no(411, "no length")
    return _no(403, "no such session") if session and not lives(session) else None


def _uploads_to(asked: HTTPConnection) -> str:
    """The session to which a request uploads a file; "" for any other request."""
    uploads = re.escape(own_path("/_stcore/upload_file/"))
    upload = re.match(f"{uploads}([^/]+)", asked.scope["path"])
    return upload[1] if upload and asked.scope["method"] == "PUT" else ""


def _is_own(asked: HTTPConnection) -> bool:
    """The request does not come from a page of another site. A browser names such a
    site."""
    origin = asked.headers.get("origin", "")
    if origin in ("", *st.get_option("server.corsAllowedOrigins")):
        return True
    try:
        return urlsplit(origin).netloc == asked.headers.get("host")
    except ValueError:  # such as http://[
        return False


def _no(status: int, why: str) -> Response:
    # A client that is refused in the middle of a body would send the rest, which is not
    # read.
    return PlainTextResponse(why, status, headers=HEADERS | {"Connection": "close"})


def _answering(asked: HTTPConnection, send: Send) -> Send:
    """Sends headers with every answer, with a page its cookies, and with a socket the
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
            if is_page and asked.query_params.get(ROOM):
                headers.append("Set-Cookie", INVITED)
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


def open_files() -> int:
    """The file descriptors that this process has open; 0 if the system does not say."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))
    return 0


def lives(session: str) -> bool:
    """The session of Streamlit is open."""
    from streamlit.runtime import get_instance

    return get_instance().is_active_session(session)


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
