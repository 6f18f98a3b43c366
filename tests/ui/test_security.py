"""What could stop the server is refused before Streamlit sees it."""

import asyncio
import gzip
import socket
from pathlib import Path

import pytest
import streamlit as st
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse
from ui.answered import answered

from gradebook.core.errors import GradebookError
from gradebook.logs.read import files
from gradebook.ui import idle, security
from gradebook.ui.idle import Connections
from gradebook.ui.security import MB, Security

HOST = "classroom.example"


class Behind:
    """Streamlit's place: what it was asked, and what it read."""

    def __init__(self, page=None):
        self.page = page or PlainTextResponse("fine")
        self.asked, self.read = [], 0

    async def __call__(self, scope, receive, send):
        self.asked.append(scope["path"])
        if scope["type"] == "websocket":
            await receive()
            return await send({"type": "websocket.accept"})
        self.read += len(await Request(scope, receive).body())
        await self.page(scope, receive, send)


def ask(
    app, path="/", method="GET", body=b"", kind="http", parts=1, query="", **headers
):
    """The messages that the application sends to one request."""
    given = {"host": HOST} | {k.replace("_", "-"): v for k, v in headers.items()}
    scope = {"type": kind, "method": method, "path": path}
    scope |= {"query_string": query.encode(), "extensions": {}}
    scope |= {"scheme": headers.pop("scheme", "http")}
    scope["headers"] = [(k.encode(), str(v).encode()) for k, v in given.items()]
    sent, waiting = [], [{"type": "websocket.connect"}] * (kind == "websocket")
    if kind == "http":
        more = {"type": "http.request", "body": body, "more_body": True}
        waiting = [more] * (parts - 1) + [more | {"more_body": False}]

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    answered(app(scope, receive, send))
    return sent


def status(*args, **given):
    return ask(*args, **given)[0]["status"]


def guarded(page=None):
    behind = Behind(page)
    return Security(behind), behind


@pytest.mark.parametrize(
    "origin, passes",
    [
        *((o, False) for o in ("http://evil.example", "null", f"http://{HOST}x")),
        ("http://[", False),  # no address at all
        *((o, True) for o in (f"https://{HOST}", "https://other.example", None)),
    ],
)
def test_only_the_apps_own_and_configured_sites_reach_streamlit(
    origin, passes, monkeypatch
):
    """It would ask a public service for its own address first."""
    options = {"server.corsAllowedOrigins": ["https://other.example"]}
    monkeypatch.setattr(st, "get_option", lambda name: options.get(name, ""))
    app, behind = guarded()
    given = {"origin": origin} if origin else {}
    sent = ask(app, "/_stcore/stream", kind="websocket", **given)[0]
    assert sent.get("status", sent["type"]) == ("websocket.accept" if passes else 403)
    done = status(app, "/board-edits/x", "POST", **given)
    assert done == (200 if passes else 403) and bool(behind.asked) == passes


def test_a_long_body_is_refused_unread():
    app, behind = guarded()
    path = "/board-edits/x"
    # One byte too many, announced; a session of uploads may send more.
    assert status(app, path, "POST", content_length=MB + 1) == 413
    assert not behind.asked
    # Whoever does not say how long it is may send one megabyte, too.
    assert status(app, path, "POST", b"x" * MB, parts=256) == 413
    assert behind.read == 0
    assert status(app, path, "POST", b"x" * MB) == 200 and behind.read == MB


@pytest.fixture
def uploads(monkeypatch):
    """Session -> the bytes that it holds. A session uploads at most 20 bytes, all
    together at most 100."""
    held = {"one": 15, **{f"s{n}": 15 for n in range(5)}, "new": 0}
    monkeypatch.setattr(security, "parked", lambda: held)
    monkeypatch.setattr(security, "lives", lambda session: session in held)
    monkeypatch.setattr(security, "MOST_OF_SESSION", 20)
    monkeypatch.setattr(security, "MOST_OF_SERVER", 100)
    return held


def put(app, session, body, **headers):
    path = f"/_stcore/upload_file/{session}/file"
    given = {"content_length": len(body)} | headers
    return status(app, path, "PUT", body, **given)


def test_uploads_are_bounded_for_a_session_and_for_the_server(uploads):
    app, behind = guarded()
    assert put(app, "one", b"x" * 6) == 413 and put(app, "one", b"x" * 5) == 200
    assert put(app, "new", b"x" * 10) == 200 and put(app, "new", b"x" * 11) == 413
    assert put(app, "new", b"x", content_length=21) == 413
    read = behind.read
    # Whoever announces less than arrives is stopped at the same bound.
    assert put(app, "one", b"xxx", content_length=1, parts=10) == 413
    assert behind.read == read
    assert status(app, "/_stcore/upload_file/new/file", "PUT", b"x") == 411
    assert put(app, "invented", b"x") == 403


class Idle:
    """A request whose body never comes to its end: what was answered."""

    def __init__(self, app, path, method, body=b"", **headers):
        given = {"host": HOST} | {k.replace("_", "-"): v for k, v in headers.items()}
        self.scope = {"type": "http", "method": method, "path": path}
        self.scope |= {"query_string": b"", "scheme": "http"}
        pairs = [(k.encode(), str(v).encode()) for k, v in given.items()]
        self.scope["headers"] = pairs
        self.app, self.body, self.sent = app, body, []

    async def send(self, message):
        self.sent.append(message)

    async def receive(self):
        if self.body is None:
            await asyncio.Event().wait()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": True}

    async def run(self):
        await self.app(self.scope, self.receive, self.send)
        return self.sent[0]["status"]


def test_what_was_announced_takes_no_place_from_an_honest_upload(uploads):
    """Six uploads that announced 200 MB each, and sent nothing, made every other one
    end with 413."""
    app, _ = guarded()

    async def beside():
        path = "/_stcore/upload_file/{}/file"
        idle = [
            Idle(app, path.format(name), "PUT", content_length=20)
            for name in ("s0", "s1", "s2", "s3", "s4", "one")
        ]
        waiting = [asyncio.ensure_future(one.run()) for one in idle]
        await asyncio.sleep(0)
        honest = Idle(app, path.format("new"), "PUT", b"", content_length=5)

        async def whole():
            return {"type": "http.request", "body": b"12345", "more_body": False}

        honest.receive = whole
        try:
            assert not any(one.done() for one in waiting)
            return await honest.run()
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    assert answered(beside()) == 200


@pytest.mark.parametrize("limit", ["A_PART", "A_BODY"])
def test_a_body_that_does_not_come_is_given_up_and_its_bytes_are_free(
    limit, monkeypatch
):
    monkeypatch.setattr(security, limit, 0.01)
    app, behind = guarded()
    idle = Idle(app, "/board-edits/x", "POST", b"half of it")
    assert answered(idle.run()) == 408
    assert (b"connection", b"close") in idle.sent[0]["headers"]
    assert not behind.asked and not app._arrived.total()


def test_bodies_that_have_arrived_in_part_are_bounded_together(monkeypatch):
    monkeypatch.setattr(security, "MOST_BODIES", 25)
    app, _ = guarded()

    async def crowd():
        parked = [Idle(app, "/board-edits/x", "POST", b"x" * 10) for _ in range(3)]
        tasks = [asyncio.ensure_future(one.run()) for one in parked]
        done, waiting = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return [one.result() for one in done]

    assert answered(crowd()) == [503]


def test_metrics_are_off():
    app, behind = guarded()
    assert status(app, "/_stcore/metrics") == 404 and not behind.asked


def test_the_seat_is_set_by_the_answer_and_no_script_reads_it():
    app, _ = guarded(HTMLResponse("page"))

    def cookies(**given):
        headers = ask(app, **given)[0]["headers"]
        return [v.decode() for k, v in headers if k == b"set-cookie"]

    (cookie,) = cookies()
    seat, *rules = cookie.split("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {*rules}
    assert "Secure" not in rules and "Secure" in cookies(scheme="https")[0]
    assert cookies(cookie=seat) == []
    assert cookies(cookie="gradebook-seat=<script>") != []
    app, _ = guarded()
    assert cookies() == []  # no page, no seat


def test_an_invitation_lets_the_next_page_know_the_room_before_any_program_ran():
    app, _ = guarded(HTMLResponse("page"))

    def cookies(query):
        headers = ask(app, query=query)[0]["headers"]
        written = [value for name, value in headers if name == b"set-cookie"]
        return [value for value in written if not value.startswith(b"gradebook-seat")]

    assert cookies("") == cookies("v=1") == []
    (cookie,) = cookies("room=ABCDEF.token")
    assert cookie.startswith(b"gradebook-room=1; ") and b"Max-Age=600" in cookie


def test_every_answer_has_the_headers():
    app, _ = guarded()
    headers = dict(ask(app)[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    for rule in (
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    ):
        assert rule in policy.split("; ")
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"referrer-policy"] == b"same-origin"


def test_at_the_limit_of_files_newcomers_get_a_page_that_says_so(monkeypatch):
    monkeypatch.setattr(security, "open_files", lambda: 0)
    monkeypatch.setattr(security, "most_files", lambda: 103)
    app, behind = guarded(HTMLResponse("page"))
    assert status(app, accept="text/html") == 503
    assert b"This server is full" in ask(app, accept="text/html")[1]["body"]
    sent = ask(app, "/_stcore/stream", kind="websocket")[0]
    # A proxy goes on to another server.
    assert sent["type"] == "websocket.http.response.start" and sent["status"] == 503
    assert not behind.asked
    monkeypatch.setattr(security, "most_files", lambda: 104)
    assert status(app, accept="text/html") == 200


def test_every_open_connection_counts(monkeypatch):
    app, _ = guarded(HTMLResponse("page"))
    monkeypatch.setattr(security, "most_files", lambda: 1024)
    monkeypatch.setattr(security, "open_files", lambda: 1020)
    assert status(app, accept="text/html") == 200
    monkeypatch.setattr(security, "open_files", lambda: 1021)
    assert status(app, accept="text/html") == 503
    monkeypatch.undo()
    before = security.open_files()
    with socket.socket():
        assert security.open_files() == before + 1 or before == 0


def test_an_upload_unpacks_to_at_most_so_many_bytes(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "UPLOADED", MB)
    packed = gzip.compress(b"step,reward\n" + b"0,1\n" * (MB // 2))
    file = tmp_path / "run.csv.gz"
    file.write_bytes(packed)
    assert len(files.LogFile(file.name, path=file).text()) > 2 * MB
    small = files.LogFile(file.name, data=gzip.compress(b"step,reward\n"))
    assert small.text() == b"step,reward\n"
    upload = files.LogFile(file.name, data=packed)
    with pytest.raises(GradebookError, match="at most 1,048,576"):
        upload.text()


def test_a_connection_without_a_request_is_closed_and_one_that_asks_is_not(
    monkeypatch,
):
    """Half a request, too: nobody has asked until its headers have come."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("the system lists no sockets of a process")
    seen, now = Connections(), [1000.0]
    monkeypatch.setattr(idle.time, "monotonic", lambda: now[0])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        others = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        accepted = [server.accept()[0] for _ in others]
        scope = {"type": "http", "headers": []}
        asking, asked, _ = (scope | {"client": o.getsockname()} for o in others)
        with seen.asks(HTTPConnection(asking)):
            assert seen.close_silent(port) == 0
            now[0] += idle.SILENT - 1
            with seen.asks(HTTPConnection(asked)):
                pass  # it is silent from now on
            assert seen.close_silent(port) == 0
            now[0] += 1
            assert seen.close_silent(port) == 1
            assert others[2].recv(1) == b""
            now[0] += idle.SILENT
            assert seen.close_silent(port) >= 1
            assert others[1].recv(1) == b""
            others[0].setblocking(False)
            with pytest.raises(BlockingIOError):
                others[0].recv(1)
        for each in (*others, *accepted):
            each.close()


def test_a_proxys_connections_are_left_to_it(monkeypatch):
    seen = Connections()
    headers = [(b"x-forwarded-for", b"192.0.2.1")]
    scope = {"type": "http", "client": ("192.0.2.1", 0), "headers": headers}
    with seen.asks(HTTPConnection(scope)):
        pass
    monkeypatch.setattr(idle, "_connections", lambda _: pytest.fail("looked at them"))
    assert seen.close_silent(1) == 0
