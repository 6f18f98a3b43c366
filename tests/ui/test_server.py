"""What app.py and the pages ask of Streamlit, and what they leave alone."""

import ast
import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from starlette.requests import Request
from streamlit import config
from streamlit.runtime.secrets import Secrets
from ui.answered import answered

from gradebook.ui import server
from gradebook.ui.rooms import seat

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for pattern in ("app.py", "pages/*.py", "gradebook/ui/**/*.[pj]*")
    for file in sorted(ROOT.glob(pattern))
    if file.suffix in (".py", ".js")
]
FIGHTS = {
    "a sleep": r"\bsleep\(",
    "a page reload": r"location\.(reload|replace|assign)\(|location\s*=[^=]",
    "a synthetic key press": (r"new KeyboardEvent|execCommand|(?<!link)\.click\(\)"),
    "a poll": r"setInterval\(|MutationObserver",
    "a patch of the server": r"\bpathsend\b|setattr\(st\b",
    "a part of Streamlit that is not public": r"(from|import) streamlit\.(runtime|web)",
}
ALLOWED = {
    # How much each session uploaded (ui/server.py lists what is private).
    ("gradebook/ui/security.py", "from streamlit.runtime import get_instance"),
    # The hour after which a server deletes silent rooms again.
    ("gradebook/ui/server.py", "await asyncio.sleep(HOUR)"),
    # The pace at which a server reads a room for all who wait for its news.
    ("gradebook/ui/rooms/news.py", "await asyncio.sleep(SHARED)"),
}


@pytest.mark.parametrize("fight", FIGHTS)
def test_no_page_fights_streamlit(fight):
    """Nothing waits for another library's timing or acts in its place."""
    lines = {
        (str(file.relative_to(ROOT)), line.strip())
        for file in FILES
        for line in file.read_text("utf-8").splitlines()
        if re.search(FIGHTS[fight], line)
    }
    assert lines <= ALLOWED


def test_app_py_has_no_logic():
    tree = ast.parse((ROOT / "app.py").read_text("utf-8"))
    kinds = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    assert all(isinstance(line, kinds) for line in tree.body)


BEHIND_A_PROXY = """
import re, sys
from streamlit import config
config.set_option("server.baseUrlPath", sys.argv[1])
import app
from gradebook.ui.board.program import stub
from gradebook.ui.server import routes
print(re.search(r'"(/[^"]*)"', stub("main"))[1])
print(*[route.path for route in routes()])
"""


def test_the_apps_own_files_stand_below_the_base_path():
    run = subprocess.run(
        [sys.executable, "-c", BEHIND_A_PROXY, "team/"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = run.stdout.split()
    assert len(paths) == 4
    assert all(re.match("/team/[a-z]+-[a-z]+/", path) for path in paths)


@pytest.mark.parametrize(
    "name, status", [("main.js", 200), ("board.css", 200), ("../view.py", 404)]
)
def test_the_program_is_served_file_by_file_and_nothing_else_is(name, status):
    scope = {"type": "http", "path_params": {"name": name}}
    answer = answered(server.program(Request(scope)))
    assert answer.status_code == status
    assert ("immutable" in answer.headers.get("cache-control", "")) == (status == 200)


@pytest.mark.parametrize("named", ["by nobody", "in the secrets", "in both"])
def test_the_database_is_the_environments_the_secrets_or_a_file(
    named, tmp_path, monkeypatch
):
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("environment", "secret")]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("GRADEBOOK_DATABASE_URL", "")
    monkeypatch.setattr(seat.st, "secrets", Secrets())
    path, files = tmp_path / "secrets.toml", config.get_option("secrets.files")
    config.set_option("secrets.files", [str(path)])
    expected = f"sqlite:///{tmp_path}/gradebook/rooms.db"
    if named != "by nobody":
        path.write_text(f'[connections.gradebook]\nurl = "{urls[1]}"\n')
        expected = urls[1]
    if named == "in both":
        expected = urls[0]
        monkeypatch.setenv("GRADEBOOK_DATABASE_URL", expected)
    try:
        opened = seat._rooms.__wrapped__()
    finally:
        config.set_option("secrets.files", files)
    assert str(opened._store._reading.url) == expected


def test_a_server_deletes_silent_rooms_without_a_visit(monkeypatch):
    swept = threading.Event()
    monkeypatch.setattr(server, "warm_up", lambda: None)
    monkeypatch.setattr(server, "sweep", swept.set)

    async def stands():
        async with server.lifespan(None):
            return await asyncio.to_thread(swept.wait, 30)

    assert answered(stands())


def test_two_pages_are_drawn_at_a_time_and_nobody_waits_for_ever(monkeypatch):
    third = threading.Event()

    def draw():
        with server.turn():
            third.set()

    thread = threading.Thread(target=draw)
    with server.turn():
        with pytest.raises(ZeroDivisionError), server.turn():
            thread.start()
            assert not third.wait(0.1)
            raise ZeroDivisionError  # a page that fails lets the next one in
        thread.join(30)
        assert third.is_set()
        monkeypatch.setattr(server, "PATIENCE", 0.01)
        with server.turn(), server.turn(), server.turn():
            pass
