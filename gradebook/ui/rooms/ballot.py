""" "Bug or not?" in a room: the lead goes from report to report, learners
vote, and the lead reveals.

Learners see the lead's report, whether they follow or not. A report's kind
is sent to nobody before its reveal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.reports import Report
from gradebook.classroom.store import Position, Room
from gradebook.ui import keys
from gradebook.ui.parts import quiz
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.tables import table
from gradebook.ui.rooms import bar, seat

Shown = Callable[[Quiz, Report, bool], None]
"""Draws the batch of a report; after its reveal also what settles it."""


def asked(page: str) -> bool:
    """This browser learns in a room whose lead is at this page."""
    room = seat.here() if seat.learning() else None
    return bool(room and room.position and room.position.page == page)


# The lead


def lead(page: str, game: Quiz, shown: Shown) -> None:
    """The page of the room's lead."""
    report, question = game.report, _question(game)
    bar.move(Position(page, question, query_string(quiz.round_link(game))))
    room = seat.rooms().room(seat.code())
    with bar.framed():
        if report is None:
            return _room_result(room, game)
        at = f"**Report {game.at + 1} of {len(game.reports)}**"
        text = f"Room **{room.code}**, you lead. {at}"
        standing = bar.lead(room, question, text, partial(_onward, game))
    _report(report, standing.is_open, "")
    shown(game, report, standing.is_open)


def _question(game: Quiz) -> str:
    """What stands on the page, in the room."""
    report = game.report
    return report.question if report else f"result-{game.seed}"


def _onward(game: Quiz, revealed: bool) -> None:
    st.button(
        "Show the result" if game.at + 1 == len(game.reports) else "Next report",
        key="ballot-next",
        type="primary" if revealed else "secondary",
        on_click=game.go,
        args=(game.at + 1,),
    )
    _back(game)


def _room_result(room: Room, game: Quiz) -> None:
    """How the room judged every report that was revealed."""
    body, right, votes = [], 0, 0
    for report in game.reports:
        if report.question not in room.revealed:
            continue
        counts = room.counts.get(report.question, {})
        truth = quiz.truth(report)
        if truth is not None:
            right += counts.get(truth, 0)
            votes += sum(counts.values())
        split = [str(counts.get(choice, 0)) for choice in range(len(CHOICES))]
        number = str(report.number + 1)
        body.append([number, report.source.title, quiz.kind(report), *split])
    text = f"**{right} of {votes} votes were right.**"
    st.markdown(f"Room **{room.code}**, you lead. {text}")
    heads = [f"votes: {choice.lower()}" for choice in CHOICES]
    table(["", "report", "it is", *heads], body, label="the room's votes")
    with st.container(horizontal=True):
        st.button(
            "Play other reports",
            key="ballot-again",
            type="primary",
            on_click=keys.QUIZ.drop,
        )
        _back(game)


def _back(game: Quiz) -> None:
    if game.at:
        back = partial(game.go, game.at - 1)
        st.button("Back", key="ballot-back", type="tertiary", on_click=back)


# A learner


def learn(page: str, shown: Shown) -> None:
    """The page of a learner whose lead is here."""
    place = seat.rooms().room(seat.code()).position
    if place is None or place.page != page:
        st.rerun()
    game = _of_lead(place)
    question, report = _question(game), game.report
    with bar.framed():
        room = bar.joined(question)
        if room is None:
            return
        vote, _ = bar.settled(room, question)
        revealed, text = question in room.revealed, "The lead shows the result."
        if report is not None:
            text = f"**Report {game.at + 1} of {len(game.reports)}.** "
            text += bar.standing(room, question, vote)
        bar.line(room, text, question, vote)
    if report is None:
        return _own_result(room, game)
    answered = "" if vote is None else f"You said **{CHOICES[vote].lower()}**."
    with _report(report, revealed, answered):
        if not revealed:
            st.markdown("**Is that a bug?**")
            choices(
                {f"ballot-vote-{n}": text for n, text in enumerate(CHOICES)},
                partial(bar.vote, question),
            )
    shown(game, report, revealed)


def _of_lead(place: Position) -> Quiz:
    """The lead's game and round, with this learner's own batches."""
    led, game = quiz.read(dict(parse_qsl(place.link, True))), keys.BALLOT.get()
    if game is None or (game.seed, game.every) != (led.seed, led.every):
        game = led
    game.at = led.at
    keys.BALLOT.put(game)
    return game


def _own_result(room: Room, game: Quiz) -> None:
    """What this learner said of each report that was revealed."""
    made = seat.rooms().choices(room.code, seat.seat())
    revealed = [r for r in game.reports if r.question in room.revealed]
    answers = {r.number: made[r.question] for r in revealed if r.question in made}
    quiz.score_card(answers, revealed)


def _report(report: Report, revealed: bool, answered: str) -> DeltaGenerator:
    """The claim, and after the reveal the answer below it."""
    claim = st.container(key="predict-report")
    claim.markdown(quiz.claim(report))
    if revealed:
        quiz.answer(report, answered)
    return claim
