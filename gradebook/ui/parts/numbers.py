"""A picture's numbers as a table: made when it is asked for, so that nobody
else waits for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.charts import MapPicture, Timeline
from gradebook.output.tables import table_csv
from gradebook.ui.parts import words
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import download

MOST_INLINE = 32
FILE = re.compile(r"[^\w.-]+")
"""What no file's name should hold."""


@dataclass(frozen=True)
class Numbers:
    """A table of what a picture shows: text as it is, numbers in full; the
    first `heads` cells of a row name it."""

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[Any]]
    heads: int = 1


def offered(what: str, name: str, made: Callable[[], Sequence[Numbers]]) -> None:
    """The switch, and behind it the tables."""
    if st.toggle(f"Show {what} as a table", key=f"numbers-{name}"):
        shown(name, made())


def shown(name: str, tables: Sequence[Numbers]) -> None:
    """The tables, or a CSV of each that is too long for a page."""
    for at, one in enumerate(tables):
        if one.title:
            st.markdown(f"**{words.plain(one.title)}**")
        if len(one.body) <= MOST_INLINE:
            _inline(one)
            continue
        download(
            f"{len(one.body):,} rows as CSV",
            FILE.sub("-", f"{name}-{one.title or 'numbers'}.csv"),
            partial(table_csv, one.head, one.body),
            f"numbers-file-{name}-{at}",
        )


def _inline(one: Numbers) -> None:
    table(
        one.head,
        [[_text(cell) for cell in row] for row in one.body],
        numbers=range(one.heads, len(one.head)),
        heads=one.heads,
        label=one.title,
    )


def _text(cell: Any) -> str:
    return signed(settled(cell)) if isinstance(cell, float) else str(cell)


def of_map(picture: MapPicture) -> list[Numbers]:
    """Both engines' matrices: a line for each moved row, a column for each
    row that moves it, the prompt beside the number."""
    named = [f"{r} {prompt}" for r, prompt in enumerate(picture.prompts)]
    sides = zip(picture.names, (picture.correct, picture.faulty))
    return [
        Numbers(
            f"{side}: row moved, by row",
            ["row moved", *(f"by {name}" for name in named)],
            [[name, *line] for name, line in zip(named, lines)],
        )
        for side, lines in sides
    ]


def of_timeline(picture: Timeline) -> list[Numbers]:
    """Each step's verdict, distance and flips."""
    lines = zip(picture.steps, picture.verdicts, picture.distances, picture.flips)
    body = [[step, said, off, int(flips)] for step, said, off, flips in lines]
    return [Numbers("", ["step", "verdict", "off by", "flips"], body, 2)]
