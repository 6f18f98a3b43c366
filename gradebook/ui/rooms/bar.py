"""The room at the top of a page.

The lead sees the votes and reveals the answer; a learner votes, and follows the lead
or not. The batch there is the learner's own; the lead's is one click away.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import streamlit as st

from gradebook.cases.link import decode
from gradebook.cases.scenario import Scenario, load
from gradebook.classroom.away import AWAY
from gradebook.classroom.plan import CLOSING, OPENING, asked
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, words
from gradebook.ui.parts.drafts import SKIPPED
from gradebook.ui.parts.widget import choices
from gradebook.ui.rooms import plans, seat
from gradebook.ui.rooms.news import news, wait

if TYPE_CHECKING:
    from gradebook.classroom.store import Position, Room


SKIP = "Skip: no vote, show me"
"""What a learner's way past a question is called in a room."""


@dataclass(frozen=True)
class Standing:
    """What a page may show in a room: whether the answer is revealed, the learner's
    own vote, whether this browser leads, and where on the axis the vote was put."""

    is_open: bool
    vote: int | None = None
    leads: bool = False
    place: float | None = None


def bar(scenario: Scenario) -> None:
    """The room at the top of a bug's page; nothing without a room. Before the lead's
    reveal the page is covered, and an answer is a vote that may change."""
    standing = about(scenario.name)
    if standing and standing.is_open:
        guess = SKIPPED if standing.vote is None else standing.vote
        drafts.PROGRESS.get().answer(scenario.name, guess, standing.place)
    elif standing:
        drafts.PROGRESS.get().hidden.add(scenario.name)


def about(name: str, text: str = "") -> Standing | None:
    """The room of a page with the question of this name; None without a room, a seat in
    it, or a database. On a page without a question, '', the bar shows a learner the
    text."""
    room, me = seat.here(), seat.SEAT.get()
    problem()
    if not (seat.code() or seat.cut_off()):
        return None
    with st.container(border=True, key="room-bar"):
        if room and room.seat(me).leads:
            return _lead(room, name)
        try:
            if room and not _is_there(room, me, name):
                seat.rooms().join(room.code, me, name)
            if room := seat.here():
                return _learner(room, name, text)
            text = (
                f"Room **{words.plain(seat.code())}** is closed, and what it counted"
                " is deleted. Your own work stays."
            )
        except GradebookError as error:
            text = words.as_typed(words.message_of(error))
        if seat.cut_off():
            text = words.plain(AWAY)
            wait(seat.code(), name)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(text)
            _leave_button("Go on alone")
    return None


def _is_there(room: "Room", me: str, name: str) -> bool:
    """Whether the seat is known to be at this question. After a reveal a whole class
    comes at once, and to write that for everybody would take seconds."""
    mine = room.seat(me)
    return mine.question == name and time.time() - mine.heard < STAYS


STAYS = 30.0
"""Seconds for which a seat is in the room without another word: half of `store.GONE`,
so that a seat which stays is written again before it counts as gone."""


def problem() -> None:
    """Says once what went wrong with a room. The bar itself says that a database is
    away; nothing is said when it is back."""
    text = keys.ROOM_PROBLEM.get()
    keys.ROOM_PROBLEM.drop()
    if text == AWAY and (seat.cut_off() or not seat.rooms().database.is_away):
        return
    if text:
        st.warning(words.as_typed(text))


def pick(scenario: Scenario, choice: int, place: float | None = None) -> None:
    """The answer to the page's question, and its place on the axis. In a room it is a
    learner's vote; after SKIPPED the learner has no vote, and the lead has none. While
    the database is away, no answer in a room is taken."""
    if seat.learning():
        seat.act("vote", scenario.name, choice, place)
    elif seat.code() and seat.cut_off():
        keys.ROOM_PROBLEM.put(AWAY)
    elif not seat.leads():
        drafts.PROGRESS.get().answer(scenario.name, choice, place)


def on_board(shown: dict[str, Any], name: str, code: str, leads: bool) -> None:
    """Adds to a board's data what a room changes in it. A lead has no vote. A learner
    has one until the reveal or the end of the timer. After the reveal the class's
    guesses are drawn. It asks no database, because every edit runs it."""
    room = seat.rooms().known(code) if code else None
    label = "Show what it does" if room is None else "" if leads else "Vote"
    shown["box"] |= {"reveals": room is None or leads, "label": label}
    if room is None:
        return
    if not shown["covered"]:
        shown["crowd"] = room.places(name)
    if not leads:
        shown["box"] |= {"skip": SKIP, "over": room.is_over(name)}


def space(scenario: Scenario) -> None:
    """The space key: the lead reveals to the room; alone, it skips the question."""
    if seat.learning() or not drafts.covered(scenario.name):
        return
    if seat.leads():
        seat.act("reveal", scenario.name)
    else:
        pick(scenario, SKIPPED)
    st.rerun()


# The lead


def _lead(room: "Room", name: str) -> Standing:
    revealed = name in room.revealed
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room.code}**, you lead.")
        if not name:
            return Standing(False, leads=True)
        reveal(room, name)
        if not revealed:
            _asks(room, name)
        news(room, name)
        plans.onward(name)
    return Standing(revealed, leads=True)


def reveal(room: "Room", name: str) -> None:
    """Reveals the question's answer to the room, or takes the reveal back: on the
    question's page, and beside the lead's notes."""
    # No callbacks: a session that begins anew after its server was away
    # would lose a press that comes with its first run.
    revealed = name in room.revealed
    if revealed:
        pressed = st.button("Undo the reveal", key="room-hide")
    else:
        pressed = st.button("Reveal", key="room-reveal", type="primary")
    if pressed:
        seat.act("reveal", name, not revealed)
        st.rerun()


def _asks(room: "Room", name: str) -> None:
    """What else the lead does before the reveal: a second vote, and a timer."""
    if name not in room.again:
        again = partial(seat.act, "ask_again", name)
        st.button("Ask again", key="room-again", on_click=again, type="tertiary")
    if room.ends is None:
        for label, seconds in TIMERS.items():
            start = partial(_start_timer, seconds)
            key = f"room-timer-{seconds}"
            st.button(label, key=key, on_click=start, type="tertiary")
    else:
        stop = partial(seat.act, "change", ends=None)
        st.button("Stop the timer", "room-timer-off", on_click=stop, type="tertiary")


TIMERS = {"1 min": 60, "3 min": 180}
"""The timers that the lead starts with one click, in seconds: one to vote, and one to
discuss a question in pairs before a second vote. The plan's shortest step has 3 min."""


def _start_timer(seconds: int) -> None:
    seat.act("change", ends=time.time() + seconds)


def move(page: str, question: str, link: str = "", stage: str = "") -> None:
    """Moves the room to where the lead is now, unless the lead's other device has taken
    the room onward since this page looked: the page's next run follows it."""
    room, seen = seat.here(), keys.SEEN.get()
    if room is None or not room.seat(seat.SEAT.get()).leads:
        return
    if room.position and seen and room.position.heading[:2] != seen[:2]:
        return
    # The room may have moved since it was read, so the store compares once more.
    if seat.carried_out("move", page, question, link, stage, seen=seen or ()):
        keys.SEEN.put((page, question, stage))


# A learner


def _learner(room: "Room", name: str, text: str) -> Standing:
    """A learner's line with the votes, and the way to the lead's question or batch.
    `text` is the line of a page without a question."""
    mine = room.seat(seat.SEAT.get())
    vote = mine.votes.get(name)

    def switch() -> None:
        seat.act("change_seat", follows=keys.widget("room-follow"))
        keys.SEEN.drop()

    with st.container(horizontal=True, vertical_alignment="center"):
        line = _about(room, name, vote) if name else text
        st.markdown(f"Room **{room.code}**. {line}")
        keys.show("room-follow", mine.follows)
        st.toggle(
            "Follow the lead",
            key="room-follow",
            on_change=switch,
            help="Takes you to the lead's question and stage. Your batch stays your"
            " own.",
        )
        _leave_button()
        if room.position:
            _way_to(room.position, name)
    news(room, name)
    is_open = name in room.revealed or vote == SKIPPED
    return Standing(is_open, vote, place=mine.places.get(name))


def _about(room: "Room", question: str, vote: int | None) -> str:
    """What a learner is told about the question and the vote."""
    step = asked(question)
    if question in room.revealed:
        return "The lead has revealed the answer."
    if vote == SKIPPED:
        return "You looked at the answer, so you have no vote here."
    if vote is not None and step:
        chosen = words.plain(step.choices[vote])
        change = "You can change it until the reveal."
        return f"You said **{chosen}**. {'' if room.is_over(question) else change}"
    if question in room.again:
        return "The lead asks again: discuss it, then vote once more."
    return "Nobody sees who said what."


def _way_to(place: "Position", question: str) -> None:
    """The way from a learner's page with this question to where the lead is: to the
    lead's page, or on the same page to the lead's batch."""

    def take() -> None:
        link = decode(dict(parse_qsl(place.link, True)), default=place.page)
        address.take(link.state, covered=True).page.stage = place.stage

    if place.question != question and place.page in address.page_files():
        title = words.plain(address.page_title(place.page))
        label = f"The lead is at “{title}”. Go there"
        go = partial(keys.SEEN.put, True)
        st.button(label, key="room-way", type="tertiary", on_click=go)
    elif place.question == question and place.page in address.bug_files():
        st.button(
            "Open the lead's batch",
            key="room-batch",
            on_click=take,
            help="Undo brings yours back.",
        )


def _leave_button(label: str = "Leave the room") -> None:
    st.button(label, key="room-leave", on_click=seat.leave, type="tertiary")


NOTES_PAGE = "session"
"""The page from which a lead's second device moves the room, and stays."""


def follow(page: str) -> dict[str, str] | None:
    """Takes a learner to the lead's question and stage, before the page is drawn:
    a follower once for each of the lead's moves, others when they ask, and the lead
    where the lead's other device has gone. Returns the lead's link if the lead is on
    this page."""
    room, seen = seat.here(), keys.SEEN.get()
    if room is None or room.position is None or room.position.heading == seen:
        return None
    mine, place = room.seat(seat.SEAT.get()), room.position
    if mine.leads:
        # A lead who comes anew is where the address says.
        moved = seen is not None and seen[:2] != place.heading[:2]
        follows = moved and page != NOTES_PAGE
    else:
        follows = mine.follows or seen is True
    if not follows:
        return None
    keys.SEEN.put(place.heading)
    pages, query = address.page_files(), {}
    if place.page not in pages:  # of a newer server
        return None
    if place.page in address.bug_files():
        keys.CASES.get()[place.page] = place.question
        drafts.of(load(place.question)).page.stage = place.stage
    else:
        query = dict(parse_qsl(place.link, True))
    if place.page != page:
        st.switch_page(pages[place.page], query_params=query | address.carried())
    return query


def asks(page: str) -> bool:
    """Asks the question with which a plan opens or closes, on its page in a room. True
    while its answer is to be hidden."""
    step = OPENING if page == OPENING.page else CLOSING
    follow(page)
    move(page, step.question)
    standing = about(step.question)
    if standing is None:  # nobody sees a room's answer while its database is away
        return seat.cut_off()
    st.markdown(f"**{words.plain(step.ask)}**")
    if standing.is_open:
        st.markdown(f"**The answer:** {words.plain(step.truth)}")
    elif standing.leads:
        st.markdown(" · ".join(map(words.plain, step.choices)))
    else:
        vote = partial(seat.act, "vote", step.question)
        choices("step", step.choices, vote, skip=SKIP)
    return not standing.is_open
