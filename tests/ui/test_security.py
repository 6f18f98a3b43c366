"""What could stop the server is refused before Streamlit sees it."""

import gzip

import pytest
import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from ui.answered import answered

from gradebook.core.errors import GradebookError
from gradebook.logs.read import files
from gradebook.ui import security
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


def ask(app, path="/", method="GET", body=b"", kind="http", parts=1, **headers):
    """The messages that the application sends to one request."""
    given = {"host": HOST} | {k.replace("_", "-"): v for k, v in headers.items()}
    scope = {"type": kind, "method": method, "path": path, "query_string": b""}
    scope |= {"scheme": headers.pop("scheme", "http"), "extensions": {}}
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
    assert status(app, path, "POST", content_length=256 * MB) == 413
    assert not behind.asked
    # Whoever does not say how long it is may send one megabyte, too.
    assert status(app, path, "POST", b"x" * MB, parts=256) == 413
    assert behind.read == 0
    assert status(app, path, "POST", b"x" * MB) == 200 and behind.read == MB


def test_uploads_are_bounded_for_a_session_and_for_the_server(monkeypatch):
    parked = {"one": 150 * MB, **{f"s{n}": 150 * MB for n in range(5)}}
    monkeypatch.setattr(security, "parked", lambda: parked)
    app, behind = guarded()

    def put(session, length, **given):
        path = f"/_stcore/upload_file/{session}/file"
        return status(app, path, "PUT", content_length=length, **given)

    assert put("one", 51 * MB) == 413 and put("one", 50 * MB) == 200
    assert put("new", 124 * MB) == 200 and put("new", 125 * MB) == 413
    assert put("new", 3, body=b"four") == 413
    assert status(app, "/_stcore/upload_file/new/file", "PUT", b"x") == 411


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


def test_an_upload_unpacks_to_at_most_so_many_bytes(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "UPLOADED", MB)
    packed = gzip.compress(b"step,reward\n" + b"0,1\n" * (MB // 2))
    file = tmp_path / "run.csv.gz"
    file.write_bytes(packed)
    assert len(files.Source(file.name, path=file).text()) > 2 * MB
    small = files.Source(file.name, data=gzip.compress(b"step,reward\n"))
    assert small.text() == b"step,reward\n"
    upload = files.Source(file.name, data=packed)
    with pytest.raises(GradebookError, match="at most 1,048,576"):
        upload.text()
