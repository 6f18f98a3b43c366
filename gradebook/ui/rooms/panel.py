"""The room on the session page: open one, join one, or what goes on in it."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator
from html import escape
from typing import Any

import segno
import streamlit as st

from gradebook.cases.scenario import names
from gradebook.classroom.codes import LENGTH, normal
from gradebook.classroom.room import LONGEST_NAME, MOST_SEATS, Rooms
from gradebook.classroom.snapshot import Room
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.shell import tool_files
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import download
from gradebook.ui.parts.words import safe
from gradebook.ui.rooms import follow, seat
from gradebook.ui.rooms.bar import (
    joined,
    leave_button,
    problem,
    shut,
    toggle,
    watch,
)
from gradebook.ui.rooms.news import news
from gradebook.ui.rooms.questions import question


def panel() -> None:
    """The section of the session page that is about the room."""
    st.header("The room")
    room = seat.code()
    problem()
    if not room:
        return _door()
    try:
        if seat.leading(room):
            _lead(room)
        elif not seat.rooms().read(room):
            shut(room)
        elif joined(room, ""):
            _learner(room)
    except GradebookError:  # the room was closed while the page ran
        st.rerun()


def _door() -> None:
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown(
            f"**Learn.** Type the code of {LENGTH} characters that the lead shows."
        )
        st.text_input("Code", key="room-code", max_chars=12)
        st.button("Join", key="room-join", on_click=_typed)
    with right.container(border=True, height="stretch"):
        st.markdown(
            "**Lead.** Open a room, which has a short code. The server counts"
            " the learners' predictions without names, and deletes them with the"
            " room: when you close it, or a day after it was last used."
        )
        st.button("Open a room", key="room-open", on_click=seat.open_room)
        st.markdown("**Take a room back** that you led on another device:")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Code of the room", key="room-back-code")
            st.text_input("Lead key", key="room-back-key", type="password")
            st.button("Take it back", key="room-back", on_click=_taken_back)


def _called() -> None:
    seat.act(Rooms.call, keys.widget("room-name"))


def _typed() -> None:
    typed = normal(keys.widget("room-code"))
    if seat.admitted(typed):
        seat.enter(typed)


def _taken_back() -> None:
    room = normal(keys.widget("room-back-code"))
    seat.take_back(room, keys.widget("room-back-key").strip())


def _lead(room: str) -> None:
    known = seat.rooms().room(room)
    link = whole({seat.PARAMETER: seat.invitation(room)})
    with st.container(border=True, key="room-panel"):
        code, picture = st.columns([3, 1], vertical_alignment="center")
        with code:
            st.html(f'<div class="gb-code">{safe(room)}</div>')
            st.markdown("Learners scan the picture, open this link, or type the code:")
            st.code(link, language=None, wrap_lines=True)
        drawn = segno.make(link, micro=False).svg_data_uri(scale=4, light="white")
        picture.html(f'<img alt="The link as a QR code" src="{drawn}">')
        news(room, "heads")
        st.markdown(
            "The links of the plan below keep the room. On a bug's page you see"
            " how many learners have answered. **Reveal** shows the answer to"
            " everybody at once, and how the answers split."
        )
        st.page_link(
            tool_files()["bug_or_not"],
            label="Play “Bug or not?” with the room",
            query_params=seat.carried(),
        )
        with st.expander("Settings of the room"):
            _settings(room, known)
        with st.expander("Results"):
            results(known)
        with st.expander("Keep the lead"):
            st.markdown(
                "A reload keeps it, and so does a crash of the server. On another"
                " device, open your own link, or take the room back with the key."
            )
            if key := keys.LEAD_KEY.get():
                own = whole({seat.PARAMETER: room, seat.LEAD: key})
                st.code(f"{own}\n{key}", language=None, wrap_lines=True)
            else:
                st.button("Make a new lead key", on_click=seat.new_key, args=(room,))
        with st.container(horizontal=True):
            st.button(
                "Reset for the next class",
                key="room-reset",
                on_click=seat.act,
                args=(Rooms.reset,),
            )
            st.button(
                "Delete this class",
                key="room-close",
                on_click=seat.close,
                help="Closes the room and deletes its votes, drafts and names.",
            )


def _settings(room: str, known: Room) -> None:
    """What the lead can change while the class goes on."""
    most = MOST_SEATS if known.most is None else known.most
    ends = known.ends or 0.0
    left = max(0, math.ceil((ends - time.time()) / 60))
    now = {"locked": known.locked, "names": known.names, "most": most, "ends": left}
    for name, value in now.items():
        keys.show(f"room-{name}", value)

    def changed(name: str) -> None:
        value = keys.widget(f"room-{name}")
        if name == "ends":
            value = time.time() + 60 * value if value else None
        seat.act(Rooms.change, **{name: value})

    def change(name: str) -> dict[str, Any]:
        return {"key": f"room-{name}", "on_change": changed, "args": (name,)}

    st.toggle("Locked: nobody new comes in", **change("locked"))
    st.toggle("Ask for first names, which you alone see", **change("names"))
    with st.container(horizontal=True):
        st.number_input("Learners at most", 1, MOST_SEATS, **change("most"), width=180)
        st.number_input("Timer, in minutes", 0, 600, **change("ends"), width=180)
    if known.names:
        names = seat.rooms().names(room, seat.seat())
        st.markdown(words.plain(", ".join(names) or "No names yet."))


def _learner(room: str) -> None:
    place = seat.rooms().room(room).position
    follow.follow(place, "session")
    with st.container(border=True, key="room-panel"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"You are in room **{room}**.")
            follows = toggle()
            leave_button()
        if seat.rooms().room(room).names:
            st.text_input(
                "Your first name, if you like. Only the lead sees it.",
                key="room-name",
                max_chars=LONGEST_NAME,
                on_change=_called,
            )
        if place is None:
            st.markdown("The lead has not opened a bug yet. This page waits.")
        follow.way_to(place, "")
        watch(room, "", False, place, follows=follows)


# What the room said: on the lead's page, as CSV and as a handout


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
    lines = [map(escape, cells) for cells in shown_rows(room)]
    body = "".join(f"<tr><td>{'<td>'.join(line)}</tr>" for line in lines)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>'
        "<title>What the class predicted</title><h1>What the class predicted</h1>"
        f"<table><tr><th>{'<th>'.join(HEADS)}</tr>{body}</table></html>"
    )


def shown_rows(room: Room) -> Iterator[list[str]]:
    """The rows, each question beside its first choice alone."""
    before = ""
    for asked, *cells in rows(room):
        yield ["" if asked == before else asked, *cells]
        before = asked


def results(room: Room) -> None:
    """The results of every question that was revealed."""
    body = list(shown_rows(room))
    if not body:
        st.markdown("The results of each question stand here after its reveal.")
        return
    table(HEADS, body, label="the class's predictions")
    with st.container(horizontal=True):
        download("CSV", "gradebook-class.csv", lambda: as_csv(room), "class-csv")
        download(
            "Handout", "gradebook-class.html", lambda: as_handout(room), "class-html"
        )
