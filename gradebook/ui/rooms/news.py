"""What a change of the room does to a page: it shows new counts, and takes
followers to the lead's question and stage.

The browser asks a small address of this server, which answers when the room has
changed. It writes the counts itself, and tells the page only when the lead reveals,
moves on or closes the room. So a vote draws no page, and none is drawn by a clock:
Streamlit drops the end of a page's run when a fragment's run begins just after it.
"""

from __future__ import annotations

import asyncio
import random
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
from gradebook.classroom.plan import PlanStep, asked
from gradebook.core.formatting import counted, minus
from gradebook.ui import keys
from gradebook.ui.board.lesson import lesson
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import SKIPPED, Guess, PageDraft, Progress
from gradebook.ui.rooms import seat
from gradebook.ui.security import own_path, seat_of

if TYPE_CHECKING:
    from gradebook.classroom.store import Room

PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component(
    "gradebook_room_news", js=PROGRAM, isolate_styles=False
)
LOOK = 0.25
"""Seconds between two looks at a room that browsers wait for. They are woken only by
another state of it: to wake a class of 300 at each look would take a third of a core
all the time."""
WAIT = 20.0
"""Seconds after which a browser is answered though nothing changed, at most, and at
least half of them: a third of `store.GONE`, and of the 60 s after which nginx gives up
(proxy_read_timeout, by default). Chance decides: browsers that ask at one time would be
answered at one time. With 300 of them every twentieth edit then took 0.33 s and more,
and takes 0.025 s with chance (`tests/bench/classroom.py`, 2026-11-28)."""
PACE = 0.02
"""Seconds for each learner in the room until a learner hears of counts alone, in the
mean: more learners do not ask the server more often, nor at one time. Whatever their
number, a room's learners ask 1 / PACE = 50 times a second."""
RUN = 0.04
"""Seconds that a server needs for a learner's page: 34 ms of CPU in a class of 30, and
62 ms in one of 300 (2026-11-28). Browsers reload after a random delay, so that the
server does not draw every page at once."""
CLOSED = {"draw": "closed", "counts": "", "have": "closed", "clock": {}}
_next: dict[str, asyncio.Future[Room | Away | None]] = {}
"""The next state of each room that browsers wait for."""


def news(room: Room, name: str = "") -> None:
    """Shows the room's counts, and draws the page again when the room has gone on.
    `name` is of the question on the page, '' for none."""
    at, seen = room.position.question if room.position else name, keys.SEEN.get()
    state = _state(room, name, seat.SEAT.get(), at)
    if isinstance(seen, tuple) and seen[1] == name:
        at = name  # a move since this page looked where the room is, is news to it
    covered = int(name not in room.revealed)
    query = urlencode({"question": name, "covered": covered, "at": at})
    address = own_path(f"/room-news/{quote(room.code)}?{query}")
    _mount(
        key="room-news",
        data=[{"asked": address, **state}],
        width="content",
        on_draw_change=lambda: None,
    )


def wait(code: str, name: str = "") -> None:
    """Draws the page again when the database that is away is back. The code is '' if
    only the database knows in which room the browser is."""
    address = own_path(
        f"/room-news/{quote(code or '-')}?{urlencode({'question': name})}"
    )
    nothing = {"draw": "away", "counts": "", "have": "", "within": 0, "clock": {}}
    _mount(
        key="room-news",
        data=[{"asked": address, **nothing}],
        width="content",
        on_draw_change=lambda: None,
    )


async def answer(request: Request) -> JSONResponse:
    """Answers with `_state` as soon as it differs from what the browser has, and with
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
    patience, longest = 0.0, random.uniform(WAIT / 2, WAIT)
    if room and not room.seat(me).leads:
        patience = random.uniform(0, 2 * PACE * room.present.total())
    changed = None  # after how many seconds there were new counts
    while room:
        news = _state(room, name, me, query.get("at", name))
        waited = time.monotonic() - came
        is_new = news["have"] != before
        draws = news["draw"] != before.split(".")[0]
        if is_new and changed is None:
            changed = waited
        until = longest if changed is None else min(longest, changed + patience)
        if draws or waited >= until:
            if query.get("covered") == "1" and name in room.revealed:
                mine = room.seat(me)
                guess = mine.votes.get(name, SKIPPED), mine.places.get(name)
                if board := _board(name, *guess):
                    news["reveal"] = board | {"crowd": room.places(name)}
            return news
        left, timer = until - waited, (room.ends or 0.0) - time.time()
        room = await _next_of(room, min(left, timer) if timer > 0 else left)
    return CLOSED


def _sits(code: str, me: str) -> Room | None:
    """The room, if this browser has a seat in it."""
    rooms = seat.rooms()
    if rooms.database.is_away:
        raise Away
    is_code = re.fullmatch("[A-Z0-9]{1,20}", code)
    return rooms.read(code) if is_code and rooms.heard(code, me) else None


MOST_THREADS = 8
"""Half of the connections to the database that a server keeps (`store.CONNECTIONS`):
the others are for votes and pages."""
THREADS = ThreadPoolExecutor(MOST_THREADS, "rooms")
"""Threads of their own: an edit has others, and never waits for the database."""


def _in_a_thread(work: Callable[[], Room | None]) -> Awaitable[Room | None]:
    return asyncio.get_running_loop().run_in_executor(THREADS, work)


async def _next_of(room: Room, seconds: float) -> Room | None:
    """The room as soon as it is another, or as it is after so many seconds."""
    if room.code not in _next:
        _next[room.code] = asyncio.ensure_future(_changed(room))
    changed = _next[room.code]
    await asyncio.wait({changed}, timeout=seconds)
    now = changed.result() if changed.done() else room
    if isinstance(now, Away):
        raise now
    return now


async def _changed(room: Room) -> Room | Away | None:
    """The room's next state, looked for once for all who wait for it."""
    now: Room | None = room
    try:
        while now is room:
            await asyncio.sleep(LOOK)
            now = await _in_a_thread(partial(seat.rooms().read, room.code))
        return now
    except Away as error:  # as a value: perhaps nobody waits any more
        return error
    finally:
        del _next[room.code]


OF_A_DRAFT = ("epoch", "ack", "row", "lists", "history", "notes", "refused")
"""Of a board's data, what belongs to one learner's draft."""


@lru_cache(maxsize=512)  # a place on the axis for each seat of the largest room
def _board(name: str, vote: int, place: float | None) -> dict[str, Any] | None:
    """What the board of the case shows after the reveal, on its original batch,
    to a learner who voted so; None for a question without a board."""
    if name not in names():
        return None
    progress = Progress({name: Guess(vote, place)})
    board = lesson(PageDraft(load(name)), progress)
    return {key: value for key, value in board.items() if key not in OF_A_DRAFT}


def _state(room: Room, name: str, me: str, at: str) -> dict[str, Any]:
    """The room as a browser hears of it: the counts as HTML, and `draw`, which changes
    when the browser's page has to be drawn again. A lead's page of a question is drawn
    again after a reveal, a second vote, and a move of the room away from `at`, where
    the room was when the page was drawn. A page without a question follows the room."""
    mine, place = room.seat(me), room.position
    counts, clock = _counts(room, name, me), _clock(room, name, me)
    if mine.leads and name:
        moved = place.question if place and place.question not in (name, at) else ""
        now: tuple[object, ...] = name in room.revealed, name in room.again, moved
    else:
        # The stage concerns followers alone.
        heading = place.heading[: 3 if mine.follows else 2] if place else ()
        of = name or (place.question if place else "")
        now = of in room.revealed, of in room.again, room.is_over(of), heading
    draw = str(crc32(repr(now).encode()))
    within = round(RUN * room.present.total(), 2)
    timer = room.ends if place and place.question == name else None
    have = f"{draw}.{crc32(repr((counts, timer)).encode())}"
    news = {"draw": draw, "counts": counts, "have": have, "within": within}
    return news | {"clock": clock}


def _clock(room: Room, name: str, me: str) -> dict[str, float]:
    """Seconds that a browser counts on by itself: "left" of the lead's timer at this
    question; for the lead, "taken" of it and of the "session" so far."""
    now, clock = time.time(), {}
    here = room.position is not None and room.position.question == name
    leads = room.seat(me).leads
    if room.ends is not None and (here or leads):
        clock["left"] = room.ends - now
    if leads and room.reached:
        clock["session"] = now - min(room.reached.values())
        if name in room.reached:
            clock["taken"] = now - room.reached[name]
    return {name: round(seconds, 1) for name, seconds in clock.items()}


def _counts(room: Room, name: str, me: str) -> str:
    """How the votes split, after the reveal. Before it only the number of votes and of
    learners here is told."""
    mine, step, here = room.seat(me), asked(name), room.present.total()
    answers = counted(room.counts[name].total(), "answer")
    if name in room.revealed and step:
        return _split(room, name, step, mine.votes.get(name))
    if not name:
        text = f"<b>{counted(here, 'learner')} here</b>"
    elif not mine.leads:
        text = f"{answers} so far."
    else:
        there = f"{room.present[name]} of {here} learners at this question"
        text = f"<b>{answers}</b>; {there}."
    return f'<p class="gb-live">{text}</p>'


def _split(room: Room, name: str, step: PlanStep, mine: int | None) -> str:
    """The votes as bars, those of a first vote above those of the second."""
    last, first = room.counts[name], room.counts_before[name]
    is_again = name in room.again
    most = max([*last.values(), *first.values(), 1])

    def bar(count: int, kind: str) -> str:
        width = f'style="width:{100 * count / most:.0f}%"'
        return f'<span class="{kind}"><i {width}></i>{count}</span>'

    lines = ""
    for choice, text in enumerate(step.choices):
        marks = ", yours" * (choice == mine) + ", the answer" * (choice == step.answer)
        before = bar(first[choice], "before") if is_again else ""
        sentence = f"{words.safe(minus(text))}: <b>{last[choice]}</b>{marks}"
        if is_again:
            sentence = f"{sentence}, before: {first[choice]}"
        here = " class=answer" * (choice == step.answer)
        lines += f"<div{here}><p>{sentence}</p>{before}{bar(last[choice], 'now')}</div>"
    change = ""
    if is_again and step.answer is not None:
        of = tuple(f"{v[step.answer]} of {v.total()}" for v in (first, last))
        change = f'<p class="gb-live">Right: {of[0]}, then {of[1]}.</p>'
    return f'<div class="gb-split">{lines}</div>{change}'
