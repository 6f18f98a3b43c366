"""States as a learner leaves them, for what is taken home."""

import csv
import io
from dataclasses import replace

import gradebook
from gradebook.cases.state import start
from gradebook.output.pytest_file import pytest_file

LINK = "https://example.org/zero_std_kl?v=1&s=x"
NASTY = [
    'say "hi"',
    "it's",
    "'''",
    '"""',
    "a\\",
    "a\nb",
    "a\r\nb",
    "tab\there",
    "{braces} %s {0}",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@sum",
    "x;=1+1",
    "a,b",
    "\u2028\u202e",
    "\x00\x1b",
    "日本語🎓",
    "\\U0001F600",
    "." * 150,
    "# comment",
    "]]\nassert False",
]


def opened(name, **typed):
    state = start(gradebook.load(name))
    return replace(state, typed={**state.typed, **typed})


def pytest_text(state):
    return pytest_file(state, LINK).text


def labelled(state, labels):
    """The state with other prompt labels, one a row."""
    cells = [labels[row % len(labels)] for row in range(state.rows)]
    return replace(state, table=state.table.with_column("prompt", cells))


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))
