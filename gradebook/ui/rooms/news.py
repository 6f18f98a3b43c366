"""What a page shows of a room while the room changes.

The browser asks a small address of this server, which answers when the room
has changed. It writes the counts itself, and tells the page only when the lead
reveals, moves on or closes the room. So a vote draws no page, and no part of a
page is drawn by a clock: Streamlit drops the end of a page's run when a
fragment's run begins just after it (`AppSession` ignores a runner that it has
replaced), and a learner's own vote would not show.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from gradebook.classroom.room import MOST_CHOICES, SHARED
from gradebook.classroom.snapshot import Position, Room
from gradebook.core.formatting import minus
from gradebook.ui import keys
from gradebook.ui.parts.words import safe
from gradebook.ui.rooms import follow, questions, seat
from gradebook.ui.rooms.questions import Question
from gradebook.ui.security import own_path, seat_of

PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component(
    "gradebook_room_news", js=PROGRAM, isolate_styles=False
)
WAIT = 20.0
"""Seconds after which a browser is answered though nothing changed."""
PACE = 0.02
"""Seconds for each learner in the room, until a learner is told of new counts
alone. So their number does not multiply the questions to the server."""
RUN = 0.04
"""Seconds that a server needs to draw one learner's page. The browsers choose
their moments by chance, so that the pages are not all drawn at once."""
CLOSED = {"draw": "closed", "said": "", "have": "closed"}
_next: dict[str, asyncio.Future[Room | None]] = {}
"""The next state of each room that browsers wait for."""


def news(
    room: str,
    part: str = "silent",
    name: str = "",
    place: Position | None = None,
    vote: int | None = None,
    follows: bool = False,
) -> None:
    """Shows a part of the room's counts, and draws the page again when the
    room has gone on.

    part   one of PARTS; "split", the answers to a question that was revealed;
           "silent", no counts
    name   of the question on the page, '' for none
    place  where the lead was when the page was drawn
    vote   the learner's own
    follows  the learner is taken to where the lead goes
    """
    known = replace(seat.rooms().room(room), position=place)
    asked = {
        "part": part,
        "question": name,
        "follows": str(int(follows)),
        "leads": str(int(seat.leading(room))),
        "vote": "" if vote is None else str(vote),
    }
    path = own_path(f"/room-news/{quote(room)}?{urlencode(asked)}")
    key = f"room-news-{part}"
    data = {"asked": path, "leads": asked["leads"], "tab": keys.TAB.get()}
    _mount(
        key=key,
        data=[data | _told(known, asked)],
        width="content" if part in PARTS else "stretch",
        on_draw_change=lambda: None,
        on_tab_change=lambda: keys.TAB.put(keys.widget(key).tab),
    )


async def answer(request: Request) -> JSONResponse:
    """What the browser asks, as soon as it differs from what it has: the counts
    as HTML, a text that changes when the page has to be drawn again, and the
    board after the reveal. A browser that is not in the room hears that it is
    closed."""
    code, asked = request.path_params["room"], request.query_params
    if not await run_in_threadpool(seat.rooms().heard, code, seat_of(request.cookies)):
        return JSONResponse(CLOSED)
    room = await run_in_threadpool(seat.rooms().read, code)
    learners = room.here if room and asked.get("leads") != "1" else 0
    came, before = time.monotonic(), asked.get("have", "")
    while True:
        told = _told(room, asked) if room else CLOSED
        waited = time.monotonic() - came
        if told["have"].split(".")[0] != before.split(".")[0] or waited > WAIT:
            break
        if told["have"] != before and waited > PACE * learners:
            break
        room = await _soon(code)
    if room and asked.get("part") == "so_far" and asked["question"] in room.revealed:
        board = questions.revealed(asked["question"], _vote(asked))
        return JSONResponse(told | {"reveal": board})
    return JSONResponse(told)


def _soon(code: str) -> Awaitable[Room | None]:
    """The room a moment from now, read once for all who wait for it."""
    if code not in _next:
        _next[code] = asyncio.ensure_future(_later(code))
    return asyncio.shield(_next[code])


async def _later(code: str) -> Room | None:
    await asyncio.sleep(SHARED)
    del _next[code]
    return await run_in_threadpool(seat.rooms().read, code)


def _told(room: Room, asked: Mapping[str, str]) -> dict[str, Any]:
    """What is told of the room to a browser that asked for it."""
    told = {"draw": _drawn(room, asked), "said": _said(room, asked)}
    have = f"{told['draw']}.{_short(told['said'])}"
    return told | {"have": have, "within": round(RUN * room.here, 2)}


def _drawn(room: Room, asked: Mapping[str, str]) -> str:
    """Changes when a learner's page has to be drawn again; a lead's page
    changes by the lead's own acts alone."""
    if asked.get("leads") == "1":
        return "lead"
    follows, place = asked.get("follows") == "1", room.position
    revealed = asked.get("question", "") in room.revealed
    leads_to = follow.heading(place) if follows else follow.case(place)
    return _short((revealed, leads_to))


def _short(shown: object) -> str:
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _said(room: Room, asked: Mapping[str, str]) -> str:
    """A part of the room's counts, as HTML. Before the reveal nobody is told
    how the answers split."""
    part, name = asked.get("part", ""), asked.get("question", "")
    if name in room.revealed and part in ("tally", "so_far", "split"):
        question = questions.question(name)
        return split(question, room.counts.get(name, {}), _vote(asked))
    write = PARTS.get(part)
    return write(room, name) if write else ""


def _vote(asked: Mapping[str, str]) -> int | None:
    """The learner's own choice, as its page knows it."""
    vote = asked.get("vote", "")
    return int(vote) if vote.isdecimal() and int(vote) < MOST_CHOICES else None


# The counts, as HTML


def heads(room: Room, _question: str) -> str:
    """How many learners are in the room."""
    verb = "learner is" if room.here == 1 else "learners are"
    return f'<p class="gb-live"><b>{room.here} {verb} here</b></p>'


def tally(room: Room, question: str) -> str:
    """How many have answered, and how many see this question."""
    at = room.present.get(question, 0)
    verb = "is" if at == 1 else "are"
    return (
        f'<p class="gb-live"><b>{_answers(room, question)}</b>;'
        f" {at} of {room.here} {verb} at this question.{_timer(room)}</p>"
    )


def _timer(room: Room) -> str:
    """The minutes that are left, where the lead set a timer."""
    if room.ends is None:
        return ""
    left = math.ceil((room.ends - time.time()) / 60)
    return f" {left} min left." if left > 0 else " Time is up."


def so_far(room: Room, question: str) -> str:
    """How many have answered, for those who wait."""
    return f'<p class="gb-live">{_answers(room, question)} so far.</p>'


PARTS: Mapping[str, Callable[[Room, str], str]] = {
    "heads": heads,
    "tally": tally,
    "so_far": so_far,
}


def _answers(room: Room, question: str) -> str:
    total = room.answers(question)
    return "1 answer" if total == 1 else f"{total} answers"


def split(
    question: Question | None, counts: Mapping[int, int], vote: int | None
) -> str:
    """How the answers split, as numbers and as bars."""
    if question is None:
        return ""
    most = max([*counts.values(), 1])
    lines = []
    for choice, text in enumerate(question.choices):
        count = counts.get(choice, 0)
        marks = ", yours" * (choice == vote) + ", the answer" * (
            choice == question.answer
        )
        lines.append(
            f"<div>{safe(minus(text))}: <b>{count}</b>{marks}"
            f'<i style="width:{7 * count / most:.2f}rem"></i></div>'
        )
    return f'<div class="gb-split">{"".join(lines)}</div>'
