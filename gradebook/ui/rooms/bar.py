"""The room at the top of a bug's page.

The lead sees the votes and reveals the answer; a learner votes, and follows
the lead or not.
"""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.bugs import BUGS
from gradebook.cases.link import decode, encode, fits, query_string
from gradebook.cases.scenario import Scenario
from gradebook.classroom.snapshot import LOOKED, Position
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, predict, present, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.rooms import follow, seat
from gradebook.ui.rooms.news import news, split


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
            elif not seat.rooms().read(room):
                shut(room)
            elif joined(room, scenario.name):
                _learn(room, page, scenario)
        except GradebookError:  # the room was closed while the page ran
            st.rerun()


def framed() -> DeltaGenerator:
    """The frame around what is about the room."""
    problem()
    return st.container(border=True, key="room-bar")


def shut(room: str) -> None:
    """Says that the room is closed, with the way out."""
    st.warning(f"Room {words.plain(room)} is closed.")
    leave_button(room)


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
            follow.follow(seat.rooms().room(room).position, page)
    if room:
        _restore(room, page)


def joined(room: str, question: str) -> bool:
    """Takes the seat, or says why it cannot."""
    try:
        seat.rooms().join(room, seat.seat(), question)
    except GradebookError as error:
        st.warning(words.plain(words.place(error)))
        leave_button(room)
        return False
    return True


def pick(scenario: Scenario, choice: int, place: float | None = None) -> None:
    """The answer to the page's question, and its place on the axis. In a room
    it is a learner's vote; whoever skips the question has none, nor has the
    lead."""
    if seat.learning():
        vote(scenario.name, choice)
    elif not seat.leads():
        predict.answer(scenario.bug, choice, scenario.name, place)


def vote(question: str, choice: int) -> None:
    """The learner's vote, or SKIPPED for a look at the answer."""
    room, known, mine = seat.code(), seat.rooms(), seat.seat()
    try:
        if choice == predict.SKIPPED:
            known.look(room, mine, question)
        else:
            known.vote(room, mine, question, choice)
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.place(error))


def reveal(question: str) -> None:
    """The lead reveals the answer to the room."""
    room = seat.code()
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        seat.rooms().reveal(room, seat.seat(), question)


def hide(question: str) -> None:
    """The lead takes the reveal back."""
    room = seat.code()
    with suppress(GradebookError):
        seat.rooms().hide(room, seat.seat(), question)


def space(scenario: Scenario) -> None:
    """The space key: the lead reveals to the room; alone, it skips the
    question."""
    if seat.learning() or not predict.covered(scenario.name):
        return
    if seat.leads():
        reveal(scenario.name)
    else:
        pick(scenario, predict.SKIPPED)
    st.rerun()


def _lead(room: str, page: str, scenario: Scenario) -> None:
    revealed = scenario.name in seat.rooms().room(room).revealed
    if not revealed:
        predict.cover(scenario.name)
    elif predict.covered(scenario.name):
        predict.answer(page, predict.SKIPPED, scenario.name)
    moved(page, drafts.of(scenario))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room}**, you lead.")
        acts(scenario.name, revealed)
        if elsewhere(room):
            return
        if not revealed:
            news(room, "tally", scenario.name)
        elif present.on():  # within the one line
            _split(room, scenario)
    if revealed and not present.on():
        _split(room, scenario)


def acts(question: str, revealed: bool) -> None:
    """The lead reveals the answer, or takes the reveal back."""
    if revealed:
        st.button("Undo the reveal", key="room-hide", on_click=hide, args=(question,))
    else:
        st.button(
            "Reveal",
            key="room-reveal",
            type="primary",
            on_click=reveal,
            args=(question,),
        )


def elsewhere(room: str) -> bool:
    """Says so where the lead leads in another tab of the browser."""
    tab, own = seat.rooms().room(room).tab, keys.TAB.get()
    if tab in (None, own):
        return False
    st.markdown("You lead in another tab. What you do here moves nobody.")
    st.button("Lead from here", key="room-tab", on_click=seat.lead_here, args=(room,))
    news(room)
    return True


def _split(room: str, scenario: Scenario) -> None:
    asked = scenario.prediction
    news(room, "split", scenario.name, None, asked.choices, asked.answer)


def moved(page: str, draft: Draft) -> None:
    """Tells the room where its lead stands: case, edits, row and stage. Keeps
    what is too long for the address."""
    room = seat.code()
    if not room:
        return
    _keep(room, draft)
    if not seat.leading(room):
        return
    link = query_string(encode(draft.state, covered=True))
    place = Position(page, draft.scenario.name, link, draft.stage)
    with suppress(GradebookError):  # closed meanwhile; the next run says so
        seat.rooms().move(room, seat.seat(), place, keys.TAB.get())


def _keep(room: str, draft: Draft) -> None:
    name, query = draft.scenario.name, encode(draft.state, covered=True)
    link = "" if fits(query) else query_string(query)
    known = keys.KEPT.get()
    if link != known.get(name, "") and name not in keys.FOLLOWED.get():
        with suppress(GradebookError):
            seat.rooms().keep(room, seat.seat(), name, link)
        known[name] = link


def _restore(room: str, page: str) -> None:
    """The draft that was too long for the address, after a reload. Only pages
    of bugs have drafts in a room."""
    if page not in BUGS:
        return
    scenario, known = address.case(page), keys.KEPT.get()
    if scenario.name in known:
        return
    link = known[scenario.name] = seat.rooms().kept(room, seat.seat(), scenario.name)
    if link:
        state = decode(dict(parse_qsl(link, True)), default=page).state
        drafts.own_of(scenario).become(state)


def _learn(room: str, page: str, scenario: Scenario) -> None:
    known, name = seat.rooms().room(room), scenario.name
    asked = scenario.prediction
    mine = seat.rooms().choices(room, seat.seat()).get(name)
    revealed, looked = name in known.revealed, mine == LOOKED
    if revealed or looked:
        predict.answer(page, predict.SKIPPED if mine is None else mine, name)
    else:
        predict.cover(name)
    chosen = "" if mine is None or looked else words.plain(asked.choices[mine])
    place = known.position
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room}**. {standing(revealed, looked, chosen)}")
        toggle()
        leave_button(room)
        follow.way_to(place, name)
        follow.batch(place, scenario)
    if revealed:
        counts = known.counts.get(name, {})
        st.html(split(asked.choices, counts, asked.answer, mine))
    watch(room, name, revealed, place)


def standing(revealed: bool, looked: bool, chosen: str) -> str:
    """Where a learner stands with the question on the page.

    chosen  the vote in words, '' for none
    """
    if revealed:
        return "The lead has revealed the answer."
    if looked:
        return "You looked at the answer, so you have no vote here."
    if not chosen:
        return "Nobody sees who said what."
    return f"You said **{chosen}**. You can change it until the reveal."


def toggle() -> None:
    """Follow the lead, or not. The choice holds on every page."""
    keys.show("room-follow", follow.following())
    st.toggle(
        "Follow the lead",
        key="room-follow",
        on_change=lambda: follow.switch(keys.widget("room-follow")),
        help="Takes you to the lead's question and stage. Your batch stays your own.",
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


def watch(room: str, question: str, revealed: bool, place: Position | None) -> None:
    """Draws the page again when the lead reveals or goes elsewhere.

    question  what stands on the page, '' for none
    revealed  its answer was revealed when the page was drawn
    place     where the lead was then
    """
    waits = question and not revealed
    news(room, "so_far" if waits else "silent", question, place)
