"""Bug or not?: reports to judge, real bugs among false alarms. Alone, or in a room
(see rooms/ballot). Before its answer nothing about a report's kind is sent."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.reports import ROUNDS, Report
from gradebook.ui import keys
from gradebook.ui.board.component import below, heart
from gradebook.ui.parts import address, drafts, quiz
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.widget import shortcuts
from gradebook.ui.rooms import bar, seat

PAGE = "bug_or_not"
KEYS = {"b": "bug", "n": "not", "ArrowRight": "next"}


def bug_or_not() -> None:
    """The whole page."""
    bar.follow(PAGE)
    st.title("Bug or not?", anchor=False)
    if seat.leads():
        led = address.game(keys.QUIZ, quiz.read)
        bar.play(PAGE, led, _shown)
        address.put(quiz.round_link(led))
    elif led_game := bar.game_of_lead(PAGE):
        bar.play(PAGE, led_game, _shown)
    else:
        bar.about("", text="You play alone here.")
        _alone(address.game(keys.QUIZ, quiz.read))


def _alone(game: Quiz) -> None:
    address.put(address.game_link(game.seed))
    report = game.report
    if report is None:
        return _result(game)
    choice = game.answers.get(game.at)
    if not game.answers:
        st.markdown(
            "Each report is about a trainer. Some describe a real bug, others"
            " only look like one. Judge each by its claim and its batch."
        )
    judged = [report for report in game.reports if report.number in game.answers]
    so_far = f" · {quiz.score(judged, game.answers)}" if judged else ""
    st.markdown(f"**Report {game.at + 1} of {len(game.reports)}**{so_far}")
    with st.container(key="predict-report"):
        st.markdown(quiz.claim(report))
        if choice is None:
            st.markdown("**Is that a bug?** (Keys: b, n)")
            choices(dict(zip(("quiz-bug", "quiz-not"), CHOICES)), game.say)
    if choice is None:
        return _shown(game, report, False)
    left, right = st.columns(2, gap="large")
    with left:
        quiz.answer(report, quiz.judged(report, choice))
        last = game.at + 1 == len(game.reports)
        label, go = "See the score" if last else "Next report", game.go_on
        st.button(label, "quiz-next", "Key: →", on_click=go, type="primary")
    _shown(game, report, True, right)


def _result(game: Quiz) -> None:
    quiz.score_card(game.answers, game.reports)
    with st.container(horizontal=True):
        label, new = f"Play {ROUNDS} others", keys.QUIZ.drop
        st.button(label, "quiz-again", on_click=new, type="primary")
        st.button("Look at them again", "quiz-back", on_click=partial(game.go, 0))
    address.colleague("The same reports", game.seed)


def _shown(
    game: Quiz, report: Report, answered: bool, beside: DeltaGenerator | None = None
) -> None:
    """The board, and after the answer the numbers that settle the report: at
    the place `beside` the verdict, or above the board."""
    draft = drafts.of(report.case(answered).as_scenario())
    bug = answered and report.is_bug
    summary = "" if bug else "The correct engine on the batch of the report."
    numbers = beside or st.container()
    heart(draft, report.picture, covered=not bug, said=summary)
    _rest(game, report, draft, answered, numbers)
    if answered:
        quiz.sources(report)


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
