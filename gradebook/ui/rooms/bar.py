"""The room at the top of a bug's page.

The lead sees the votes and reveals the answer; a learner votes, and follows
the lead or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import encode, query_string
from gradebook.cases.scenario import Scenario
from gradebook.classroom.room import Position
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import drafts, predict, present, stages, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.rooms import follow, seat
from gradebook.ui.rooms.news import news, split

STYLE = """<style>
.gb-code { font-size: 3rem; font-weight: 700; letter-spacing: .3em; }
.gb-split { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; }
.gb-split > div { min-width: 7rem; }
.gb-split i { display: block; height: .5rem; min-width: 1px;
  background: currentColor; opacity: .6; }
.st-key-room-token { display: none; }
.st-key-room-bar { padding: .4rem .8rem; gap: .4rem; }
</style>"""


def bar(page: str, scenario: Scenario) -> None:
    """The room at the top of a bug's page; nothing without a room.

    Before the lead's reveal the page is covered, and an answer is a vote
    that may change. After it the page is open for everybody.
    """
    room = seat.code()
    if not room:
        return problem()
    with framed():
        try:
            if seat.leading(room):
                _lead(room, page, scenario)
            elif not seat.rooms().is_open(room):
                st.warning(f"Room {words.plain(room)} is closed.")
                leave_button(room)
            elif joined(room, scenario.name):
                _learn(room, page, scenario)
        except GradebookError:  # the room was closed while the page ran
            st.rerun()


def framed() -> DeltaGenerator:
    """The frame around what is about the room."""
    st.html(STYLE)
    return st.container(border=True, key="room-bar")


def problem() -> None:
    """Says once what went wrong with a room."""
    said = keys.ROOM_PROBLEM.get()
    keys.ROOM_PROBLEM.drop()
    if said:
        st.warning(words.plain(said))


def before(page: str) -> None:
    """Takes a follower to where the lead is, before the page is drawn."""
    room = seat.code()
    if room and seat.learning():
        with suppress(GradebookError):
            follow.follow(seat.rooms().position(room), page)


def joined(room: str, question: str) -> bool:
    """Takes the seat, or says why it cannot."""
    try:
        seat.rooms().join(room, seat.seat(), question)
    except GradebookError as error:
        st.warning(words.plain(words.place(error)))
        leave_button(room)
        return False
    seat.remember()
    return True


def _fresh(room: str, bug: str, scenario: Scenario) -> int | None:
    """The answer just given to the room's question: none while the page
    is covered, and none for an answer that was given elsewhere."""
    asked = keys.ROOM_ASKED.get()
    if predict.covered(bug) or asked != (room, scenario.name):
        return None
    return predict.answers()[bug]


def _cover(room: str, bug: str, scenario: Scenario) -> None:
    predict.answers().pop(bug, None)
    keys.ROOM_ASKED.put((room, scenario.name))


def _uncover(scenario: Scenario, choice: int | None) -> None:
    made = predict.SKIPPED if choice is None else choice
    predict.answer(scenario.bug, made, scenario.name)
    keys.ROOM_ASKED.drop()


def _lead(room: str, page: str, scenario: Scenario) -> None:
    fresh = _fresh(room, page, scenario)
    if fresh is not None:
        _reveal(room, scenario.name)
    revealed = seat.rooms().revealed(room, scenario.name)
    if not revealed:
        _cover(room, page, scenario)
    elif fresh is not None or predict.covered(page):
        _uncover(scenario, fresh)
    moved(page, drafts.of(scenario))
    seat.remember()
    line = st.container(horizontal=True, vertical_alignment="center")
    with line:
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
        shows = st.toggle(
            "Show the split",
            value=revealed or not present.on(),
            key=f"room-split-{present.on()}-{revealed}",
        )
        if not (shows and present.on()):  # the split counts them, too
            news(room, "tally", scenario.name)
    if shows:  # in the presenter view within the one line
        choices, answer = _choices(scenario, revealed)
        with line if present.on() else st.container():
            news(room, "split", scenario.name, None, choices, answer)


def _choices(
    scenario: Scenario, truth: bool
) -> tuple[Sequence[str], int | None]:
    """The choices of the question; with `truth`, which one is right."""
    asked = scenario.prediction
    return asked.choices, asked.answer if truth else None


def _reveal(room: str, question: str) -> None:
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        seat.rooms().reveal(room, seat.lead_key(room), question)


def moved(page: str, draft: Draft) -> None:
    """Tells the room where its lead stands: case, edits, row and stage."""
    room = seat.code()
    if not room or not seat.leading(room):
        return
    link = query_string(encode(draft.state, covered=True))
    stage = stages.open_stage(draft)
    place = Position(page, draft.scenario.name, link, stage)
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        seat.rooms().move(room, seat.lead_key(room), place)


def reveal(scenario: Scenario) -> None:
    """Space: the lead reveals to the room; alone, it skips the question."""
    room = seat.code()
    if not predict.covered(scenario.bug):
        return
    if not room:
        predict.answer(scenario.bug, predict.SKIPPED)
    elif seat.leading(room):
        _reveal(room, scenario.name)
    st.rerun()


def _learn(room: str, page: str, scenario: Scenario) -> None:
    known, name = seat.rooms(), scenario.name
    revealed = known.revealed(room, name)
    if not revealed:
        _take_answer(room, page, scenario)
    mine = known.choice(room, seat.seat(), name)
    if revealed:
        _uncover(scenario, mine)
    place = known.position(room)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_standing(room, scenario, mine, revealed))
        toggle()
        leave_button(room)
        follow.way_to(place, name)
    if revealed:
        choices, answer = _choices(scenario, truth=True)
        st.html(split(choices, known.counts(room, name), answer, mine))
    watch(room, name, revealed, place)


def _take_answer(room: str, page: str, scenario: Scenario) -> None:
    """An answer becomes a vote and the page stays covered. A learner who
    skips the question sees the page and has no vote."""
    name, known, mine = scenario.name, seat.rooms(), seat.seat()
    if known.looked(room, mine, name):
        if predict.covered(page):  # after a reload
            _uncover(scenario, None)
        return
    fresh = _fresh(room, page, scenario)
    if fresh == predict.SKIPPED:
        known.look(room, mine, name)
        return
    if fresh is not None:
        try:
            known.vote(room, mine, name, fresh)
        except GradebookError as error:
            st.warning(words.plain(words.place(error)))
    _cover(room, page, scenario)


def _standing(
    room: str, scenario: Scenario, mine: int | None, revealed: bool
) -> str:
    said = f"Room **{room}**. "
    if revealed:
        return said + "The lead has revealed the answer."
    if seat.rooms().looked(room, seat.seat(), scenario.name):
        return said + "You looked at the answer, so you have no vote here."
    if mine is None:
        return said + "Answer below. Nobody sees who said what."
    chosen = words.plain(scenario.prediction.choices[mine])
    return said + f"You said **{chosen}**. You can change it until the reveal."


def toggle() -> None:
    """Follow the lead, or not. The choice holds on every page."""
    keys.show("room-follow", follow.following())
    st.toggle(
        "Follow the lead",
        key="room-follow",
        on_change=lambda: follow.switch(keys.widget("room-follow")),
        help="Shows the lead's page, batch, selected row and stage. Your own"
        " batch is kept, and comes back when you stop following.",
    )


def leave_button(room: str) -> None:
    """The way out of the room."""
    st.button(
        "Leave the room",
        key="room-leave",
        on_click=seat.leave,
        args=(room,),
        type="tertiary",
    )


def watch(
    room: str, question: str, revealed: bool, place: Position | None
) -> None:
    """Draws the page again when the lead reveals or goes elsewhere, and
    where it follows when the lead edits.

    question  what stands on the page, '' for none
    revealed  its answer was revealed when the page was drawn
    place     where the lead was then
    """
    waits = question and not revealed
    news(room, "so_far" if waits else "silent", question, place)
