"""The room at the top of a bug's page.

The lead sees the votes and reveals the answer; a learner votes, and follows
the lead or not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.bugs import BUGS
from gradebook.cases.link import decode, encode, fits, query_string
from gradebook.cases.scenario import Scenario
from gradebook.classroom.plan import CLOSING, OPENING
from gradebook.classroom.room import Rooms
from gradebook.classroom.snapshot import LOOKED, Position
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, plans, predict, shell, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import Progress, choices
from gradebook.ui.rooms import follow, seat
from gradebook.ui.rooms.news import news
from gradebook.ui.rooms.questions import question


@dataclass(frozen=True)
class Standing:
    """Where this browser stands with the question on its page.

    is_open  the answer may be shown
    vote     a learner's own choice
    leads    this browser leads the room
    """

    is_open: bool
    vote: int | None = None
    leads: bool = False


def bar(page: str, scenario: Scenario) -> None:
    """The room at the top of a bug's page; nothing without a room.

    Before the lead's reveal the page is covered, and an answer is a vote
    that may change. After it the page is open for everybody.
    """
    name = scenario.name
    moved(page, drafts.of(scenario))
    standing = about(name, lambda place: follow.batch(place, scenario))
    if standing and standing.is_open:
        guess = predict.SKIPPED if standing.vote is None else standing.vote
        predict.progress().answer(name, guess)
    elif standing:
        predict.progress().hidden.add(name)


def about(
    name: str,
    beside: Callable[[Position | None], None] = lambda place: None,
) -> Standing | None:
    """The room of a page with this question; None where there is no room, or
    no seat in it.

    beside  what else stands in a learner's line, by where the lead is
    """
    room = seat.code()
    if not room:
        problem()
        return None
    with framed():
        try:
            if seat.leading(room):
                return lead(room, name, f"Room **{room}**, you lead.")
            if not seat.rooms().read(room):
                shut(room)
            elif joined(room, name):
                return _learn(room, name, beside)
        except GradebookError:  # the room was closed while the page ran
            st.rerun()
    return None


def framed() -> DeltaGenerator:
    """The frame around what is about the room."""
    problem()
    return st.container(border=True, key="room-bar")


def shut(room: str) -> None:
    """Says that the room is closed, with the way out."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"Room **{words.plain(room)}** is closed, and what it counted is deleted."
            " Your own work stays."
        )
        leave_button("Go on alone")


def problem() -> None:
    """Says once what went wrong with a room."""
    said = keys.ROOM_PROBLEM.get()
    keys.ROOM_PROBLEM.drop()
    if said:
        st.warning(words.plain(said))


def before(page: str) -> dict[str, str] | None:
    """Takes a follower to where the lead is, before the page is drawn; the
    lead's link where the lead has gone on within the page."""
    room, link = seat.code(), None
    if room and seat.learning():
        with suppress(GradebookError):
            link = follow.follow(seat.rooms().room(room).position, page)
    if room:
        _restore(room, page)
    return link


def joined(room: str, question: str) -> bool:
    """Takes the seat, or says why it cannot."""
    try:
        seat.rooms().join(room, seat.seat(), question)
    except GradebookError as error:
        st.warning(words.plain(words.place(error)))
        leave_button()
        return False
    return True


def pick(scenario: Scenario, choice: int, place: float | None = None) -> None:
    """The answer to the page's question, and its place on the axis. In a room
    it is a learner's vote; whoever skips the question has none, nor has the
    lead."""
    if seat.learning():
        vote(scenario.name, choice)
    elif not seat.leads():
        predict.progress().answer(scenario.name, choice, place)


def vote(question: str, choice: int) -> None:
    """The learner's vote; LOOKED for a look at the answer, which ends it."""
    try:
        seat.rooms().vote(seat.code(), seat.seat(), question, choice)
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.place(error))


def space(scenario: Scenario) -> None:
    """The space key: the lead reveals to the room; alone, it skips the
    question."""
    if seat.learning() or not predict.covered(scenario.name):
        return
    if seat.leads():
        seat.act(Rooms.reveal, scenario.name)
    else:
        pick(scenario, predict.SKIPPED)
    st.rerun()


def lead(
    room: str, name: str, text: str, beside: Callable[[bool], None] = lambda _: None
) -> Standing:
    """The lead's line and what the room says. `beside` draws what else stands in
    the line, before the reveal or after it."""
    revealed = name in seat.rooms().room(room).revealed
    within = shell.presenting() or not revealed  # within the one line
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(text)
        label, key = ("Undo the reveal", "hide") if revealed else ("Reveal", "reveal")
        # No callback: a session that begins anew after its server was away
        # would lose a press that comes with its first run.
        if st.button(
            label, key=f"room-{key}", type="secondary" if revealed else "primary"
        ):
            seat.act(Rooms.hide if revealed else Rooms.reveal, name)
            st.rerun()
        beside(revealed)
        here = elsewhere(room)
        if within and not here:
            news(room, "tally", name)
        plans.onward(name)
    if not (within or here):
        news(room, "tally", name)
    return Standing(revealed, leads=True)


def elsewhere(room: str) -> bool:
    """Says so where the lead leads in another tab of the browser."""
    tab, own = seat.rooms().room(room).tab, keys.TAB.get()
    if not own or tab in (None, own):  # the browser has not named its tab yet
        return False
    st.markdown("You lead in another tab. What you do here moves nobody.")
    st.button(
        "Lead from here",
        key="room-tab",
        on_click=lambda: seat.act(Rooms.change, tab=keys.TAB.get() or None),
    )
    news(room)
    return True


def moved(page: str, draft: Draft) -> None:
    """Tells the room where its lead stands: case, edits, row and stage."""
    if not seat.leads():
        return
    link = query_string(encode(draft.state, covered=True))
    move(Position(page, draft.scenario.name, link, draft.stage))


def move(place: Position) -> None:
    """The lead stands there."""
    seat.act(Rooms.move, place, keys.TAB.get())


def keeper(draft: Draft) -> Callable[[], None]:
    """Keeps the learner's own draft in the room, from when it is too long for
    the address. It needs no run of the page, so that it comes before the answer
    to an edit."""
    room, own, known = seat.code(), seat.seat(), keys.KEPT.get()
    place = room, draft.scenario.name
    if not room or draft is not drafts.own_of(draft.scenario):
        return lambda: None

    def keep() -> None:
        query = encode(draft.state, covered=True)
        link = query_string(query)
        if link != known.get(place) and (known.get(place) or not fits(query)):
            with suppress(GradebookError):  # closed meanwhile
                seat.rooms().keep(room, own, draft.scenario.name, link)
                known[place] = link

    return keep


def _restore(room: str, page: str) -> None:
    """The draft that was too long for the address, after a reload. Only pages
    of bugs have drafts in a room."""
    if page not in BUGS:
        return
    scenario, known = address.case(page), keys.KEPT.get()
    place = room, scenario.name
    if place in known:
        return
    link = known[place] = seat.rooms().kept(room, seat.seat(), scenario.name)
    if link:
        state = decode(dict(parse_qsl(link, True)), default=page).state
        drafts.own_of(scenario).become(state)


def _learn(room: str, name: str, beside: Callable[[Position | None], None]) -> Standing:
    known = seat.rooms().room(room)
    vote, revealed, is_open = settled(room, seat.seat(), name)
    place = known.position
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room}**. {standing(name, vote, revealed)}")
        follows = toggle()
        leave_button()
        follow.way_to(place, name)
        beside(place)
    watch(room, name, revealed, place, vote, follows=follows)
    return Standing(is_open, vote)


def settled(room: str, own: str, name: str) -> tuple[int | None, bool, bool]:
    """A learner's choice, whether the lead has revealed the answer, and whether
    this learner may see it."""
    vote = seat.rooms().choices(room, own).get(name)
    revealed = name in seat.rooms().room(room).revealed
    return vote, revealed, revealed or vote == LOOKED


def settle(room: str, own: str, progress: Progress, name: str) -> None:
    """Uncovers the case once the lead has revealed it; the page's run follows.
    The board asks for it, outside of a session's run."""
    if name in seat.rooms().room(room).revealed:
        vote = seat.rooms().choices(room, own).get(name)
        progress.answer(name, predict.SKIPPED if vote is None else vote)


def standing(name: str, vote: int | None, revealed: bool) -> str:
    """Where a learner stands with a question, in words."""
    asked = question(name)
    if revealed:
        return "The lead has revealed the answer."
    if vote == LOOKED:
        return "You looked at the answer, so you have no vote here."
    if vote is None or asked is None:
        return "Nobody sees who said what."
    chosen = words.plain(asked.choices[vote])
    return f"You said **{chosen}**. You can change it until the reveal."


def toggle() -> bool:
    """Follow the lead, or not. The choice holds on every page."""
    keys.show("room-follow", follow.following())
    return st.toggle(
        "Follow the lead",
        key="room-follow",
        on_change=lambda: follow.switch(keys.widget("room-follow")),
        help="Takes you to the lead's question and stage. Your batch stays your own.",
    )


def leave_button(label: str = "Leave the room") -> None:
    """The way out of the room."""
    st.button(label, key="room-leave", on_click=seat.leave, type="tertiary")


def watch(
    room: str,
    name: str,
    revealed: bool,
    place: Position | None,
    vote: int | None = None,
    *,
    follows: bool,
) -> None:
    """Draws the page again when the lead reveals or goes elsewhere.

    name      of the question on the page, '' for none
    revealed  its answer was revealed when the page was drawn
    place     where the lead was then
    vote      the learner's own choice
    follows   the learner follows the lead
    """
    part = "silent" if not name else "split" if revealed else "so_far"
    news(room, part, name, place, None if vote == LOOKED else vote, follows)


# The vote of a plan's step that opens neither a case nor training runs: of the
# opening on the primer, and of the closing on the trainers' page


STEPS = {step.page: step for step in (OPENING, CLOSING)}


def asks(page: str) -> bool:
    """Asks the question of the page's step in a room. True while its answer is
    to be hidden."""
    step = STEPS[page]
    before(page)
    if seat.leads():
        move(Position(page, step.question))
    standing = about(step.question)
    if standing is None:
        return False
    st.markdown(f"**{words.plain(step.ask)}**")
    if standing.is_open:
        st.markdown(f"**The answer:** {words.plain(step.truth)}")
    elif standing.leads:
        st.markdown(" · ".join(map(words.plain, step.choices)))
    else:
        choices(
            {f"step-{n}": choice for n, choice in enumerate(step.choices)},
            partial(vote, step.question),
            skip="step-skip",
        )
    return not standing.is_open
