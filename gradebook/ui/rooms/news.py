"""What a page shows of a room while the room changes.

The browser asks a small address of this server twice a second. It writes the
counts itself, and tells the page only when the lead reveals, moves on or
closes the room. So a vote draws no page, and no part of a page is drawn by a
clock: Streamlit drops the end of a page's run when a fragment's run begins
just after it (`AppSession` ignores a runner that it has replaced), and a
learner's own vote would not show.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from gradebook.bugs import BUGS
from gradebook.classroom.room import Position
from gradebook.ui.own_path import own_path
from gradebook.ui.rooms import counts, follow, seat

PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component(
    "gradebook_room_news", js=PROGRAM, isolate_styles=False
)


def news(
    room: str,
    part: str = "silent",
    question: str = "",
    place: Position | None = None,
    choices: Sequence[str] = (),
    answer: int | None = None,
) -> None:
    """Shows a part of the room's counts, and draws the page again when the
    room has gone on.

    part      one of counts.PARTS; "split", for the lead; "silent", no counts
    question  what stands on the page, '' for none
    place     where the lead was when the page was drawn
    choices   of the question, and which of them is right, for its split
    """
    own = seat.seat()
    follows = bool(follow.following())
    leads = seat.leading(room)
    asked = {
        "part": part,
        "question": question,
        "follows": int(follows),
        "leads": int(leads),
        "choices": json.dumps([*choices]),
        "answer": "" if answer is None else answer,
    }
    _mount(
        key=f"room-news-{part}",
        data=[
            {
                "asked": own_path(
                    f"/room-news/{quote(room)}?{urlencode(asked)}"
                ),
                "draw": _drawn(room, question, leads, follows, place),
                "said": _said(room, own, part, question, choices, answer),
            }
        ],
        width="content" if part in ("tally", "so_far") else "stretch",
        on_draw_change=lambda: None,
    )


async def answer(request: Request) -> JSONResponse:
    """What the browser asks: the counts as HTML, and a text that changes
    when the page has to be drawn again."""
    room, asked = request.path_params["room"], request.query_params
    own = request.cookies.get(seat.SEAT_COOKIE, "")
    known = seat.rooms()
    if not known.heard(room, own):
        return JSONResponse({"draw": "closed", "said": ""})
    question, right = asked.get("question", ""), asked.get("answer", "")
    leads, follows = (asked.get(name) == "1" for name in ("leads", "follows"))
    place = known.position(room)
    choices = json.loads(asked.get("choices", "[]"))
    return JSONResponse(
        {
            "draw": _drawn(room, question, leads, follows, place),
            "said": _said(
                room,
                own,
                asked.get("part", ""),
                question,
                choices,
                int(right) if right else None,
            ),
        }
    )


def _drawn(
    room: str,
    question: str,
    leads: bool,
    follows: bool,
    place: Position | None,
) -> str:
    """Changes when a learner's page has to be drawn again; a lead's page
    changes by the lead's own acts alone."""
    if leads:
        return "lead"
    edits = follows and place is not None and place.page in BUGS
    shown = (
        bool(question) and seat.rooms().revealed(room, question),
        place if edits else follow.case(place),
    )
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _said(
    room: str,
    own: str,
    part: str,
    question: str,
    choices: Sequence[str],
    answer: int | None,
) -> str:
    """A part of the room's counts, as HTML. The split is the lead's alone."""
    known = seat.rooms()
    if part == "split":
        if not known.key(room, own):
            return ""
        return counts.split(choices, known.counts(room, question), answer)
    write = counts.PARTS.get(part)
    return write(known, room, question) if write else ""
