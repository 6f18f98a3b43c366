"""What app.py adds to Streamlit's server."""

import asyncio
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.staticfiles import StaticFiles

ROOT = Path(__file__).parents[2]
LONG = bytes(range(256)) * 12_000  # three megabytes


@pytest.fixture(scope="module")
def serving():
    """app.py as Streamlit imports it."""
    spec = importlib.util.spec_from_file_location("serving", ROOT / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def asked(serving, tmp_path):
    """Asks a file server of Starlette's behind `FilesAtOnce`."""
    (tmp_path / "long.js").write_bytes(LONG)
    (tmp_path / "empty.js").write_bytes(b"")
    files = serving.FilesAtOnce(StaticFiles(directory=tmp_path))

    def ask(path, method="GET", **headers):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "method": method,
            "path": path,
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
        }
        sent = []

        async def send(message):
            sent.append(message)

        # In a thread of its own: the browser's tests leave a loop running.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, files(scope, None, send)).result()
        return sent

    return ask


def body(sent):
    return b"".join(message["body"] for message in sent[1:])


def test_a_file_is_sent_whole_in_few_parts(asked):
    start, *parts = sent = asked("/long.js")
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-length"] == b"3072000"
    assert body(sent) == LONG
    assert [part["more_body"] for part in parts] == [True] * 3 + [False]


def test_an_empty_file_ends(asked):
    assert asked("/empty.js")[1:] == [
        {"type": "http.response.body", "body": b"", "more_body": False}
    ]


def test_a_part_of_a_file_is_sent_as_asked(asked):
    sent = asked("/long.js", range="bytes=256-515")
    assert sent[0]["status"] == 206
    assert body(sent) == bytes(range(256)) + bytes(range(4))


def test_the_head_of_a_file_has_no_body(asked):
    sent = asked("/long.js", "HEAD")
    assert sent[0]["status"] == 200 and body(sent) == b""


def test_the_server_sends_its_files_so(serving):
    assert serving.app._user_middleware[0].cls is serving.FilesAtOnce
