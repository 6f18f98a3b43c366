"""What a change of the room does to a page: it shows new counts, and takes
followers to the lead's question and stage.

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
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from gradebook.cases.reports import CHOICES, named
from gradebook.cases.scenario import load, names
from gradebook.classroom.plan import CLOSING, OPENING, TRAINING, about_training
from gradebook.core.formatting import minus
from gradebook.training.study import studied
from gradebook.ui.board.view import lesson
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import SKIPPED, Draft, Guess, Progress
from gradebook.ui.rooms import seat
from gradebook.ui.security import own_path, seat_of

if TYPE_CHECKING:
    from gradebook.classroom.store import Room

# What a room can be asked


@dataclass(frozen=True)
class Question:
    """A question as it stands on its page, with the right choice if there is one."""

    text: str
    choices: tuple[str, ...]
    answer: int | None


@lru_cache(maxsize=1024)
def question(name: str) -> Question | None:
    """The question of this name: of a case, a report of "Bug or not?", a training
    run, or of how a plan opens and closes. None where there is none."""
    if report := named(name):
        return Question(report.source.claim, CHOICES, report.truth)
    if name == OPENING.question:
        return Question(OPENING.ask, OPENING.choices, 0)
    if name == CLOSING.question:
        return Question(CLOSING.ask, CLOSING.choices, None)
    bug = name.removeprefix(TRAINING)
    if bug != name and bug in studied():
        return Question(*about_training(bug))
    if name not in names():
        return None
    asked = load(name).prediction
    return Question(asked.question, asked.choices, asked.answer)


OF_A_DRAFT = ("epoch", "ack", "row", "lists", "history", "notes", "refused")
"""Of a board's data, what belongs to one learner's draft."""


@lru_cache(maxsize=512)
def _revealed(name: str, vote: int | None) -> dict[str, Any] | None:
    """What the board of the case shows after the reveal, on its original batch,
    to a learner who voted so; None for a question without a board."""
    if name not in names():
        return None
    progress = Progress({name: Guess(SKIPPED if vote is None else vote)})
    board = lesson(Draft(load(name)), progress)
    return {key: value for key, value in board.items() if key not in OF_A_DRAFT}


# The news


PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component(
    "gradebook_room_news", js=PROGRAM, isolate_styles=False
)
LOOK = 0.25
"""Seconds between two looks at a room that browsers wait for."""
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


def news(room: Room, name: str = "") -> None:
    """Shows the room's counts, and draws the page again when the room has gone on.

    room  as it was when the page was drawn
    name  of the question on the page, '' for none
    """
    me = seat.seat()
    part = "split" if name in room.revealed else "so_far"
    if room.led_by(me) or not name:
        part = "tally" if name else "heads"
    path = own_path(f"/room-news/{quote(room.code)}")
    asked = f"{path}?{urlencode({'part': part, 'question': name})}"
    _mount(
        key=f"room-news-{part}",
        data=[{"asked": asked, **_told(room, part, name, me)}],
        width="stretch" if part == "split" else "content",
        on_draw_change=lambda: None,
    )


async def answer(request: Request) -> JSONResponse:
    """What the browser asks, as soon as it differs from what it has: the counts
    as HTML, a text that changes when the page has to be drawn again, and the
    board after the reveal. A browser that is not in the room hears that it is
    closed."""
    code, asked = request.path_params["room"], request.query_params
    part, name = asked.get("part", ""), asked.get("question", "")
    me = seat_of(request.cookies)
    if not await run_in_threadpool(seat.rooms().heard, code, me):
        return JSONResponse(CLOSED)
    room = await run_in_threadpool(seat.rooms().read, code)
    patience = 0.0 if room is None or room.led_by(me) else PACE * room.here
    came, before = time.monotonic(), asked.get("have", "")
    while True:
        news = _told(room, part, name, me) if room else CLOSED
        waited = time.monotonic() - came
        if news["have"].split(".")[0] != before.split(".")[0] or waited > WAIT:
            break
        if news["have"] != before and waited > patience:
            break
        room = await _soon(code)
    if room and part == "so_far" and name in room.revealed:
        return JSONResponse(
            news | {"reveal": _revealed(name, room.votes(me).get(name))}
        )
    return JSONResponse(news)


def _soon(code: str) -> Awaitable[Room | None]:
    """The room a moment from now, read once for all who wait for it."""

    async def later() -> Room | None:
        await asyncio.sleep(LOOK)
        del _next[code]
        return await run_in_threadpool(seat.rooms().read, code)

    if code not in _next:
        _next[code] = asyncio.ensure_future(later())
    return asyncio.shield(_next[code])


def _told(room: Room, part: str, name: str, me: str) -> dict[str, Any]:
    """What is told of the room to a browser. `draw` changes when a learner's page
    has to be drawn again; a lead's page changes by the lead's own acts alone."""
    draw, counts, place = "lead", _counts(room, part, name, me), room.position
    if not room.led_by(me):
        # The stage concerns followers alone.
        heading = place.heading[: 3 if room.follows(me) else 2] if place else ()
        draw = _short((name in room.revealed, heading))
    have, within = f"{draw}.{_short(counts)}", round(RUN * room.here, 2)
    return {"draw": draw, "said": counts, "have": have, "within": within}


def _short(shown: object) -> str:
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def _counts(room: Room, part: str, name: str, me: str) -> str:
    """A part of the room's counts, as HTML: "heads", the learners who are here; how
    many have answered, "tally" for the lead, "so_far" for those who wait; "split",
    the answers to a question that was revealed. Before the reveal nobody is told
    how they split."""
    asked = question(name)
    if name in room.revealed and asked:
        counts, vote = room.counts.get(name, {}), room.votes(me).get(name)
        return _split(asked, counts, vote)
    total, here, there = room.answers(name), room.here, room.present.get(name, 0)
    answers = "1 answer" if total == 1 else f"{total} answers"
    text = f"{answers} so far."
    if part == "heads":
        verb = "learner is" if here == 1 else "learners are"
        text = f"<b>{here} {verb} here</b>"
    elif part == "tally":
        verb = "is" if there == 1 else "are"
        text = f"<b>{answers}</b>; {there} of {here} {verb} at this question."
        if room.ends is not None:
            left = math.ceil((room.ends - time.time()) / 60)
            text += f" {left} min left." if left > 0 else " Time is up."
    return f'<p class="gb-live">{text}</p>'


def _split(asked: Question, counts: Mapping[int, int], vote: int | None) -> str:
    """How the answers split, as numbers and as bars."""
    most = max([*counts.values(), 1])
    lines = []
    for choice, text in enumerate(asked.choices):
        count = counts.get(choice, 0)
        marks = ", yours" * (choice == vote) + ", the answer" * (choice == asked.answer)
        lines.append(
            f"<div>{words.safe(minus(text))}: <b>{count}</b>{marks}"
            f'<i style="width:{7 * count / most:.2f}rem"></i></div>'
        )
    return f'<div class="gb-split">{"".join(lines)}</div>'
