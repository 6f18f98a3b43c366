"""The room's widgets: for the lead the counts and the reveal, for a
learner the vote and the way after the lead."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress

import streamlit as st

from gradebook.cases.scenario import Scenario
from gradebook.classroom.plan import query
from gradebook.classroom.room import Position, Rooms, normal
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus
from gradebook.ui.parts import predict, present, stages, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.shell import bug_files
from gradebook.ui.parts.words import safe

PARAMETER = "room"
SEAT = "gradebook-seat"
STYLE = """<style>
.gb-code { font-size: 3rem; font-weight: 700; letter-spacing: .3em; }
.gb-split { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; }
.gb-split > div { min-width: 7rem; }
.gb-split i { display: block; height: .5rem; min-width: 1px;
  background: currentColor; opacity: .6; }
.st-key-room-token { display: none; }
.st-key-room-bar { padding: .4rem .8rem; gap: .4rem; }
</style>"""
TOKEN = re.compile(r"[A-Za-z0-9_-]{10,64}")
EVERY_LEAD, EVERY_LEARNER = 1, 2
"""Seconds between two looks at the room."""


@st.cache_resource(show_spinner=False)
def rooms() -> Rooms:
    """The rooms of this server."""
    return Rooms()


# Who is where


def code() -> str:
    """The room that the address or the session names, or ''."""
    named = normal(st.query_params.get(PARAMETER, ""))
    if named:
        st.session_state["room"] = named
    return st.session_state.get("room", "")


def carried() -> dict[str, str]:
    """What every link passes on: the room, and the presenter view."""
    found = {PARAMETER: code()} if code() else {}
    return found | ({present.PARAMETER: "1"} if present.on() else {})


def leading(room: str) -> bool:
    """This browser leads the room."""
    return rooms().leads(room, _key(room))


def leads() -> bool:
    """This browser leads the room that it is in."""
    return bool(code()) and leading(code())


def learning() -> bool:
    """This browser sits in a room that another one leads."""
    room = code()
    return bool(room) and rooms().is_open(room) and not leading(room)


def _key(room: str) -> str:
    return _own(f"lead-{room}", f"gradebook-lead-{room}")


def _seat() -> str:
    """This browser's seat, taken when first asked for."""
    seat = _own("seat", SEAT)
    if not seat:
        seat = st.session_state["seat"] = secrets.token_urlsafe(12)
    return seat


def _own(name: str, cookie: str) -> str:
    """A token of this session, or of its browser before a reload."""
    if name not in st.session_state:
        found = str(st.context.cookies.get(cookie, ""))
        st.session_state[name] = found if TOKEN.fullmatch(found) else ""
    return st.session_state[name]


def _remember(cookie: str, token: str) -> None:
    """A reload finds the token again; the browser forgets it when it
    closes."""
    line = json.dumps(f"{cookie}={token}; path=/; SameSite=Lax")
    with st.container(key="room-token"):
        st.html(
            f"<script>document.cookie = {line};</script>",
            unsafe_allow_javascript=True,
        )


def _enter(room: str) -> None:
    st.session_state["room"] = room
    st.query_params[PARAMETER] = room


def _leave(room: str) -> None:
    with suppress(GradebookError):
        rooms().leave(room, _seat())
    st.session_state.pop("room", None)
    st.session_state.pop("room-asked", None)
    st.query_params.pop(PARAMETER, None)


def _open() -> None:
    try:
        room, key = rooms().open()
    except GradebookError as error:
        st.session_state["room-problem"] = words.place(error)
        return
    st.session_state[f"lead-{room}"] = key
    _enter(room)


def _close(room: str) -> None:
    with suppress(GradebookError):
        rooms().close(room, _key(room))
    _leave(room)


def _typed() -> None:
    typed = normal(st.session_state["room-code"])
    if rooms().is_open(typed):
        _enter(typed)
    else:
        st.session_state["room-problem"] = (
            f"No room {typed or 'without a code'} is open here."
        )


def _taken_back() -> None:
    room = normal(st.session_state["room-back-code"])
    key = st.session_state["room-back-key"].strip()
    if rooms().leads(room, key):
        st.session_state[f"lead-{room}"] = key
        _enter(room)
    else:
        st.session_state["room-problem"] = "Code and key open no room."


# On the session page


def panel() -> None:
    """Open a room or join one; inside, the code or the way to the lead."""
    st.html(STYLE)
    st.header("The room")
    room = code()
    problem = st.session_state.pop("room-problem", "")
    if problem:
        st.warning(words.plain(problem))
    if not room:
        return _door()
    try:
        if leading(room):
            _lead_panel(room)
        elif not rooms().is_open(room):
            _shut(room)
        elif _joined(room):
            _learner_panel(room)
    except GradebookError:  # closed while the page ran
        st.rerun()


def _door() -> None:
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown(
            "**Lead.** Opens a room with a short code. Learners' predictions"
            " are counted without names, in this server's memory only, and"
            " are gone with the room."
        )
        st.button("Open a room", key="room-open", on_click=_open)
        with st.expander("Take a room back"):
            st.text_input("Code of the room", key="room-back-code")
            st.text_input("Lead key", key="room-back-key", type="password")
            st.button("Take it back", key="room-back", on_click=_taken_back)
    with right.container(border=True, height="stretch"):
        st.markdown("**Learn.** The lead shows a code of four characters.")
        st.text_input("Code", key="room-code", max_chars=12)
        st.button("Join", key="room-join", on_click=_typed)


def _shut(room: str) -> None:
    st.warning(f"Room {words.plain(room)} is closed or was never open here.")
    st.button(
        "Leave the room", key="room-leave", on_click=_leave, args=(room,)
    )


def _lead_panel(room: str) -> None:
    _remember(f"gradebook-lead-{room}", _key(room))
    with st.container(border=True, key="room-panel"):
        st.html(f'<div class="gb-code">{safe(room)}</div>')
        st.markdown("Learners open this link, or type the code on this page:")
        st.code(_address(room), language=None, wrap_lines=True)
        _heads(room)
        st.markdown(
            "The links of the plan below carry the room along. On a bug's"
            " page the answers are counted live; **Reveal** opens the page"
            " for everyone at once."
        )
        with st.expander("Keep the lead"):
            st.markdown(
                "A reload keeps it. On another device, take the room back"
                " with this key:"
            )
            st.code(_key(room), language=None)
        st.button(
            "Close the room", key="room-close", on_click=_close, args=(room,)
        )


def _address(room: str) -> str:
    here = str(st.context.url or "").split("?")[0]
    return f"{here}?{PARAMETER}={room}"


@st.fragment(run_every=EVERY_LEAD)
def _heads(room: str) -> None:
    if not rooms().is_open(room):
        st.rerun(scope="app")
    st.markdown(f"**{_learners(rooms().seats(room))}**")


def _learners(count: int) -> str:
    return "1 learner is here" if count == 1 else f"{count} learners are here"


def _learner_panel(room: str) -> None:
    place, files = rooms().position(room), bug_files()
    _follow(place)
    with st.container(border=True, key="room-panel"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"In room **{room}**.")
            _toggle()
            _leave_button(room)
        if place is None or place.bug not in files:
            st.markdown("The lead is not at a bug yet; this page waits.")
        else:
            st.page_link(
                files[place.bug],
                label="Go where the lead is",
                query_params=query(place.scenario) | carried(),
            )
        _watch(room, "", False, place)


# On a bug's page


def bar(bug: str, scenario: Scenario, draft: Draft) -> None:
    """The room at the top of a bug's page; nothing without a room.

    Before the lead's reveal the page is covered, and an answer is a vote
    that may change; after it the page is open for everyone.
    """
    room = code()
    if not room:
        return
    st.html(STYLE)
    with st.container(border=True, key="room-bar"):
        try:
            if leading(room):
                _lead(room, bug, scenario, draft)
            elif not rooms().is_open(room):
                _shut(room)
            elif _joined(room):
                _learn(room, bug, scenario, draft)
        except GradebookError:  # closed while the page ran
            st.rerun()


def _joined(room: str) -> bool:
    """The seat is taken, or it says why not."""
    try:
        rooms().join(room, _seat())
    except GradebookError as error:
        st.warning(words.plain(words.place(error)))
        _leave_button(room)
        return False
    _remember(SEAT, _seat())
    return True


def _fresh(room: str, bug: str, scenario: Scenario) -> int | None:
    """The answer just given to the room's question: none while the page
    is covered, and none for an answer that was given elsewhere."""
    asked = st.session_state.get("room-asked")
    if predict.covered(bug) or asked != (room, scenario.name):
        return None
    return predict.answers()[bug]


def _cover(room: str, bug: str, scenario: Scenario) -> None:
    predict.answers().pop(bug, None)
    st.session_state["room-asked"] = (room, scenario.name)


def _uncover(scenario: Scenario, choice: int | None) -> None:
    made = predict.SKIPPED if choice is None else choice
    predict.answer(scenario.bug, made, scenario.name)
    st.session_state.pop("room-asked", None)


def _lead(room: str, bug: str, scenario: Scenario, draft: Draft) -> None:
    fresh = _fresh(room, bug, scenario)
    if fresh is not None:
        _reveal(room, scenario.name)
    revealed = rooms().revealed(room, scenario.name)
    if not revealed:
        _cover(room, bug, scenario)
    elif fresh is not None or predict.covered(bug):
        _uncover(scenario, fresh)
    moved(bug, draft)
    _remember(f"gradebook-lead-{room}", _key(room))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room}**, you lead.")
        if revealed:
            st.markdown("Revealed.")
        else:
            st.button(
                "Reveal to the room",
                key="room-reveal",
                on_click=_reveal,
                args=(room, scenario.name),
            )
        split = revealed or st.toggle(
            "Show the split before the reveal",
            value=not present.on(),
            key=f"room-split-{present.on()}",
        )
    _tally(room, scenario, split, revealed)


def _reveal(room: str, question: str) -> None:
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        rooms().reveal(room, _key(room), question)


@st.fragment(run_every=EVERY_LEAD)
def _tally(room: str, scenario: Scenario, split: bool, truth: bool) -> None:
    """The answers so far, live; the right one marked with the `truth`."""
    if not rooms().is_open(room):
        st.rerun(scope="app")
    counts = rooms().counts(room, scenario.name)
    total, here = sum(counts.values()), _learners(rooms().seats(room))
    st.markdown(f"**{_answers(total)}**; {here}.")
    if split:
        _split(scenario, counts, truth)


def _answers(total: int) -> str:
    return "1 answer" if total == 1 else f"{total} answers"


def _split(
    scenario: Scenario,
    counts: Mapping[int, int],
    truth: bool = False,
    mine: int | None = None,
) -> None:
    """How the answers split, as numbers and as bars."""
    most = max([*counts.values(), 1])
    lines = []
    for choice, text in enumerate(scenario.prediction.choices):
        count = counts.get(choice, 0)
        marks = [", yours"] if choice == mine else []
        if truth and choice == scenario.prediction.answer:
            marks.append(", so it is")
        lines.append(
            f"<div>{safe(minus(text))}: <b>{count}</b>{''.join(marks)}"
            f'<i style="width:{7 * count / most:.2f}rem"></i></div>'
        )
    st.html(f'<div class="gb-split">{"".join(lines)}</div>')


def moved(bug: str, draft: Draft) -> None:
    """Tells the room which row and stage its lead stands at."""
    room = code()
    if not room or not leading(room):
        return
    stage = stages.open_stage(draft)
    place = Position(bug, draft.scenario.name, draft.row, stage)
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        rooms().move(room, _key(room), place)


def reveal(scenario: Scenario) -> None:
    """Space: the lead reveals to the room; alone, it skips the question."""
    room = code()
    if not predict.covered(scenario.bug):
        return
    if not room:
        predict.answer(scenario.bug, predict.SKIPPED)
    elif leading(room):
        _reveal(room, scenario.name)
    st.rerun()


def _learn(room: str, bug: str, scenario: Scenario, draft: Draft) -> None:
    place = rooms().position(room)
    _follow(place, draft)
    name, seat = scenario.name, _seat()
    revealed = rooms().revealed(room, name)
    peeked = st.session_state.setdefault("room-peeked", set())
    if not revealed:
        _take_answer(room, bug, scenario, peeked)
    mine = rooms().choice(room, seat, name)
    if revealed:
        _uncover(scenario, mine)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_standing(room, scenario, mine, revealed))
        _toggle()
        _leave_button(room)
    if revealed:
        counts = rooms().counts(room, name)
        _split(scenario, counts, truth=True, mine=mine)
    _watch(room, name, revealed, place)


def _take_answer(
    room: str, bug: str, scenario: Scenario, peeked: set[tuple[str, str]]
) -> None:
    """An answer becomes a vote and the page stays covered; who skips sees
    the page and has no vote."""
    name, seat = scenario.name, _seat()
    if (room, name) in peeked:
        return
    fresh = _fresh(room, bug, scenario)
    if fresh == predict.SKIPPED:
        peeked.add((room, name))
        rooms().withdraw(room, seat, name)
        return
    if fresh is not None:
        try:
            rooms().vote(room, seat, name, fresh)
        except GradebookError as error:
            st.warning(words.plain(words.place(error)))
    _cover(room, bug, scenario)


def _standing(
    room: str, scenario: Scenario, mine: int | None, revealed: bool
) -> str:
    said = f"In room **{room}**. "
    if revealed:
        return said + "The lead has revealed the answer."
    if (room, scenario.name) in st.session_state["room-peeked"]:
        return said + "You have looked, so you have no vote here."
    if mine is None:
        return said + "Your answer is counted, without a name."
    chosen = words.plain(scenario.prediction.choices[mine])
    return said + f"You say **{chosen}**; change it until the reveal."


def _toggle() -> None:
    """Follow the lead, or not. Kept over the pages."""
    st.session_state["room-follow-toggle"] = _following()

    def keep() -> None:
        st.session_state["room-follow"] = st.session_state[
            "room-follow-toggle"
        ]
        st.session_state.pop("room-seen", None)

    st.toggle(
        "Follow the lead's row and stage",
        key="room-follow-toggle",
        on_change=keep,
    )


def _following() -> bool:
    return st.session_state.get("room-follow", False)


def _leave_button(room: str) -> None:
    st.button(
        "Leave",
        key="room-leave",
        on_click=_leave,
        args=(room,),
        type="tertiary",
    )


def _follow(place: Position | None, draft: Draft | None = None) -> None:
    """To the lead's case, row and stage, once for each of its moves."""
    seen = st.session_state.get("room-seen")
    if not _following() or place is None or place == seen:
        return
    if draft is None or draft.scenario.name != place.scenario:
        if place.bug in bug_files():
            st.switch_page(
                bug_files()[place.bug],
                query_params=query(place.scenario) | carried(),
            )
        return
    draft.select(place.row)
    stages.choose_stage(draft, place.stage)
    st.session_state["room-seen"] = place


@st.fragment(run_every=EVERY_LEARNER)
def _watch(
    room: str, question: str, revealed: bool, place: Position | None
) -> None:
    """Runs the page again when the lead reveals or moves."""
    now = rooms()
    try:
        now.join(room, _seat())
    except GradebookError:
        st.rerun(scope="app")
    moved = now.position(room) != place
    told = bool(question) and now.revealed(room, question) != revealed
    if told or (moved and (_following() or place is None)):
        st.rerun(scope="app")
    if question and not revealed:
        total = sum(now.counts(room, question).values())
        st.markdown(f"{_answers(total)} so far.")
