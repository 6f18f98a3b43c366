"""The board on a page: draws a draft and takes the learner's edits.

An edit does not run the page. The browser posts it to an address of this server, which
answers with the board's new data; on a bug's page the formula and the page's address
are among them. If something else on the page depends on the edit, such as an opened
stage, it follows in a run when the edit is finished (`shortcuts`).

Why the board does not set a component's value, which is Streamlit's own way:

* A value starts a run, and a run costs more than the edit. On Partial groups (12 rows)
  an edit through this endpoint took 11 ms of the server's CPU and 2.0 KB; together with
  the run of the page's fragment that follows a finished edit, 26 ms and 9.5 KB.
  (`tests/bench/page.py cost`, 2026-11-27, two busy cores. On 2026-11-28, on a busier
  machine: 13 ms and 2.4 KB with the formula, and no run.) A drag is one edit for each
  answer, and a class of 30 shares one interpreter.
* A value is a state, not a message: a browser sends the newest one, with every other
  widget's, whenever anything runs. Of two edits made during a run only the newer would
  arrive, and an old one would be sent again. So edits have numbers here, and the
  answer's `ack` says which were taken (ui/parts/channel.py).
* A run draws the elements of the page again while the learner is still dragging in one.

What it costs: a draft is changed on the endpoint's thread while a page may be drawn, so
it has a lock (cases/draft.py), and the endpoint is guarded like an upload
(ui/security.py).
"""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import encode, excess
from gradebook.cases.state import State
from gradebook.core.formatting import minus, short
from gradebook.output.axes import Axis
from gradebook.output.csv_file import rows_file
from gradebook.output.figures import picture as rows_picture
from gradebook.output.panels import Panel
from gradebook.ui import keys
from gradebook.ui.board import token_board
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import SKIPPED, PageDraft
from gradebook.ui.program import stub

_mount = st.components.v2.component("gradebook_board", js=stub("main"))
MOST_EDITS = 200
"""Edits of one message, at most. A browser collects edits while a message is on its
way."""
OPEN: WeakValueDictionary[str, PageDraft] = WeakValueDictionary()
"""The drafts on boards, by epoch, while their sessions live."""
MOST_THREADS = 4
EDITING = ThreadPoolExecutor(MOST_THREADS, "edits")
"""Edits have threads of their own, which wait for no file or database, and for no page
but that of the same draft."""
COMPUTING = Lock()
"""Held by the one edit that is computed. Several at once pass the interpreter to each
other after every tensor: with 300 learners at work each edit then took twice the CPU,
and the 95th percentile was 3.2 s in place of 0.4 to 1.0 s
(`tests/bench/classroom.py`, 2026-11-28)."""


def board(
    draft: PageDraft,
    seen: Callable[[], dict[str, Any]],
    answered: Callable[[int, float | None], None] | None = None,
    choices: int = 0,
) -> None:
    """The board of the draft, in the page's run.

    seen      makes the board's data (see `view`), now and after each edit
    answered  takes the answer to the page's question: a choice or SKIPPED,
              and where it was put on the axis
    choices   how many choices the question has
    """
    draft.channel.board = seen
    OPEN[draft.channel.epoch] = draft
    key = f"board-{draft.scenario.name}"

    def heard() -> None:
        message = keys.widget(key).get("answered")
        if answered is None or not isinstance(message, Mapping):
            return
        if message.get("epoch") != draft.channel.epoch:
            return
        choice, place = message.get("choice"), message.get("place")
        if type(choice) is not int or choice not in range(choices):
            choice, place = SKIPPED, None
        if not isinstance(place, (int, float)) or not math.isfinite(place):
            place = None
        answered(choice, place)

    # In a list: in a mapping Streamlit would look for tables, and import
    # pandas for it, which takes longer than all else before the first board.
    _mount(key=key, data=[_data(draft)], on_answered_change=heard)


def _data(draft: PageDraft) -> dict[str, Any]:
    """What the board shows now. Its number tells the browser which of two is newer;
    "behind" tells it to have the rest of the page drawn once the edit is finished."""
    with draft.lock:
        draft.channel.sent += 1
        sent, is_behind = draft.channel.sent, draft.channel.is_behind()
        return draft.channel.board() | {"version": sent, "behind": is_behind}


def taken(draft: PageDraft, message: Any) -> dict[str, Any]:
    """Carries out a browser's message. Returns the board's new data."""
    # The draft first: while its page is drawn, others may compute.
    with draft.lock, COMPUTING:
        for edit in draft.channel.unread(message):
            act = draft.channel.acts.get(str(edit.get("do")), draft.take)
            act(edit)
        draft.channel.note()
        return _data(draft)


def _drawn(draft: PageDraft, link: str) -> str:
    """The board as it is now, as SVG."""
    with draft.lock:
        data, table = draft.channel.board(), draft.state.table
    shown, by_token = data["panels"][data["numbers"]], "lines" in data
    sides = [[math.nan if x is None else x for x in side] for side in shown["engines"]]
    sides.append([math.nan] * len(sides[0]))  # for what is covered
    flips = [line in shown["flips"] for line in range(len(sides[0]))]
    title, groups, labels = shown["title"], [*table["prompt"]], None
    handle, typed = "reward", [*table["reward"]]
    if by_token:
        less, more = shown["ends"]
        title = f"{less} ← {title} → {more}"
        handle, typed = data["handles"]["title"], _dragged(data["handles"]["values"])
        groups = [str(group) for *_, group, _ in data["lines"]]
        named = zip(data["lines"], data["tokenNames"])
        labels = [f"row {line[0]}, {_token(line, name)}" for line, name in named]
    panel = Panel(title, sides[0], sides[1], flips)
    beside = [
        f"{handle} {minus(cell)}: {numbers}" if cell else numbers
        for cell, numbers in zip(typed, map(_numbers, *shown["text"]))
    ]
    source = f"Gradebook, case {data['name']}: {link}"
    lines = (draft.scenario.title, data["summary"], source)
    reach = shown["reach"][1]
    axis = Axis(-reach, reach, shown["unit"][1])
    return rows_picture(
        panel, groups, beside=beside, lines=lines, axis=axis, labels=labels
    )


def _token(line: Sequence[Any], name: str) -> str:
    _, first, last, *_ = line
    return f"token{'s' * (last > first)} {name}"


def _numbers(*texts: str) -> str:
    """Both engines' numbers; a masked token has none."""
    return "" if {*texts} == {token_board.NO_NUMBER} else " → ".join(texts)


def _dragged(values: Sequence[float | None]) -> list[str]:
    """The numbers of handles, empty on a line without one."""
    return ["" if value is None else short(value) for value in values]


def _unlinked(state: State) -> str:
    """Why a link cannot hold the batch; '' if it can."""
    return excess(encode(state, covered=True))


AS_TEXT: dict[str, Callable[[State], str]] = {"rows": rows_file, "link": _unlinked}
"""What a browser may ask for as text. Nothing of the faulty engine is in it."""


async def answer(request: Request) -> Response:
    """Answers a browser's message with the board's data. A GET gets the picture, the
    rows as CSV (`?as=rows`), or why a link cannot hold them (`?as=link`)."""
    draft = OPEN.get(request.path_params["epoch"])
    if draft is None:
        return PlainTextResponse("no such draft", 404)
    if request.method == "GET" and (kind := request.query_params.get("as")):
        if kind not in AS_TEXT:
            return PlainTextResponse("no such file", 404)
        return PlainTextResponse(await run_in_threadpool(AS_TEXT[kind], draft.state))
    if request.method == "GET":
        link = request.query_params.get("link", "")
        text = await run_in_threadpool(_drawn, draft, link)
        return Response(text, media_type="image/svg+xml")
    try:
        message = await request.json()
        # Half of a surrogate pair can be read, but nothing can be answered with it.
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return PlainTextResponse("expected JSON", 400)
    edits = message.get("edits") if isinstance(message, dict) else None
    if isinstance(edits, list) and len(edits) > MOST_EDITS:
        return PlainTextResponse(f"at most {MOST_EDITS} edits", 413)
    in_turn = asyncio.get_running_loop().run_in_executor
    return JSONResponse(await in_turn(EDITING, taken, draft, message))


def picture(draft: PageDraft, kind: str, covered: bool, **changes: Any) -> None:
    """The board with its batch and both engines' results, as `view` has them, save
    for the changes: the summary, if the board's own will not do."""
    board(draft, lambda: view(draft, kind=kind, covered=covered) | changes)


heart = st.fragment(key="heart")(picture)


def below(draft: PageDraft, name: str = "below") -> DeltaGenerator:
    """The frame of what is about the batch on the board. It looks stale while the last
    good batch is shown."""
    return st.container(key=f"stale-{name}" if draft.fault else name)
