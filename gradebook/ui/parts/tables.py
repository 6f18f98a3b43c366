"""Charts, and tables of numbers as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from gradebook.core.formatting import settled, signed
from gradebook.output.charts import INK, Figure, MapPicture, Ready, Timeline
from gradebook.output.tables import table_csv
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import download
from gradebook.ui.parts.words import safe


def table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers: Sequence[int] | range = (),
    at: int | None = None,
    heads: int = 0,
    label: str = "",
) -> None:
    """A plain table; `numbers` are columns aligned at the decimal point,
    `at` the row to mark, `heads` how many first cells name their row."""

    def line(tag: str, cells: Sequence[str], mark: str = "") -> str:
        inner = ""
        for c, cell in enumerate(cells):
            kind = tag if cell else "td"  # an empty header names nothing
            style = " class=n" if c in numbers else ""
            if c < heads and tag == "td" and cell:
                inner += f'<th scope="row">{safe(cell)}</th>'
                continue
            inner += f"<{kind}{style}>{safe(cell)}</{kind}>"
        return f"<tr{mark}>{inner}</tr>"

    rows = "".join(
        line("td", cells, ' class="at"' if r == at else "")
        for r, cells in enumerate(body)
    )
    label = safe("Numbers: " + (label or ", ".join(h for h in head if h)))
    st.html(
        f'<div class="gb" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{line('th', head)}</thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


def chart(figure: Figure, **said: Any) -> None:
    """The figure, in its own colours and not the theme's."""
    st.plotly_chart(Ready(figure), theme=None, **said)


def ink() -> str:
    """The colour of axis text under the visitor's theme."""
    return INK.get(st.context.theme.type or "light", INK["light"])


def prompts_of(draft: Draft) -> list[str]:
    """The rows' prompts as typed; by number where the table has moved on
    from the batch that was compared."""
    typed, batch = list(draft.table["prompt"]), draft.comparison.batch
    if len(typed) == batch.rows:
        return typed
    return [str(p) for p in batch.prompt.tolist()]


# A picture's numbers as a table: made when it is asked for, so that nobody else waits
# for it


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
        shown_tables(name, made())


def shown_tables(name: str, tables: Sequence[Numbers]) -> None:
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
