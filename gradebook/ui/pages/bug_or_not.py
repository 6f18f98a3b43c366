"""Bug or not?: reports to judge, real bugs among false alarms.

Alone, a visitor plays at their own pace and the address is the link of the
game. In a room the lead goes from report to report, learners vote, and the
lead reveals. Before its answer nothing about a report's kind is sent.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.reports import ROUNDS, Report
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.board.component import below, heart
from gradebook.ui.parts import address, quiz, shell
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.quiz import CHOICES, Quiz
from gradebook.ui.parts.shortcuts import NOTHING, shortcuts
from gradebook.ui.rooms import ballot, bar, seat

PAGE = "bug_or_not"
KEYS = {"b": "bug", "n": "not", "ArrowRight": "next"}


def bug_or_not() -> None:
    """The whole page."""
    bar.before(PAGE)
    st.title("Bug or not?", anchor=False)
    try:
        if seat.leads():
            one = _game()
            ballot.lead(PAGE, one, _shown)
            address.put_link(quiz.round_link(one))
        elif ballot.asked(PAGE):
            ballot.learn(PAGE, _shown)
        else:
            bar.about("", text="You play alone here.")
            _alone(_game())
    except GradebookError:  # the room was closed while the page ran
        st.rerun()


def _game() -> Quiz:
    return address.game(PAGE, keys.QUIZ, quiz.read)


# Alone


def _alone(one: Quiz) -> None:
    report = one.report
    if report is None:
        return _result(one)
    choice = one.answers.get(one.at)
    _head(one)
    with st.container(key="predict-report"):
        st.markdown(quiz.claim(report))
        if choice is None:
            _choices(one)
    if choice is None:
        return _shown(one, report, False)
    left, right = st.columns(2, gap="large")
    with left:
        quiz.answer(report, quiz.judged(report, choice))
        _next(one)
    _shown(one, report, True, right)


def _head(one: Quiz) -> None:
    count, done = len(one.reports), len(one.answers)
    if not done:
        st.markdown(
            "Each report is about a trainer. Some describe a real bug, others"
            " only look like one. Judge each by its claim and its batch."
        )
    judged = [report for report in one.reports if report.number in one.answers]
    so_far = f" · {quiz.score(judged, one.answers)}" if done else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Report {one.at + 1} of {count}**{so_far}")
        if not done and not one.at:
            st.button(
                f"Play {ROUNDS} reports"
                if one.every
                else "Play with every false alarm",
                key="quiz-other",
                type="tertiary",
                on_click=_new,
                args=(not one.every,),
            )


def _choices(one: Quiz) -> None:
    st.markdown("**Is that a bug?** (Keys: b, n)")
    choices(
        dict(zip(("quiz-bug", "quiz-not"), CHOICES)),
        one.say,
    )


def _next(one: Quiz) -> None:
    last = one.at + 1 == len(one.reports)
    st.button(
        "See the score" if last else "Next report",
        key="quiz-next",
        type="primary",
        help="Key: →",
        on_click=one.go,
        args=(one.at + 1,),
    )


def _on(one: Quiz) -> None:
    """The next report, where this one is answered."""
    if one.at in one.answers:
        one.go(one.at + 1)


def _new(every: bool) -> None:
    keys.QUIZ.put(Quiz(address.new_seed(), every))


def _keys(one: Quiz, draft: Draft, answered: bool) -> None:
    """Ctrl+Z undoes an edit; alone, b and n answer, and the right arrow goes
    on."""
    acts = {
        "bug": lambda: one.say(0),
        "not": lambda: one.say(1),
        "next": lambda: _on(one),
    }
    alone = one is keys.QUIZ.get() and not seat.leads()
    shortcuts(
        draft,
        acts,
        presenter=shell.presenting(),
        focus=f"{one.seed}-{one.at}" if answered else "",
        letters=KEYS if alone else NOTHING,
        then=st.rerun,
    )
    if alone:
        address.put_link(quiz.start_of(one))


# The batch


def _shown(
    one: Quiz, report: Report, answered: bool, beside: DeltaGenerator | None = None
) -> None:
    """The board, and after the answer the numbers that settle the report: at
    the place `beside` the verdict, or above the board."""
    draft = one.draft(report, answered)
    bug = answered and report.is_bug
    said = "" if bug else "The correct engine on the batch of the report."
    numbers = beside or st.container()
    heart(draft, report.picture, covered=not bug, said=said)
    _rest(one, report, draft, answered, numbers)
    if answered:
        quiz.sources(report)


@st.fragment(key="rest")
def _rest(
    one: Quiz, report: Report, draft: Draft, answered: bool, numbers: DeltaGenerator
) -> None:
    """What a finished edit draws again: the numbers that settle the report."""
    with draft.lock:
        if answered:
            with numbers, below(draft):
                quiz.numbers_of(report, draft)
        _keys(one, draft, answered)


# The result


def _result(one: Quiz) -> None:
    quiz.score_card(one.answers, one.reports)
    with st.container(horizontal=True):
        st.button(
            f"Play {ROUNDS} others",
            key="quiz-again",
            type="primary",
            on_click=_new,
            args=(False,),
        )
        st.button(
            "Play with every false alarm",
            key="quiz-every",
            on_click=_new,
            args=(True,),
        )
        st.button(
            "Look at them again",
            key="quiz-back",
            on_click=one.go,
            args=(0,),
        )
    st.markdown("The same reports for a colleague, from the start:")
    st.code(address.whole_link(quiz.start_of(one)), language=None, wrap_lines=True)
    address.put_link(quiz.start_of(one))
