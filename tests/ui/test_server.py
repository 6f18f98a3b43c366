"""What app.py and the pages ask of Streamlit, and what they leave alone."""

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
    "a patch of the server": r"middleware|\bpathsend\b|setattr\(st\b",
    "a part of Streamlit that is not public": r"streamlit\.(runtime|web)\b",
}
ALLOWED = {
    # The command line, in the process of `gradebook app`.
    ("gradebook/ui/launch.py", "from streamlit.web.cli import main"),
    # Streamlit has no public way to close a session whose learner left.
    ("gradebook/ui/left.py", "from streamlit.runtime import get_instance"),
    (
        "gradebook/ui/left.py",
        "from streamlit.runtime.scriptrunner import get_script_run_ctx",
    ),
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


def test_app_py_is_readable_in_one_screen():
    assert len((ROOT / "app.py").read_text("utf-8").splitlines()) <= 60


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
print(*[route.path for route in app.files])
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


PREPARED = """
import gc, app
from unittest.mock import Mock
app.prepare(Mock())  # a loop that calls nothing
import gradebook, pandas, torch
log = {"step": [1, 1], "prompt": ["a", "a"], "reward": [0.0, 1.0]}
gradebook.check(pandas.DataFrame({**log, "advantage": [-0.7, 0.7]}))
print(id(torch.Tensor) in set(map(id, gc.get_objects())))
print(gc.get_freeze_count())
"""


@pytest.mark.long
def test_torch_is_out_of_garbage_collection_and_stays_so():
    """A garbage collection that visits torch's objects takes 0.1 s. A check
    of a log gives nothing back that was taken out."""
    run = [sys.executable, "-c", PREPARED]
    found = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    collected, frozen = found.stdout.split()
    assert collected == "False", found.stderr
    assert int(frozen) > 100_000
