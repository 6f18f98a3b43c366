"""What the room said: on the lead's page, as CSV and as a handout."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from html import escape

import streamlit as st

from gradebook.cases.scenario import names
from gradebook.classroom.snapshot import Room
from gradebook.core.formatting import minus
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import download
from gradebook.ui.rooms.questions import question

HEADS = ["question", "choice", "votes", "answer"]
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto}"
    "table{border-collapse:collapse}th,td{padding:.2rem 1rem .2rem 0;text-align:left;"
    "vertical-align:top}td:first-child:not(:empty),td:first-child:not(:empty)~td"
    "{border-top:1px solid #bbb}"
)


def rows(room: Room) -> Iterator[list[str]]:
    """Each choice of each question that was revealed: the question, the
    choice, its votes, and "yes" where it is the answer. The cases come first, as
    on their pages; then training runs, and reports by their number."""
    cases = [name for name in names() if name in room.revealed]
    others = sorted(room.revealed - {*cases}, key=lambda name: (len(name), name))
    for name in (*cases, *others):
        asked, counts = question(name), room.counts.get(name, {})
        if asked is None:
            continue
        for choice, text in enumerate(asked.choices):
            right = "yes" if choice == asked.answer else ""
            votes = str(counts.get(choice, 0))
            yield [minus(asked.text), minus(text), votes, right]


def as_csv(room: Room) -> str:
    """The results as CSV."""
    file = io.StringIO()
    csv.writer(file).writerows([HEADS, *rows(room)])
    return file.getvalue()


def as_handout(room: Room) -> str:
    """The results as one page of HTML that needs nothing else."""
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in shown(room))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>'
        "<title>What the class predicted</title><h1>What the class predicted</h1>"
        f"<table><tr><th>{'<th>'.join(HEADS)}</tr>{body}</table></html>"
    )


def shown(room: Room) -> Iterator[list[str]]:
    """The rows, each question beside its first choice alone."""
    before = ""
    for asked, *cells in rows(room):
        yield ["" if asked == before else asked, *cells]
        before = asked


def results(room: Room) -> None:
    """The results of every question that was revealed."""
    body = list(shown(room))
    if not body:
        st.markdown("The results of each question stand here after its reveal.")
        return
    table(HEADS, body, label="the class's predictions")
    with st.container(horizontal=True):
        download("CSV", "gradebook-class.csv", lambda: as_csv(room), "class-csv")
        download(
            "Handout", "gradebook-class.html", lambda: as_handout(room), "class-html"
        )
