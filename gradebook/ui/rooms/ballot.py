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

from gradebook.cases.link import query_string
from gradebook.cases.reports import Report
from gradebook.classroom.store import Position, Room
from gradebook.ui import keys
from gradebook.ui.parts import quiz
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.widget import table
from gradebook.ui.rooms import bar, seat


def of_lead(page: str) -> Quiz | None:
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
        bar.move(Position(page, question, link))
    standing = bar.about(question if report else "", text="The lead shows the result.")
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
            vote = standing.vote
            text = "" if vote is None else f"You said **{CHOICES[vote].lower()}**."
            quiz.answer(report, text)
        elif not leads:
            st.markdown("**Is that a bug?**")
            offered = {f"ballot-vote-{n}": text for n, text in enumerate(CHOICES)}
            choices(offered, partial(bar.vote, question))
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
        made = seat.rooms().choices(room.code, seat.seat())
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
