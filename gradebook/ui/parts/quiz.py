"""A game of "Bug or not?" in one session: where it stands, and what settles each
report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from gradebook.analysis.evidence import by_engine, in_words, numbers
from gradebook.cases.reports import Alarm, Report, game
from gradebook.cases.scenario import Scenario
from gradebook.core.errors import GradebookError
from gradebook.ui.parts import words
from gradebook.ui.parts.address import bug_files, carried, game_link, seed_of
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.widget import table

CHOICES = ("A bug", "Not a bug")


@dataclass
class Quiz:
    """Where a visitor stands in a game, whose link is the seed.

    at       the round that is shown, from 0; past the last one the result
    answers  by round, an index into CHOICES
    """

    seed: str
    at: int = 0
    answers: dict[int, int] = field(default_factory=dict)

    @property
    def reports(self) -> tuple[Report, ...]:
        return game(self.seed)

    @property
    def report(self) -> Report | None:
        return self.reports[self.at] if self.at < len(self.reports) else None

    def say(self, choice: int) -> None:
        """The answer to the report, once."""
        self.answers.setdefault(self.at, choice)

    def go(self, at: int) -> None:
        """Another report is shown, or past the last one the result."""
        self.at = at

    def go_on(self) -> None:
        """The next report is shown, where this one is answered."""
        if self.at in self.answers:
            self.at += 1


def round_link(quiz: Quiz) -> dict[str, str]:
    return game_link(quiz.seed, round=str(quiz.at + 1))


def read(query: Mapping[str, str]) -> Quiz:
    """The game of a link. Never raises; what makes no sense is left out."""
    quiz, text = Quiz(seed_of(query)), query.get("round", "")
    if text.isascii() and text.isdigit():
        quiz.at = max(0, min(int(text) - 1, len(quiz.reports)))
    return quiz


def truth(report: Report) -> int | None:
    """The right answer, an index into CHOICES; None for a disputed report."""
    if not report.scored:
        return None
    return 0 if report.is_bug else 1


def kind(report: Report) -> str:
    right = truth(report)
    return "Disputed" if right is None else CHOICES[right]


def score(reports: Sequence[Report], answers: Mapping[int, int]) -> str:
    """The score in words; a disputed report does not count."""
    scored = [report for report in reports if report.scored]
    right = sum(answers.get(report.number) == truth(report) for report in scored)
    return f"{right} of {len(scored)} right"


# What settles a report: the answer, the numbers, the lesson


def claim(report: Report) -> str:
    """The report as Markdown: the scene and the claim."""
    return (
        f"{words.plain(report.source.teaser)}  \n**The report says:**"
        f" {words.plain(report.source.claim)}"
    )


def answer(report: Report, said: str) -> None:
    """The verdict card. `said` is what the visitor answered, a sentence or ''."""
    source = report.source
    if isinstance(source, Scenario):
        why, lesson = source.prediction.why, source.rule
    else:
        why, lesson = source.verdict, source.lesson
    with st.container(border=True, key="verdict"):
        st.markdown(
            f"{said} **{kind(report)}: {words.plain(source.title)}.**"
            f" {words.plain(why)}  \n"
            f"**The lesson:** {words.plain(lesson)}"
        )


def judged(report: Report, choice: int) -> str:
    sentence, right = f"You said **{CHOICES[choice].lower()}**", truth(report)
    if right is None:
        return f"{sentence}. The report is disputed, so no answer is scored."
    return f"{sentence}, and that is {'right' if choice == right else 'wrong'}."


def numbers_of(report: Report, draft: Draft) -> None:
    """The numbers that settle it, from the batch on the board."""
    alarm, both = report.source, draft.comparison
    if not isinstance(alarm, Alarm):
        if both.diverging:
            st.markdown(
                "The board has the numbers of both engines. The first stage that"
                f" differs is `{both.diverging[0]}`."
            )
        return
    body, beside = [], False
    for evidence in alarm.evidence:
        try:
            shown = in_words(numbers(evidence, both.batch))
        except GradebookError as error:
            shown = words.place(error)
        mark = "" if by_engine(evidence) else " †"
        beside = beside or bool(mark)
        where = "the board's" if evidence.rows is None else "another batch"
        body.append([evidence.says + mark, shown, where])
    text = words.plain(alarm.note)
    if beside:
        text = (
            "† Not by the engine: a formula beside it computes this now, since the"
            f" report is about code that the engine does not have. {text}"
        )
    text = f"They are computed now, and again after each edit. {text}"
    st.markdown(words.titled("The numbers that settle it", text, level=3))
    table(["what", "numbers", "batch"], body, label="what settles the report")


def sources(report: Report) -> None:
    source = report.source
    text = f"{words.plain(source.standing)}."
    if isinstance(source, Scenario):
        text += f" {words.plain(source.status_note)}"
    cites = "\n".join(f"- {cited(cite)}" for cite in source.sources)
    st.markdown(words.titled("The report", f"{text}\n\n{cites}", level=3))
    if isinstance(source, Scenario):
        label = f"Open: {words.plain(source.title)}"
        file = bug_files()[source.bug]
        st.page_link(file, label=label, query_params=carried())


def score_card(answers: Mapping[int, int], asked: Sequence[Report]) -> None:
    """The score, and a line for each of the reports that were asked."""
    st.header(f"Your score: {score(asked, answers)}")
    body = []
    for report in asked:
        choice = answers.get(report.number)
        answer = "no answer" if choice is None else CHOICES[choice]
        mark = "✓" if choice is not None and choice == truth(report) else ""
        number = str(report.number + 1)
        body.append([number, report.source.title, kind(report), answer, mark])
    head = ["", "report", "it is", "you said", ""]
    table(head, body, label="the reports and your answers")
