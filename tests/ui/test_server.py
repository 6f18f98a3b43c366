"""What the app's server does, and what it needs of Streamlit."""

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import streamlit as st
from starlette.requests import Request
from starlette.routing import Match
from streamlit import config
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.secrets import Secrets
from ui.answered import answered

from gradebook.ui import program, server, turns
from gradebook.ui.rooms import seat

ROOT = Path(__file__).parents[2]


def python(*code):
    """What the code prints, run in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", *code]
    given = {"cwd": ROOT, "env": environment, "stdout": subprocess.PIPE, "text": True}
    return subprocess.run(command, check=True, **given).stdout


FIGHTS = (
    r"location\.(reload|replace|assign)\(|location\s*=[^=]|new KeyboardEvent"
    r"|execCommand|(?<!link)\.click\(\)|setInterval\(|MutationObserver"
)


def test_no_program_in_the_browser_fights_streamlit():
    """Nothing waits for another library's timing or acts in its place. (Of Python,
    ruff says so: pyproject.toml.)"""
    for file in (ROOT / "gradebook/ui").rglob("*.js"):
        assert not re.search(FIGHTS, file.read_text("utf-8")), file.name


BEHIND_A_PROXY = """
import re, sys
from streamlit import config
config.set_option("server.baseUrlPath", sys.argv[1])
import app
from gradebook.ui.program import stub
from gradebook.ui.server import routes
print(re.search(r'"(/[^"]*)"', stub("main"))[1])
print(*[route.path for route in routes()])
"""


def test_the_apps_own_files_are_below_the_base_path():
    paths = python(BEHIND_A_PROXY, "team/").split()
    assert len(paths) == 5
    assert all(re.match("/team/[a-z]+-[a-z]+/|/team/map$", path) for path in paths)


@pytest.mark.parametrize(
    "asked, base, sent_to",
    [("/map", "", "/"), ("/map?present=1", "", "/?present=1"), ("/map", "a", "/a/")],
)
def test_the_old_address_of_the_map_leads_to_home(asked, base, sent_to):
    """The page Map became Home. Links to it were sent, so its address still works."""
    before = config.get_option("server.baseUrlPath")
    config.set_option("server.baseUrlPath", base)
    try:
        path, _, query = asked.partition("?")
        scope = {"type": "http", "method": "GET", "path": server.own_path(path)}
        scope |= {"query_string": query.encode(), "headers": []}
        (route,) = (r for r in server.routes() if r.matches(scope)[0] == Match.FULL)
        answer = answered(route.endpoint(Request(scope)))
    finally:
        config.set_option("server.baseUrlPath", before)
    assert answer.status_code == 307 and answer.headers["location"] == sent_to


@pytest.mark.parametrize(
    "name, status", [("program.js", 200), ("board.css", 200), ("../view.py", 404)]
)
def test_the_program_and_its_sheets_are_served_and_nothing_else_is(name, status):
    scope = {"type": "http", "path_params": {"name": name}}
    answer = answered(server.program(Request(scope)))
    assert answer.status_code == status
    assert ("immutable" in answer.headers.get("cache-control", "")) == (status == 200)


FROM = 'import { b, c } from "./one.js";\n'
DEFAULT = "export default 1;\n"


def test_the_programs_modules_are_one_file_in_the_order_of_their_imports(tmp_path):
    (tmp_path / "one.js").write_text("export const b = 2;\nexport const c = 3;\n")
    (tmp_path / "two.js").write_text(f"{FROM}export const a = b + c;\n")
    joined = program.joined(tmp_path)
    assert joined.index("modules.one =") < joined.index("modules.two =")
    assert "const { b, c } = modules.one;\nconst a = b + c;\nreturn { a };" in joined


@pytest.mark.parametrize("line", [DEFAULT, FROM.replace("import {", "import a, {")])
def test_a_module_with_another_form_of_import_or_export_is_refused(line, tmp_path):
    (tmp_path / "one.js").write_text(line)
    with pytest.raises(ValueError, match="one.js: (import|export)"):
        program.joined(tmp_path)


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
        opened = seat.rooms.__wrapped__()
    finally:
        config.set_option("secrets.files", files)
    assert str(opened.database.engine.url) == expected


FIRST_VISITS = """
import sys
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from gradebook.ui.server import VISIT
for page in ("home", "partial_groups"):
    app = AppTest.from_file(str(VISIT), default_timeout=600)
    app._page_hash = calc_hash(page)
    print(app.run().title[0].value)
print("sqlalchemy" in sys.modules)
"""


def test_a_first_visit_without_a_room_opens_no_database():
    home, bug, opened = python(FIRST_VISITS).splitlines()
    assert home.endswith("rewards into updates") and bug == "Partial groups"
    assert opened == "False"


def test_a_server_deletes_silent_rooms_without_a_visit(monkeypatch):
    swept = threading.Event()
    monkeypatch.setattr(server, "warm_up", lambda: None)
    monkeypatch.setattr(server, "sweep", swept.set)
    monkeypatch.setattr(server, "PAUSE", 0.01)

    async def stands():
        async with server.lifespan(None):
            return await asyncio.to_thread(swept.wait, 30)

    assert answered(stands())


def test_a_server_lets_go_of_its_garbage_without_a_visit(monkeypatch):
    class Loop:
        pass

    gone, loop = threading.Event(), Loop()
    loop.itself = loop
    weakref.finalize(loop, gone.set)
    del loop
    monkeypatch.setattr(server, "warm_up", lambda: None)
    monkeypatch.setattr(server, "sweep", lambda: None)
    monkeypatch.setattr(server, "PAUSE", 0.01)

    async def stands():
        async with server.lifespan(None):
            return await asyncio.to_thread(gone.wait, 30)

    gc.disable()
    try:
        assert answered(stands())
    finally:
        gc.enable()


def test_two_pages_are_drawn_at_a_time_and_every_page_is_drawn(monkeypatch):
    def draw(drawn, goes_on):
        with turns.turn(), turns.turn():  # what is drawn inside takes no second turn
            drawn.set()
            assert goes_on.wait(30)

    def drawing(goes_on):
        drawn = threading.Event()
        threading.Thread(target=draw, args=(drawn, goes_on)).start()
        return drawn

    goes_on = threading.Event()
    first = drawing(goes_on)
    assert first.wait(30)
    with pytest.raises(ZeroDivisionError), turns.turn():
        third = drawing(goes_on)
        assert not third.wait(0.1)
        raise ZeroDivisionError  # a page that fails lets the next one in
    assert third.wait(30)
    monkeypatch.setattr(turns, "PATIENCE", 0.01)
    assert drawing(goes_on).wait(30)
    goes_on.set()


# What Gradebook uses of Streamlit beside its public names (the list at the top of
# gradebook/ui/server.py): each test says what breaks without it

SERVER = """
import asyncio, json
import streamlit as st
from streamlit.runtime import get_instance
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from gradebook.ui.security import lives, parked
from gradebook.ui.server import VISIT

app = st.App(VISIT)  # without the layers before it

async def status(method, path):
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    scope |= {"query_string": b"", "root_path": "", "scheme": "http"}
    answered = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        answered.append(message.get("status"))

    await app(scope, receive, send)
    return answered[0]

async def ask():
    found = {"metrics": await status("GET", "/_stcore/metrics")}
    found["upload"] = await status("OPTIONS", "/_stcore/upload_file/one/file")
    found["nowhere"] = await status("OPTIONS", "/_stcore/no_such_path/one/file")
    found["lives"] = lives("nobody")
    file = UploadedFileRec("file", "run.csv", "text/csv", b"four")
    get_instance().uploaded_file_mgr.add_file("one", file)
    print(json.dumps(found | {"parked": parked()}))

asyncio.run(ask())
"""


@pytest.fixture(scope="module")
def inside():
    """What a server of Streamlit's own says of itself."""
    return json.loads(python(SERVER))


def test_get_instance_knows_the_sessions_and_what_each_one_uploaded(inside):
    assert inside["parked"] == {"one": len(b"four")}
    assert inside["lives"] is False


def test_uploads_and_metrics_have_the_paths_that_are_guarded(inside):
    assert inside["metrics"] == 200 and inside["upload"] == 204
    assert inside["nowhere"] != 204


def test_the_name_in_annotations_is_what_streamlit_gives():
    assert isinstance(st.container(), DeltaGenerator)


def test_full_collections_are_rare_and_pass_over_what_the_server_imported():
    """torch and the pages, which stay as long as the server."""
    program = (
        "import gc\n"
        "from gradebook.ui.server import warm_up\n"
        "warm_up()\n"
        "print(gc.get_freeze_count(), len(gc.get_objects()), *gc.get_threshold())"
    )
    frozen, looked_through, *limits = map(int, python(program).split())
    assert frozen > 100_000 and looked_through < frozen / 10
    assert limits == [700, 10, 100]
