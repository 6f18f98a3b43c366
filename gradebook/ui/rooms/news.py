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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from gradebook.bugs import BUGS
from gradebook.classroom.room import Position, Rooms
from gradebook.core.formatting import minus
from gradebook.ui.own_path import own_path
from gradebook.ui.parts.words import safe
from gradebook.ui.rooms import follow, seat

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

    part      one of PARTS; "split", for the lead; "silent", no counts
    question  what stands on the page, '' for none
    place     where the lead was when the page was drawn
    choices   of the question, and which of them is right, for its split
    """
    asked = {
        "part": part,
        "question": question,
        "follows": str(int(follow.following())),
        "leads": str(int(seat.leading(room))),
        "choices": json.dumps([*choices]),
        "answer": "" if answer is None else str(answer),
    }
    path = own_path(f"/room-news/{quote(room)}?{urlencode(asked)}")
    _mount(
        key=f"room-news-{part}",
        data=[{"asked": path, **_told(room, seat.seat(), asked, place)}],
        width="content" if part in ("tally", "so_far") else "stretch",
        on_draw_change=lambda: None,
    )


async def answer(request: Request) -> JSONResponse:
    """What the browser asks: the counts as HTML, and a text that changes
    when the page has to be drawn again."""
    room, asked = request.path_params["room"], request.query_params
    own, known = request.cookies.get(seat.SEAT_COOKIE, ""), seat.rooms()
    if not known.heard(room, own):
        return JSONResponse({"draw": "closed", "said": ""})
    return JSONResponse(_told(room, own, asked, known.position(room)))


def _told(
    room: str, own: str, asked: Mapping[str, str], place: Position | None
) -> dict[str, str]:
    """What is told of the room to the seat `own`, which asked for it."""
    return {
        "draw": _drawn(room, asked, place),
        "said": _said(room, own, asked),
    }


def _drawn(room: str, asked: Mapping[str, str], place: Position | None) -> str:
    """Changes when a learner's page has to be drawn again; a lead's page
    changes by the lead's own acts alone."""
    if asked.get("leads") == "1":
        return "lead"
    follows, question = asked.get("follows") == "1", asked.get("question", "")
    edits = follows and place is not None and place.page in BUGS
    shown = (
        bool(question) and seat.rooms().revealed(room, question),
        place if edits else follow.case(place),
    )
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _said(room: str, own: str, asked: Mapping[str, str]) -> str:
    """A part of the room's counts, as HTML. The split is the lead's alone."""
    known, part = seat.rooms(), asked.get("part", "")
    question, right = asked.get("question", ""), asked.get("answer")
    if part == "split":
        if not known.key(room, own):
            return ""
        choices = json.loads(asked.get("choices", "[]"))
        counts = known.counts(room, question)
        return split(choices, counts, int(right) if right else None)
    write = PARTS.get(part)
    return write(known, room, question) if write else ""


# The counts, as HTML


def heads(known: Rooms, room: str, _question: str) -> str:
    """How many learners are in the room."""
    here = known.seats(room)
    verb = "learner is" if here == 1 else "learners are"
    return f'<p class="gb-live"><b>{here} {verb} here</b></p>'


def tally(known: Rooms, room: str, question: str) -> str:
    """How many have answered, and how many see this question."""
    at, here = known.seats_at(room, question), known.seats(room)
    verb = "is" if at == 1 else "are"
    return (
        f'<p class="gb-live"><b>{_answers(known, room, question)}</b>;'
        f" {at} of {here} {verb} at this question.</p>"
    )


def so_far(known: Rooms, room: str, question: str) -> str:
    """How many have answered, for those who wait."""
    said = _answers(known, room, question)
    return f'<p class="gb-live">{said} so far.</p>'


PARTS: Mapping[str, Callable[[Rooms, str, str], str]] = {
    "heads": heads,
    "tally": tally,
    "so_far": so_far,
}


def _answers(known: Rooms, room: str, question: str) -> str:
    total = sum(known.counts(room, question).values())
    return "1 answer" if total == 1 else f"{total} answers"


def split(
    choices: Sequence[str],
    counts: Mapping[int, int],
    answer: int | None = None,
    mine: int | None = None,
) -> str:
    """How the answers split, as numbers and as bars.

    answer  the right choice, once it may be shown
    mine    this learner's choice
    """
    most = max([*counts.values(), 1])
    lines = []
    for choice, text in enumerate(choices):
        count = counts.get(choice, 0)
        marks = [", yours"] if choice == mine else []
        if choice == answer:
            marks.append(", the answer")
        lines.append(
            f"<div>{safe(minus(text))}: <b>{count}</b>{''.join(marks)}"
            f'<i style="width:{7 * count / most:.2f}rem"></i></div>'
        )
    return f'<div class="gb-split">{"".join(lines)}</div>'
