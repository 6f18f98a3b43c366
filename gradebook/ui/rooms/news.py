"""What a change of the room does to a page: it shows new counts, and takes
followers to the lead's question and stage.

The browser asks a small address of this server, which answers when the room has
changed. It writes the counts itself, and tells the page only when the lead reveals,
moves on or closes the room. So a vote draws no page, and none is drawn by a clock:
Streamlit drops the end of a page's run when a fragment's run begins just after it.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from zlib import crc32

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from gradebook.cases.scenario import load, names
from gradebook.classroom.away import Away
from gradebook.classroom.plan import asked
from gradebook.core.formatting import counted, minus
from gradebook.ui.board.lesson import lesson
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import SKIPPED, Draft, Guess, Progress
from gradebook.ui.rooms import seat
from gradebook.ui.security import own_path, seat_of

if TYPE_CHECKING:
    from gradebook.classroom.store import Room

PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component(
    "gradebook_room_news", js=PROGRAM, isolate_styles=False
)
LOOK = 0.25
"""Seconds between two looks at a room that browsers wait for."""
WAIT = 20.0
"""Seconds after which a browser is answered though nothing changed."""
PACE = 0.02
"""Seconds for each learner in the room until a learner hears of counts alone: more
learners do not ask the server more often."""
RUN = 0.04
"""Seconds that a server needs for a learner's page. Browsers reload after a random
delay, so that the server does not draw every page at once."""
CLOSED = {"draw": "closed", "said": "", "have": "closed"}
_next: dict[str, asyncio.Future[Room | None]] = {}
"""The next state of each room that browsers wait for."""


def news(room: Room, name: str = "") -> None:
    """Shows the room's counts, and draws the page again when the room has gone on.
    `name` is of the question on the page, '' for none."""
    query = urlencode({"question": name, "covered": int(name not in room.revealed)})
    address = own_path(f"/room-news/{quote(room.code)}?{query}")
    _mount(
        key="room-news",
        data=[{"asked": address, **_told(room, name, seat.SEAT.get())}],
        width="content",
        on_draw_change=lambda: None,
    )


def wait(code: str, name: str = "") -> None:
    """Draws the page again when the database that is away is back. The code is '' if
    only the database knows in which room the browser is."""
    address = own_path(
        f"/room-news/{quote(code or '-')}?{urlencode({'question': name})}"
    )
    nothing = {"draw": "away", "said": "", "have": "", "within": 0}
    _mount(
        key="room-news",
        data=[{"asked": address, **nothing}],
        width="content",
        on_draw_change=lambda: None,
    )


async def answer(request: Request) -> JSONResponse:
    """Answers with `_told` as soon as it differs from what the browser has, and with
    the board after the reveal. A browser that is not in the room hears that it is
    closed; 503 while the database is away."""
    try:
        return JSONResponse(await _news(request))
    except Away as error:
        return JSONResponse({"away": str(error)}, 503)


async def _news(request: Request) -> dict[str, Any]:
    code, query = request.path_params["room"], request.query_params
    name, before = query.get("question", ""), query.get("have", "")
    me, came = seat_of(request.cookies), time.monotonic()
    room = await _in_a_thread(partial(_sits, code, me))
    patience = 0.0
    if room and not room.seat(me).leads:
        patience = PACE * room.present.total()
    while room:
        news, waited = _told(room, name, me), time.monotonic() - came
        is_new = news["have"] != before and waited > patience
        if is_new or news["draw"] != before.split(".")[0] or waited > WAIT:
            if query.get("covered") == "1" and name in room.revealed:
                news["reveal"] = _board(name, room.seat(me).votes.get(name))
            return news
        room = await _soon(code)
    return CLOSED


def _sits(code: str, me: str) -> Room | None:
    """The room, if this browser is in it."""
    rooms = seat.rooms()
    if rooms.database.is_away:
        raise Away
    is_code = re.fullmatch("[A-Z0-9]{1,20}", code)
    return rooms.read(code) if is_code and rooms.heard(code, me) else None


MOST_THREADS = 8
THREADS = ThreadPoolExecutor(MOST_THREADS, "rooms")
"""Threads for edits alone, so that an edit never waits for the database."""


def _in_a_thread(work: Callable[[], Room | None]) -> Awaitable[Room | None]:
    return asyncio.get_running_loop().run_in_executor(THREADS, work)


def _soon(code: str) -> Awaitable[Room | None]:
    """The room a moment from now, read once for all who wait for it."""

    async def later() -> Room | None:
        await asyncio.sleep(LOOK)
        del _next[code]
        return await _in_a_thread(partial(seat.rooms().read, code))

    if code not in _next:
        _next[code] = asyncio.ensure_future(later())
    return asyncio.shield(_next[code])


OF_A_DRAFT = ("epoch", "ack", "row", "lists", "history", "notes", "refused")
"""Of a board's data, what belongs to one learner's draft."""


@lru_cache(maxsize=512)
def _board(name: str, vote: int | None) -> dict[str, Any] | None:
    """What the board of the case shows after the reveal, on its original batch,
    to a learner who voted so; None for a question without a board."""
    if name not in names():
        return None
    progress = Progress({name: Guess(SKIPPED if vote is None else vote)})
    board = lesson(Draft(load(name)), progress)
    return {key: value for key, value in board.items() if key not in OF_A_DRAFT}


def _told(room: Room, name: str, me: str) -> dict[str, Any]:
    """The room's message to a browser: the counts as HTML, and `draw`, which changes
    when a learner's page must be drawn again. A lead's page changes only by the lead's
    own acts."""
    mine, place = room.seat(me), room.position
    draw, counts = "lead", _counts(room, name, me)
    if not mine.leads:
        # The stage concerns followers alone.
        heading = place.heading[: 3 if mine.follows else 2] if place else ()
        draw = str(crc32(repr((name in room.revealed, heading)).encode()))
    within = round(RUN * room.present.total(), 2)
    have = f"{draw}.{crc32(counts.encode())}"
    return {"draw": draw, "said": counts, "have": have, "within": within}


def _counts(room: Room, name: str, me: str) -> str:
    """After the reveal, the votes for each choice. Before it, how many learners are
    here and how many have answered."""
    mine, step, here = room.seat(me), asked(name), room.present.total()
    counts = room.counts[name]
    answers = counted(counts.total(), "answer")
    if name in room.revealed and step:
        lines, most = "", max([*counts.values(), 1])
        for choice, text in enumerate(step.choices):
            marks = ", yours" * (choice == mine.votes.get(name))
            marks += ", the answer" * (choice == step.answer)
            lines += (
                f"<div>{words.safe(minus(text))}: <b>{counts[choice]}</b>{marks}"
                f'<i style="width:{7 * counts[choice] / most:.2f}rem"></i></div>'
            )
        return f'<div class="gb-split">{lines}</div>'
    if not name:
        text = f"<b>{counted(here, 'learner')} here</b>"
    elif not mine.leads:
        text = f"{answers} so far."
    else:
        there = f"{room.present[name]} of {here} learners at this question"
        text = f"<b>{answers}</b>; {there}."
        if room.ends is not None:
            left = math.ceil((room.ends - time.time()) / 60)
            text += f" {left} min left." if left > 0 else " Time is up."
    return f'<p class="gb-live">{text}</p>'
