"""Bug or not?: reports to judge, real bugs among false alarms. Alone, or in a room,
whose lead goes from report to report: learners see the lead's, whether they follow or
not. Before its answer nothing about a report's kind is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.analysis.evidence import ENGINE, in_words, numbers
from gradebook.cases.link import query_string
from gradebook.cases.reports import CHOICES, ROUNDS, Alarm, Report
from gradebook.cases.reports import game as reports_of
from gradebook.cases.scenario import Scenario
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.board.component import below, heart
from gradebook.ui.parts import address, drafts, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import choices
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.widget import shortcuts, table
from gradebook.ui.rooms import bar, seat
from gradebook.ui.rooms.bar import Standing

PAGE = "bug_or_not"
KEYS = {"b": "bug", "n": "not", "ArrowRight": "next"}


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
        return reports_of(self.seed)

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
    return address.game_link(quiz.seed, round=str(quiz.at + 1))


def read(query: Mapping[str, str]) -> Quiz:
    """The game of a link. Never raises; what makes no sense is left out."""
    quiz, text = Quiz(address.seed_of(query)), query.get("round", "")
    if text.isascii() and text.isdigit():
        quiz.at = max(0, min(int(text) - 1, len(quiz.reports)))
    return quiz


def bug_or_not() -> None:
    bar.follow(PAGE)
    st.title("Bug or not?", anchor=False)
    leads, led = seat.leads(), _game_of_lead()
    game = led or address.game(keys.QUIZ, read)
    if leads:
        address.put(round_link(game))
    elif not led:
        address.put(address.game_link(game.seed))
    report = game.report
    question = report.question if report else f"result-{game.seed}"
    bar.move(PAGE, question, query_string(round_link(game)))
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
    return read(dict(parse_qsl(room.position.link, True)))


def _report(game: Quiz, report: Report, standing: Standing | None) -> None:
    """A report, to be judged alone or in a room. Whoever plays alone or leads goes on
    to the next."""
    choice = standing.vote if standing else game.answers.get(game.at)
    answered = standing.is_open if standing else choice is not None
    so_far = ""
    if not standing and game.answers:
        done = [report for report in game.reports if report.number in game.answers]
        so_far = f" · {score(done, game.answers)}"
    elif not standing:
        st.markdown(
            "Each report is about a trainer. Some describe a real bug, others"
            " only look like one. Judge each by its claim and its batch."
        )
    st.markdown(f"**Report {game.at + 1} of {len(game.reports)}**{so_far}")
    with st.container(key="predict-report"):
        teaser, claim = map(words.plain, (report.source.teaser, report.source.claim))
        st.markdown(f"{teaser}  \n**The report says:** {claim}")
        if not answered and not (standing and standing.leads):
            st.markdown("**Is that a bug?**" + ("" if standing else " (Keys: b, n)"))
            pick = partial(bar.vote, report.question) if standing else game.say
            choices(dict(zip(("quiz-bug", "quiz-not"), CHOICES)), pick)
    left, right = st.columns(2, gap="large")
    with left:
        if answered:
            answer(report, "" if choice is None else judged(report, choice))
        if standing.leads if standing else answered:
            last = game.at + 1 == len(game.reports)
            st.button(
                "See the score" if last else "Next report",
                key="quiz-next",
                help=None if standing else "Key: →",
                on_click=partial(game.go, game.at + 1),
                type="primary" if answered else "secondary",
            )
    draft = drafts.of(report.case(answered).as_scenario())
    bug = answered and report.is_bug
    summary = "" if bug else "The correct engine on the batch of the report."
    heart(draft, report.picture, covered=not bug, said=summary)
    _rest(game, report, draft, answered, right)
    if answered:
        sources(report)


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
            truth = report.truth
            if truth is not None:
                right += room.counts.get(report.question, {}).get(truth, 0)
                votes += room.answers(report.question)
        st.markdown(
            f"**{right} of {votes} votes were right.** Under Results, the page Session"
            " has the votes on each report."
        )
    else:
        score_card(answers, reports)
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
                numbers_of(report, draft)
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


# What settles a report: the answer, the numbers, where it stands


def kind(report: Report) -> str:
    return "Disputed" if report.truth is None else CHOICES[report.truth]


def score(reports: Sequence[Report], answers: Mapping[int, int]) -> str:
    """The score in words; a disputed report does not count."""
    scored = [report for report in reports if report.truth is not None]
    right = sum(answers.get(report.number) == report.truth for report in scored)
    return f"{right} of {len(scored)} right"


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
    sentence, right = f"You said **{CHOICES[choice].lower()}**", report.truth
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
        mark = "" if evidence.show in ENGINE else " †"
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
        file = address.bug_files()[source.bug]
        st.page_link(file, label=label, query_params=address.carried())


def score_card(answers: Mapping[int, int], asked: Sequence[Report]) -> None:
    """The score, and a line for each of the reports that were asked."""
    st.header(f"Your score: {score(asked, answers)}")
    body = []
    for report in asked:
        choice = answers.get(report.number)
        answer = "no answer" if choice is None else CHOICES[choice]
        mark = "✓" if choice is not None and choice == report.truth else ""
        number = str(report.number + 1)
        body.append([number, report.source.title, kind(report), answer, mark])
    head = ["", "report", "it is", "you said", ""]
    table(head, body, label="the reports and your answers")
