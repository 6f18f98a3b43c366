"""No code outside gradebook/bugs/ names a bug: what is known of one comes from its
record."""

import re
from pathlib import Path

import gradebook

ROOT = Path(__file__).parents[2]
BUG = "|".join(gradebook.BUGS)
QUOTED = rf"""(["'])(?:[^"'\n]*[ .])?({BUG})(?:[ .][^"'\n]*)?\1"""
NAMED = re.compile(rf"{QUOTED}|bugs(?:\.| import )({BUG})\b")
HEADERS = {"gradebook/core/columns.py": {"prompt_text"}}
"""Headers of trainers' logs that happen to read as a bug's name."""


def named(pattern):
    """The bugs that each file names, but for its docstrings."""
    bugs = {}
    for path in ROOT.glob(pattern):
        code = re.sub(r'""".*?"""', "", path.read_text("utf-8"), flags=re.S)
        found = {a or b for _, a, b in NAMED.findall(code)}
        if found and path.parent.name != "bugs":
            bugs[str(path.relative_to(ROOT))] = found
    return bugs


def test_no_file_of_the_package_names_a_bug():
    files = [named(f"gradebook/**/*.{end}") for end in ("py", "js", "css", "jinja")]
    assert files == [HEADERS, {}, {}, {}]
    assert named("app.py") == {}


def test_a_page_names_its_own_bug_only():
    for path, bugs in named("pages/*.py").items():
        assert [Path(path).stem] == [*bugs]
