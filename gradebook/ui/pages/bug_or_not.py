"""Bug or not?: reports to judge, real bugs among false alarms. Alone, or in a room,
whose lead goes from report to report: learners see the lead's, whether they follow or
not. Before its answer nothing about a report's kind is sent."""

from __future__ import annotations

from functools import partial
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.reports import ROUNDS, Report
from gradebook.ui import keys
from gradebook.ui.board.component import below, heart
from gradebook.ui.parts import address, drafts, quiz
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.widget import shortcuts
from gradebook.ui.rooms import bar, seat
from gradebook.ui.rooms.bar import Standing

PAGE = "bug_or_not"
KEYS = {"b": "bug", "n": "not", "ArrowRight": "next"}


def bug_or_not() -> None:
    bar.follow(PAGE)
    st.title("Bug or not?", anchor=False)
    leads, led = seat.leads(), _game_of_lead()
    game = led or address.game(keys.QUIZ, quiz.read)
    if leads:
        address.put(quiz.round_link(game))
    elif not led:
        address.put(address.game_link(game.seed))
    report = game.report
    question = report.question if report else f"result-{game.seed}"
    bar.move(PAGE, question, query_string(quiz.round_link(game)))
    if not leads and not led:
        bar.about("", text="You play alone here.")
        standing = None
    else:
        text = "The lead shows the result."
        standing = bar.about(question if report else "", text)
        if standing is None:  # there is no seat
            return
    if report is None:
        _result(game, standing)
    else:
        _report(game, report, standing)


def _game_of_lead() -> Quiz | None:
    """The lead's game and round, where this browser learns in a room whose lead
    is at this page."""
    room = seat.here() if seat.learning() else None
    if room is None or room.position is None or room.position.page != PAGE:
        return None
    return quiz.read(dict(parse_qsl(room.position.link, True)))


def _report(game: Quiz, report: Report, standing: Standing | None) -> None:
    """A report, to be judged alone or in a room. Whoever plays alone or leads goes on
    to the next."""
    choice = standing.vote if standing else game.answers.get(game.at)
    answered = standing.is_open if standing else choice is not None
    so_far = ""
    if not standing and game.answers:
        judged = [report for report in game.reports if report.number in game.answers]
        so_far = f" · {quiz.score(judged, game.answers)}"
    elif not standing:
        st.markdown(
            "Each report is about a trainer. Some describe a real bug, others"
            " only look like one. Judge each by its claim and its batch."
        )
    st.markdown(f"**Report {game.at + 1} of {len(game.reports)}**{so_far}")
    with st.container(key="predict-report"):
        st.markdown(quiz.claim(report))
        if not answered and not (standing and standing.leads):
            st.markdown("**Is that a bug?**" + ("" if standing else " (Keys: b, n)"))
            pick = partial(bar.vote, report.question) if standing else game.say
            choices(dict(zip(("quiz-bug", "quiz-not"), CHOICES)), pick)
    left, right = st.columns(2, gap="large")
    with left:
        if answered:
            quiz.answer(report, "" if choice is None else quiz.judged(report, choice))
        if standing.leads if standing else answered:
            last = game.at + 1 == len(game.reports)
            st.button(
                "See the score" if last else "Next report",
                key="quiz-next",
                on_click=partial(game.go, game.at + 1),
                type="primary" if answered else "secondary",
            )
    draft = drafts.of(report.case(answered).as_scenario())
    bug = answered and report.is_bug
    summary = "" if bug else "The correct engine on the batch of the report."
    heart(draft, report.picture, covered=not bug, said=summary)
    _rest(game, report, draft, answered, right)
    if answered:
        quiz.sources(report)


def _result(game: Quiz, standing: Standing | None) -> None:
    """The score; in a room of the reports that were revealed, and for its lead how
    many votes were right."""
    room = seat.here() if standing else None
    reports, answers = game.reports, game.answers
    if room:
        reports = tuple(r for r in reports if r.question in room.revealed)
        mine = room.votes(seat.seat())
        answers = {r.number: mine[r.question] for r in reports if r.question in mine}
    if room and standing and standing.leads:
        right = votes = 0
        for report in reports:
            truth = quiz.truth(report)
            if truth is not None:
                right += room.counts.get(report.question, {}).get(truth, 0)
                votes += room.answers(report.question)
        st.markdown(
            f"**{right} of {votes} votes were right.** Under Results, the page Session"
            " has the votes on each report."
        )
    else:
        quiz.score_card(answers, reports)
    if standing and not standing.leads:
        return
    with st.container(horizontal=True):
        label, new = f"Play {ROUNDS} others", keys.QUIZ.drop
        st.button(label, "quiz-again", on_click=new, type="primary")
        st.button("Look at them again", "quiz-back", on_click=partial(game.go, 0))
    if not standing:
        address.colleague("The same reports", game.seed)


@st.fragment(key="rest")
def _rest(
    game: Quiz, report: Report, draft: Draft, answered: bool, numbers: DeltaGenerator
) -> None:
    """What a finished edit draws again: the numbers that settle the report. The
    keys undo an edit; alone, b and n answer, and the right arrow goes on."""
    with draft.lock:
        if answered:
            with numbers, below(draft):
                quiz.numbers_of(report, draft)
        alone = game is keys.QUIZ.get() and not seat.leads()
        shortcuts(
            draft,
            {
                "bug": partial(game.say, 0),
                "not": partial(game.say, 1),
                "next": game.go_on,
            },
            focus=f"{game.seed}-{game.at}" if answered else "",
            letters=KEYS if alone else {},
            then=st.rerun,
        )
