"""A wrong scenario file is refused: file, key, row, expected, found."""

import re
from pathlib import Path

import pytest

import gradebook
from gradebook.cases.scenario import names

FOLDER = Path(__file__).parents[2] / "scenarios"

TEXT = """\
title = "Mine"
bug = "rejected_rows"
kind = "shows"
claim = "A claim."
story = "One. Two. Three."
lesson = "Look."
focus = 1
rows = [
  { prompt = "A", reward = 9.0, mask = [0, 0] },
  { prompt = "A", reward = 1.0, mask = [1, 1] },
  { prompt = "A", reward = 2.0, mask = [1, 0] },
]

[settings]
eps = 1e-6

[prediction]
question = "Who?"
choices = ["You", "I"]
answer = 0
why = "So."
said = ["Right.", "No."]

[expected]
correct = [0.0, "none", 1.0]

[[challenges]]
title = "Try."
goal = "Do."
edits = { columns = ["reward"], most = 1 }
solved = [{ kind = "agree" }]
hint = "Think."
insight = "So it goes."
solution = [{ row = 0, column = "reward", value = 1.5 }]
"""


def but(old, new):
    """The file with one piece replaced."""
    assert (TEXT + "END").count(old) == 1, old
    return (TEXT + "END").replace(old, new).removesuffix("END")


def wrong_cases():
    """The lines of wrong_scenarios.txt."""
    lines = Path(__file__).with_name("wrong_scenarios.txt").read_text().splitlines()
    for line in lines[2:]:
        old, new, key, row, says = (cell.strip() for cell in line.split(" |"))
        text = but(old, new.replace("\\n", "\n"))
        yield pytest.param(text, key, int(row) if row else None, says, id=new)


def load_error(name_or_path):
    with pytest.raises(gradebook.GradebookError) as caught:
        gradebook.load(name_or_path)
    return caught.value


def refused(path, text):
    """The error that loading `text` from `path` gives."""
    if isinstance(text, bytes):
        path.write_bytes(text)
    else:
        path.write_text(text, encoding="utf-8")
    return load_error(path)


def check(error, path, key, row, says, longest=800):
    """The error has its place, and its message says all of it."""
    assert (error.file, error.key, error.row) == (str(path), key, row)
    message = str(error)
    assert message.startswith(str(path)) and len(message) < longest
    assert says in message
    assert not key or f"key '{key}'" in message
    assert row is None or f"row {row}" in message


def test_the_file_that_the_cases_change_is_right(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    assert gradebook.load(path).name == "mine"


@pytest.mark.parametrize("text, key, row, says", [*wrong_cases()])
def test_a_wrong_part_is_named(tmp_path, text, key, row, says):
    path = tmp_path / "mine.toml"
    check(refused(path, text), path, key, row, says)


UNUSUAL = {
    "not UTF-8": (
        but("Mine", "M\xfcne").encode("latin-1"),
        ("", None, "UTF-8, found 'utf-8' codec can't decode byte 0xfc in position 10"),
    ),
    "lists nested deep": ("rows = " + "[" * 5000 + "]" * 5000, ("", None, "recursion")),
    "hexadecimal number of 5000 digits": (
        but("focus = 1", "focus = 0x" + "f" * 5000),
        ("focus", None, "too long to show"),
    ),
    "too many rows": (
        but(
            "rows = [",
            "rows = [" + '{ prompt = "A", reward = 1, mask = [1, 1] },' * 1000,
        ),
        ("rows", None, "at most 1000 items"),
    ),
}


@pytest.mark.parametrize("text, says", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_file_is_refused(tmp_path, text, says):
    path = tmp_path / "mine.toml"
    check(refused(path, text), path, *says)


@pytest.mark.parametrize("key", ["rule", "plan", "title", "focus", "claim"])
def test_a_main_file_needs_every_key(tmp_path, key):
    path = tmp_path / "zero_std_kl.toml"
    text = (FOLDER / path.name).read_text()
    named = re.sub(rf"^({key} =.*|\[{key}\]$[^[]*)", "", text, flags=re.M)
    assert named != text
    check(refused(path, named), path, key, None, "Field required")


@pytest.mark.parametrize("stem", ["zero_std_kl", "zero_std_kl-mine"])
def test_the_file_name_and_the_bug_must_agree(tmp_path, stem):
    path = tmp_path / f"{stem}.toml"
    error = refused(path, TEXT)
    check(error, path, "bug", None, "expected one of zero_std_kl, found")


def test_a_file_that_cannot_be_read(tmp_path):
    for place, says in (
        (tmp_path, "is a directory"),
        (tmp_path / "gone.toml", "no such file"),
    ):
        check(load_error(place), place, "", None, says, longest=9000)
    assert "null" in load_error("a/\0b.toml").found


@pytest.mark.parametrize("name", ["partial_group", "", "..", "partial_groups "])
def test_an_unknown_name_lists_the_known_ones(name):
    error = load_error(name)
    assert error.key == "scenario"
    assert error.expected == "one of " + ", ".join(names())
    assert error.found == repr(name)


@pytest.mark.parametrize("value", [None, 3, b"partial_groups"])
def test_neither_a_name_nor_a_path(value):
    assert load_error(value).key == "scenario"
