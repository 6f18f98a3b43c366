"""What settles a report: the answer, the numbers, the lesson."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from gradebook.analysis.evidence import by_engine, in_words, numbers
from gradebook.cases.reports import Alarm, Report
from gradebook.cases.scenario import Scenario
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.ui.parts import quiz, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.quiz import CHOICES
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.shell import bug_files
from gradebook.ui.parts.tables import table
from gradebook.ui.rooms.seat import carried


def claim(report: Report) -> str:
    """The report as Markdown: the scene and the claim."""
    return (
        f"{words.plain(report.scene)}  \n**The report says:**"
        f" {words.plain(report.claim)}"
    )


def answer(report: Report, said: str) -> None:
    """The verdict card. `said` is what the visitor answered, as a sentence
    or ''."""
    source = report.source
    if isinstance(source, Scenario):
        why, lesson = source.prediction.why, source.rule
    else:
        why, lesson = source.verdict, source.lesson
    with st.container(border=True, key="verdict"):
        st.markdown(
            f"{said} **{quiz.kind(report)}: {words.plain(source.title)}.**"
            f" {words.plain(why)}  \n"
            f"**The lesson:** {words.plain(lesson)}"
        )


def judged(report: Report, choice: int) -> str:
    """What the visitor said, and whether it is right."""
    said, right = f"You said **{CHOICES[choice].lower()}**", quiz.truth(report)
    if right is None:
        return f"{said}. The report is disputed, so no answer is scored."
    return f"{said}, and that is {'right' if choice == right else 'wrong'}."


def numbers_of(report: Report, draft: Draft) -> None:
    """The numbers that settle it, from the batch on the board."""
    if isinstance(report.source, Alarm):
        _of_alarm(report.source, draft.comparison.batch)
    elif stages := draft.comparison.diverging:
        st.markdown(
            "The board has the numbers of both engines. The first stage that"
            f" differs is `{stages[0]}`."
        )


def sources(report: Report) -> None:
    """Where the report stands, and where to read it."""
    source = report.source
    told = f"{words.plain(source.standing)}."
    if isinstance(source, Scenario):
        told += f" {words.plain(source.status_note)}"
    listed = "\n".join(f"- {cited(one)}" for one in source.sources)
    st.markdown(words.titled("The report", f"{told}\n\n{listed}", level=3))
    if isinstance(source, Scenario):
        st.page_link(
            bug_files()[source.bug],
            label=f"Open: {words.plain(source.title)}",
            query_params=carried(),
        )


def score(answers: Mapping[int, int], asked: Sequence[Report]) -> None:
    """The score, and a line for each of the reports that were asked."""
    st.header(f"Your score: {quiz.score(asked, answers)}")
    table(
        ["", "report", "it is", "you said", ""],
        quiz.marked(asked, answers),
        label="the reports and your answers",
    )


TITLE = "The numbers that settle it"


def _of_alarm(alarm: Alarm, batch: Batch) -> None:
    body, beside = [], False
    for one in alarm.evidence:
        try:
            said = in_words(numbers(one, batch))
        except GradebookError as error:
            said = words.place(error)
        mark = ""
        if not by_engine(one):
            mark, beside = " †", True
        where = "another batch" if one.rows is not None else "the board's"
        body.append([f"{one.says}{mark}", said, where])
    told = []
    if any(map(by_engine, alarm.evidence)):
        told.append("The engine computes them now, and again after each edit.")
    if beside:
        told.append(
            "† Not by the engine: a formula beside it computes this now,"
            " since the report is about code that the engine does not have."
        )
    told += [words.plain(alarm.note)] if alarm.note else []
    st.markdown(words.titled(TITLE, " ".join(told), level=3))
    table(["what", "numbers", "batch"], body, label="what settles the report")
