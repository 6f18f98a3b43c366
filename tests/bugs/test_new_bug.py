"""A bug costs three files: a module, a scenario, a page. Home, navigation,
page and tests find it with nothing else changed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")

MODULE = '''\
"""Unscaled: a made-up bug, the division by the spread left out."""

from __future__ import annotations

import torch
from torch import Tensor


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`score - baseline` on credited rows, else 0. float [R].

    The trainer sees advantages as large as its rewards.
    """
    return torch.where(credited, score - baseline, 0)
'''

SCENARIO = """\
title = "Unscaled"
bug = "unscaled"
kind = "shows"
claim = "The spread is computed and never used."
story = "The trainer subtracts the mean. It computes the deviation. It forgets to divide."
lesson = "Row 0 is 10 and not 0.707."
trainer = "Nobody's"
status = "open"
status_note = "Made up."
rule = "What is computed is used."
focus = 0
controls = ["eps"]
rows = [
  { prompt = "A", reward = 20.0 },
  { prompt = "A", reward = 0.0 },
]
sources = [{ label = "a report", url = "https://example.org/1" }]

[affected]
trainer = "Nobody's"
versions = "all"
keys = ["scale: true"]
look = "Search for the division."
workaround = "Divide."

[record]
columns = ["prompt"]
in_advantages = true
couples_prompts = false
phrase = "centred rewards that are not divided"
correct_phrase = "rewards divided by their spread"
tells = "a prompt or group id"
would_tell = "a step with a group whose deviation is not 1"
laws = ["shift"]

[settings]
eps = 1e-9

[prediction]
question = "Row 0?"
choices = ["0.707", "10"]
answer = 1
why = "20 - 10."

[telltale]
kind = "scale"
text = "Advantages as large as rewards."

[expected]
# Mean 10, deviation sqrt(200) = 14.142136.
correct = [0.707107, -0.707107]
faulty = [10.0, -10.0]
"""

PAGE = '''\
"""Unscaled: the division by the spread left out."""

from gradebook.ui.pages.bug import bug_page

bug_page("unscaled")
'''

# Run in the copy, in a process of its own: this one knows the old bugs.
VISIT = """
import json, sys
sys.path.insert(0, "tests")
import gradebook
from conftest import Visit
page = Visit("unscaled")
home = Visit()
page_said, home_said = page.text, home.text
print(json.dumps({
    "bugs": gradebook.BUGS,
    "stage": gradebook.bug("unscaled").stage,
    "marks": [sorted(side.items()) for side in page.marks()],
    "page": page_said,
    "home": home_said,
    "cards": len(home.pictures),
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with the bug's three files dropped in."""
    there = tmp_path_factory.mktemp("project") / "gradebook"
    shutil.copytree(ROOT, there, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    (there / "gradebook/bugs/unscaled.py").write_text(MODULE)
    (there / "scenarios/unscaled.toml").write_text(SCENARIO)
    (there / "pages/99_unscaled.py").write_text(PAGE)
    return there


def python(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_files_are_as_short_as_promised():
    code = [line for line in MODULE.splitlines() if line.strip()]
    assert len(code) <= 15
    assert len(PAGE.splitlines()) == 5


def test_home_page_and_library_find_a_new_bug(copy):
    done = python(copy, "-c", VISIT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "unscaled" in found["bugs"]
    assert found["stage"] == "standardized"
    correct, faulty = found["marks"]
    assert correct == [[0, pytest.approx(0.707107)], [1, -correct[0][1]]]
    assert faulty == [[0, 10], [1, -10]]
    assert found["cards"] == len(found["bugs"])
    assert "The spread is computed and never used." in found["home"]
    assert (
        "return torch.where(credited, score - baseline, 0)" in (found["page"])
    )


def test_the_tests_find_a_new_bug_and_pass(copy):
    files = (
        "ui/test_pages",
        "ui/test_page_controls",
        "ui/test_page_edits",
        "analysis/test_comparison",
        "analysis/test_source",
    )
    done = python(
        copy,
        "-m",
        "pytest",
        "-q",
        "-k",
        "unscaled",
        "-p",
        "no:cacheprovider",
        *(f"tests/{name}.py" for name in files),
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
