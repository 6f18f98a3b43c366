"""The room at the top of a page.

The lead sees the votes and reveals the answer; a learner votes, and follows
the lead or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl

import streamlit as st

from gradebook.cases.link import encode, query_string
from gradebook.cases.reports import Report
from gradebook.cases.scenario import Scenario
from gradebook.classroom.plan import CLOSING, OPENING
from gradebook.classroom.room import Rooms
from gradebook.classroom.store import LOOKED, Position, Room
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, plans, predict, quiz, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import Progress, choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.widget import table
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.news import follow, news, question, ways

before = follow


@dataclass(frozen=True)
class Standing:
    """Where this browser stands with the question on its page, which is open where
    the answer may be shown; a learner's own choice."""

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
    standing = about(name, scenario=scenario)
    if standing and standing.is_open:
        guess = predict.SKIPPED if standing.vote is None else standing.vote
        predict.progress().answer(name, guess)
    elif standing:
        predict.progress().hidden.add(name)


def about(
    name: str, text: str = "", scenario: Scenario | None = None
) -> Standing | None:
    """The room of a page with this question; None where there is no room, or
    no seat in it.

    name      of the question, '' for none
    text      what a learner is told, where the page has no question
    scenario  the case of a bug's page
    """
    problem()
    if not seat.code():
        return None
    with st.container(border=True, key="room-bar"):
        try:
            room = seat.here()
            if room and room.led_by(seat.seat()):
                return _lead(room, name)
            if room:
                return _learner(room.code, name, text, scenario)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    f"Room **{words.plain(seat.code())}** is closed, and what it"
                    " counted is deleted. Your own work stays."
                )
                _leave_button("Go on alone")
        except GradebookError:  # the room was closed while the page ran
            st.rerun()
    return None


def problem() -> None:
    """Says once what went wrong with a room."""
    text = keys.ROOM_PROBLEM.get()
    keys.ROOM_PROBLEM.drop()
    if text:
        st.warning(words.plain(text))


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


# The lead


def _lead(room: Room, name: str) -> Standing:
    """The lead's line and what the room says."""
    revealed = name in room.revealed
    within = address.presenting() or not revealed  # within the one line
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{room.code}**, you lead.")
        if not name:
            return Standing(False, leads=True)
        label, key = ("Undo the reveal", "hide") if revealed else ("Reveal", "reveal")
        # No callback: a session that begins anew after its server was away
        # would lose a press that comes with its first run.
        if st.button(
            label, key=f"room-{key}", type="secondary" if revealed else "primary"
        ):
            seat.act(Rooms.hide if revealed else Rooms.reveal, name)
            st.rerun()
        if within:
            news(room, "tally", name)
        plans.onward(name)
    if not within:
        news(room, "tally", name)
    return Standing(revealed, leads=True)


def moved(page: str, draft: Draft) -> None:
    """Tells the room where its lead stands."""
    if seat.leads():
        link = query_string(encode(draft.state, covered=True))
        move(Position(page, draft.scenario.name, link, draft.stage))


def move(place: Position) -> None:
    """The lead stands there."""
    seat.act(Rooms.move, place)


# A learner


def _learner(
    code: str, name: str, text: str, scenario: Scenario | None
) -> Standing | None:
    """Takes the seat at the question of this name, and draws a learner's line with
    the votes; or says why there is no seat."""
    try:
        seat.rooms().join(code, seat.seat(), name)
    except GradebookError as error:
        st.warning(words.plain(words.place(error)))
        _leave_button()
        return None

    def switch() -> None:
        """The learner follows the lead from now on, or does not, on every page."""
        seat.act(Rooms.follow, keys.widget("room-follow"))
        keys.SEEN.drop()

    room = seat.rooms().room(code)
    vote = room.votes(seat.seat()).get(name)
    text = _standing(room, name, vote) if name else text
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Room **{code}**. {text}")
        keys.show("room-follow", room.follows(seat.seat()))
        st.toggle(
            "Follow the lead",
            key="room-follow",
            on_change=switch,
            help="Takes you to the lead's question and stage. Your batch stays your"
            " own.",
        )
        _leave_button()
        ways(room.position, name, scenario)
    part = "" if not name else "split" if name in room.revealed else "so_far"
    news(room, part, name, vote)
    return Standing(name in room.revealed or vote == LOOKED, vote)


def settle(code: str, own: str, progress: Progress, name: str) -> None:
    """Uncovers the case once the lead has revealed it; the page's run follows.
    The board asks for it, outside of a session's run."""
    room = seat.rooms().read(code)
    if room and name in room.revealed:
        progress.answer(name, room.votes(own).get(name, predict.SKIPPED))


def _standing(room: Room, name: str, vote: int | None) -> str:
    """Where a learner stands with a question, in words."""
    asked = question(name)
    if name in room.revealed:
        return "The lead has revealed the answer."
    if vote == LOOKED:
        return "You looked at the answer, so you have no vote here."
    if vote is None or asked is None:
        return "Nobody sees who said what."
    chosen = words.plain(asked.choices[vote])
    return f"You said **{chosen}**. You can change it until the reveal."


def _leave_button(label: str = "Leave the room") -> None:
    st.button(label, key="room-leave", on_click=seat.leave, type="tertiary")


# The vote of a plan's step that opens neither a case nor training runs: of the
# opening on the primer, and of the closing on the trainers' page


def asks(page: str) -> bool:
    """Asks the question of the page's step in a room. True while its answer is
    to be hidden."""
    step = OPENING if page == OPENING.page else CLOSING
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


# "Bug or not?": the lead goes from report to report. Learners see the lead's, whether
# they follow or not. A report's kind is sent to nobody before its reveal


def game_of_lead(page: str) -> Quiz | None:
    """The lead's game and round, where this browser learns in a room whose lead
    is at this page."""
    room = seat.here() if seat.learning() else None
    if room is None or room.position is None or room.position.page != page:
        return None
    return quiz.read(dict(parse_qsl(room.position.link, True)))


def play(page: str, game: Quiz, shown: Callable[[Quiz, Report, bool], None]) -> None:
    """The page of the room's lead, and of a learner whose lead is here.

    shown  draws the batch of a report; after its reveal also what settles it
    """
    report = game.report
    question = report.question if report else f"result-{game.seed}"
    leads, link = seat.leads(), query_string(quiz.round_link(game))
    if leads:
        move(Position(page, question, link))
    standing = about(question if report else "", text="The lead shows the result.")
    if standing is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if report:
            st.markdown(f"**Report {game.at + 1} of {len(game.reports)}**")
        if leads:
            _onward(game, standing.is_open)
    if report is None:
        return _result(seat.rooms().room(seat.code()), game, leads)
    with st.container(key="predict-report"):
        st.markdown(quiz.claim(report))
        if standing.is_open:
            choice = standing.vote
            text = "" if choice is None else f"You said **{CHOICES[choice].lower()}**."
            quiz.answer(report, text)
        elif not leads:
            st.markdown("**Is that a bug?**")
            offered = {f"ballot-vote-{n}": text for n, text in enumerate(CHOICES)}
            choices(offered, partial(vote, question))
    shown(game, report, standing.is_open)


def _onward(game: Quiz, revealed: bool) -> None:
    """The lead's way through the game."""
    last = game.at + 1 == len(game.reports)
    label, key = "Show the result" if last else "Next report", "ballot-next"
    go: Callable[[], None] = partial(game.go, game.at + 1)
    if game.report is None:
        label, key, go, revealed = "Play others", "ballot-again", keys.QUIZ.drop, True
    st.button(label, key, type="primary" if revealed else "secondary", on_click=go)
    if game.at:
        back = partial(game.go, game.at - 1)
        st.button("Back", "ballot-back", type="tertiary", on_click=back)


def _result(room: Room, game: Quiz, leads: bool) -> None:
    """Of each report that was revealed, how the room judged it, or this learner."""
    reports = [r for r in game.reports if r.question in room.revealed]
    if not leads:
        made = room.votes(seat.seat())
        answers = {r.number: made[r.question] for r in reports if r.question in made}
        return quiz.score_card(answers, reports)
    body, right, votes = [], 0, 0
    for report in reports:
        counts, truth = room.counts.get(report.question, {}), quiz.truth(report)
        if truth is not None:
            right += counts.get(truth, 0)
            votes += sum(counts.values())
        split = [str(counts.get(choice, 0)) for choice in range(len(CHOICES))]
        number = str(report.number + 1)
        body.append([number, report.source.title, quiz.kind(report), *split])
    st.markdown(f"**{right} of {votes} votes were right.**")
    heads = [f"votes: {choice.lower()}" for choice in CHOICES]
    table(["", "report", "it is", *heads], body, label="the room's votes")
