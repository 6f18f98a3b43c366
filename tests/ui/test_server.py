"""What app.py and the pages ask of Streamlit, and what they leave alone."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    # The command line, in the process of `gradebook app`.
    ("gradebook/ui/launch.py", "from streamlit.web.cli import main"),
    # How much each session uploaded (ui/server.py lists what is private).
    ("gradebook/ui/security.py", "from streamlit.runtime import get_instance"),
    # The pace at which a server reads a room for all who wait for its news.
    ("gradebook/ui/rooms/news.py", "await asyncio.sleep(SHARED)"),
}


@pytest.mark.parametrize("fight", FIGHTS)
def test_no_page_fights_streamlit(fight):
    """Nothing waits for another library's timing or acts in its place."""
    found = {
        (str(file.relative_to(ROOT)), line.strip())
        for file in FILES
        for line in file.read_text("utf-8").splitlines()
        if re.search(FIGHTS[fight], line)
    }
    assert found == {pair for pair in ALLOWED if pair in found}


def test_app_py_has_no_logic():
    tree = ast.parse((ROOT / "app.py").read_text("utf-8"))
    kinds = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    assert all(isinstance(line, kinds) for line in tree.body)


BEHIND_A_PROXY = """
import re, sys
from streamlit import config
config.set_option("server.baseUrlPath", sys.argv[1])
import app
from gradebook.cases.scenario import load
from gradebook.ui.board.program import stub
from gradebook.ui.parts.thumbnail import thumbnail
said = [stub("main.js"), thumbnail(load("partial_groups"), False)]
print(*[re.search(r'"(/[^"]*)"', text)[1] for text in said])
from gradebook.ui.server import routes
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
    assert len(paths) == 6
    assert all(re.match("/team/[a-z]+-[a-z]+/", path) for path in paths)
