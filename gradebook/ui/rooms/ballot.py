""" "Bug or not?" in a room: the lead goes from report to report, learners
vote, and the lead reveals.

Learners see the lead's report, whether they follow or not. A report's kind
is sent to nobody before its reveal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.reports import Report
from gradebook.classroom.snapshot import Position
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import quiz
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.tables import table
from gradebook.ui.rooms import bar, follow, seat

Shown = Callable[[Quiz, Report, bool], None]
"""Draws the batch of a report; after its reveal also what settles it."""


def asked(page: str) -> bool:
    """This browser learns in a room whose lead is at this page."""
    with suppress(GradebookError):
        if seat.learning():
            place = seat.rooms().room(seat.code()).position
            return place is not None and place.page == page
    return False


def elsewhere() -> None:
    """The room of a learner whose lead is at another page; else nothing."""
    room = seat.code()
    if not room:
        return bar.problem()
    with bar.framed():
        if not seat.rooms().read(room):
            bar.shut(room)
        elif bar.joined(room, ""):
            place = seat.rooms().room(room).position
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"Room **{room}**. You play alone here.")
                follows = bar.toggle()
                bar.leave_button()
            follow.way_to(place, "")
            bar.watch(room, "", False, place, follows=follows)


# The lead


def lead(page: str, one: Quiz, shown: Shown) -> None:
    """The page of the room's lead."""
    room, report = seat.code(), one.report
    question = _question(one)
    link = query_string(quiz.round_link(one))
    bar.move(Position(page, question, link))
    with bar.framed():
        if report is None:
            return _room_result(room, one)
        count = len(one.reports)
        text = f"Room **{room}**, you lead. **Report {one.at + 1} of {count}**"
        standing = bar.lead(room, question, text, partial(_onward, one))
    _report(report, standing.is_open, "")
    shown(one, report, standing.is_open)


def _question(one: Quiz) -> str:
    """What stands on the page, in the room."""
    report = one.report
    return report.question if report else f"result-{one.seed}"


def _onward(one: Quiz, revealed: bool) -> None:
    last = one.at + 1 == len(one.reports)
    st.button(
        "Show the result" if last else "Next report",
        key="ballot-next",
        type="primary" if revealed else "secondary",
        on_click=one.go,
        args=(one.at + 1,),
    )
    if one.at:
        _back(one)


def _room_result(room: str, one: Quiz) -> None:
    """How the room judged every report that was revealed."""
    known, body, right, votes = seat.rooms().room(room), [], 0, 0
    for report in one.reports:
        if report.question not in known.revealed:
            continue
        counts = known.counts.get(report.question, {})
        truth = quiz.truth(report)
        if truth is not None:
            right += counts.get(truth, 0)
            votes += sum(counts.values())
        said = [str(counts.get(choice, 0)) for choice in range(len(CHOICES))]
        number = str(report.number + 1)
        body.append([number, report.source.title, quiz.kind(report), *said])
    st.markdown(f"Room **{room}**, you lead. **{right} of {votes} votes were right.**")
    heads = [f"votes: {choice.lower()}" for choice in CHOICES]
    table(["", "report", "it is", *heads], body, label="the room's votes")
    with st.container(horizontal=True):
        st.button(
            "Play other reports",
            key="ballot-again",
            type="primary",
            on_click=keys.QUIZ.drop,
        )
        _back(one)


def _back(one: Quiz) -> None:
    st.button(
        "Back",
        key="ballot-back",
        type="tertiary",
        on_click=one.go,
        args=(one.at - 1,),
    )


# A learner


def learn(page: str, shown: Shown) -> None:
    """The page of a learner whose lead is here."""
    room = seat.code()
    place = seat.rooms().room(room).position
    if place is None or place.page != page:
        st.rerun()
    one = _of_lead(place)
    question, report = _question(one), one.report
    with bar.framed():
        if not bar.joined(room, question):
            return
        vote, revealed, _ = bar.settled(room, seat.seat(), question)
        text = "The lead shows the result."
        if report is not None:
            text = f"**Report {one.at + 1} of {len(one.reports)}.** "
            text += bar.standing(question, vote, revealed)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Room **{room}**. {text}")
            bar.leave_button()
        at = question if report else ""
        bar.watch(room, at, revealed, place, vote, follows=follow.following())
    if report is None:
        return _own_result(room, one)
    answered = "" if vote is None else f"You said **{CHOICES[vote].lower()}**."
    with _report(report, revealed, answered):
        if not revealed:
            st.markdown("**Is that a bug?**")
            choices(
                {f"ballot-vote-{n}": text for n, text in enumerate(CHOICES)},
                partial(bar.vote, question),
            )
    shown(one, report, revealed)


def _of_lead(place: Position) -> Quiz:
    """The lead's game and round, with this learner's own batches."""
    told = quiz.read(dict(parse_qsl(place.link, True)))
    held = keys.BALLOT.get()
    if held is None or (held.seed, held.every) != (told.seed, told.every):
        held = told
    held.at = told.at
    keys.BALLOT.put(held)
    return held


def _own_result(room: str, one: Quiz) -> None:
    """What this learner said of each report that was revealed."""
    known = seat.rooms().room(room)
    made = seat.rooms().choices(room, seat.seat())
    revealed = [r for r in one.reports if r.question in known.revealed]
    answers = {r.number: made[r.question] for r in revealed if r.question in made}
    quiz.score_card(answers, revealed)


def _report(report: Report, revealed: bool, said: str) -> DeltaGenerator:
    """The claim, and after the reveal the answer below it."""
    asked = st.container(key="predict-report")
    asked.markdown(quiz.claim(report))
    if revealed:
        quiz.answer(report, said)
    return asked
