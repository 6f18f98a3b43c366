"""Bug or not?: reports to judge, real bugs among false alarms. Alone, or in a room,
whose lead goes from report to report: learners see the lead's, whether they follow or
not. Before its answer nothing about a report's kind is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.analysis.report_numbers import FORMULAS, in_words, numbers
from gradebook.cases.link import query_string
from gradebook.cases.reports import CHOICES, ROUNDS, Report
from gradebook.cases.reports import game as reports_of
from gradebook.cases.scenario import Scenario
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.board.component import below, heart
from gradebook.ui.parts import address, drafts, words
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.widget import choices, shortcuts, table
from gradebook.ui.rooms import bar, seat
from gradebook.ui.rooms.bar import Standing

if TYPE_CHECKING:
    from gradebook.classroom.store import Room

PAGE = "bug_or_not"


@dataclass
class Quiz:
    """A visitor's place in a game, whose link is the seed.

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
    def link(self) -> dict[str, str]:
        """Of the game and its round."""
        return address.game_link(self.seed, round=str(self.at + 1))


def read(query: Mapping[str, str]) -> Quiz:
    """The game of a link. Never raises; what makes no sense is left out."""
    quiz, text = Quiz(address.seed_of(query)), query.get("round", "")
    if text.isascii() and text.isdigit():
        quiz.at = max(0, min(int(text) - 1, len(quiz.reports)))
    return quiz


def bug_or_not() -> None:
    bar.follow(PAGE)
    st.title("Bug or not?", anchor=False)
    if seat.cut_off():  # played alone, the game would show the room's answers
        bar.about("")
        st.markdown("The room's game waits. To play alone, leave the room.")
        return
    room, leads = seat.here() if seat.learning() else None, seat.leads()
    led = room.position if room else None
    if led and led.page == PAGE:  # the lead's game and round
        game = read(dict(parse_qsl(led.link, True)))
    else:
        led = None
        game = address.game(keys.QUIZ, read)
        address.put(game.link if leads else address.game_link(game.seed))
    ended = game.at == len(game.reports)
    question = f"result-{game.seed}" if ended else game.reports[game.at].question
    bar.move(PAGE, question, query_string(game.link))
    if leads or led:
        standing = bar.about("" if ended else question, "The lead shows the result.")
        if standing is None:  # there is no seat
            return
    else:
        bar.about("", "You play alone here.")
        standing = None
    if ended:
        _result(game, standing)
    else:
        _report(game, standing)


def _report(game: Quiz, standing: Standing | None) -> None:
    report, alone = game.reports[game.at], standing is None
    if standing is None:
        choice = game.answers.get(game.at)
        standing = Standing(choice is not None, choice)
    answered = standing.is_open
    so_far = _introduced(game) if alone else ""
    st.markdown(f"**Report {game.at + 1} of {len(game.reports)}**{so_far}")
    with st.container(key="predict-report"):
        scene, says = map(words.plain, (report.source.teaser, report.complaint))
        st.markdown(f"{scene}  \n**The report says:** {says}")
        if not answered and not standing.leads:
            st.markdown("**Is that a bug?**")
            vote = partial(seat.act, "vote", report.question)
            pick = partial(game.answers.setdefault, game.at) if alone else vote
            choices("quiz", CHOICES, pick, skip="")
    left, right = st.columns(2, gap="large")
    with left:
        if answered:
            answer(report, standing.vote)
        if standing.leads or alone and answered:
            _next_button(game, answered)
    draft = drafts.of(report.case(answered))
    bug = answered and report.is_bug
    summary = "The correct engine on the batch of the report."
    changes = {} if bug else {"summary": summary}
    heart(draft, report.picture, covered=not bug, **changes)
    _rest(report, draft, answered, right)
    if answered:
        sources(report)


def _introduced(game: Quiz) -> str:
    """The score so far. Before the first answer, "", and the page says what to do."""
    if not game.answers:
        st.markdown(
            "Each report is about a trainer. Some describe a real bug, others"
            " only look like one. Judge each by what it says and by its batch."
        )
        return ""
    judged = [report for report in game.reports if report.number in game.answers]
    return f" · {score(judged, game.answers)}"


def _next_button(game: Quiz, answered: bool) -> None:
    is_last = game.at + 1 == len(game.reports)
    st.button(
        "See the score" if is_last else "Next report",
        key="quiz-next",
        on_click=partial(setattr, game, "at", game.at + 1),
        type="primary" if answered else "secondary",
    )


def _result(game: Quiz, standing: Standing | None) -> None:
    """The score; in a room of the reports that were revealed, and for its lead how
    many votes were right."""
    room = seat.here() if standing else None
    reports, answers = game.reports, game.answers
    if room:
        reports = tuple(r for r in reports if r.question in room.revealed)
        mine = room.seat(seat.SEAT.get()).votes
        answers = {r.number: mine[r.question] for r in reports if r.question in mine}
    if room and standing and standing.leads:
        _votes_of_room(room, reports)
    else:
        _score_of_one(reports, answers)
    if standing and not standing.leads:
        return
    with st.container(horizontal=True):
        label, new = f"Play {ROUNDS} other reports", keys.QUIZ.drop
        st.button(label, "quiz-again", on_click=new, type="primary")
        back = partial(setattr, game, "at", 0)
        st.button("Look at them again", "quiz-back", on_click=back)
    if not standing:
        address.colleague("The same reports", game.seed)


def _votes_of_room(room: "Room", reports: Sequence[Report]) -> None:
    """For a room's lead: how many votes on these reports were right."""
    truths = {r.question: r.truth for r in reports if r.truth is not None}
    right = sum(room.counts[name][truth] for name, truth in truths.items())
    votes = sum(room.counts[name].total() for name in truths)
    st.markdown(
        f"**{right} of {votes} votes were right.** Under Results, the page Session"
        " has the votes on each report."
    )


def _score_of_one(reports: Sequence[Report], answers: Mapping[int, int]) -> None:
    """One visitor's score, and each report beside their answer."""
    st.header(f"Your score: {score(reports, answers)}")
    body = []
    for report in reports:
        choice = answers.get(report.number)
        text = "no answer" if choice is None else CHOICES[choice]
        mark = "✓" if choice is not None and choice == report.truth else ""
        number, title = str(report.number + 1), report.source.title
        body.append([number, title, kind(report), text, mark])
    head = ["", "report", "it is", "you said", ""]
    table(head, body, label="the reports and your answers")


@st.fragment(key="rest")
def _rest(
    report: Report, draft: PageDraft, answered: bool, numbers: DeltaGenerator
) -> None:
    """What a finished edit draws again: the numbers that settle the report."""
    with draft.lock:
        if answered:
            with numbers, below(draft):
                settling(report, draft)
        shortcuts(draft, focus=report.question if answered else "")


def kind(report: Report) -> str:
    return "Disputed" if report.truth is None else CHOICES[report.truth]


def score(reports: Sequence[Report], answers: Mapping[int, int]) -> str:
    """The score in words; a disputed report does not count."""
    scored = [report for report in reports if report.truth is not None]
    right = sum(answers.get(report.number) == report.truth for report in scored)
    return f"{right} of {len(scored)} right"


def answer(report: Report, choice: int | None) -> None:
    source, reply = report.source, ""
    if isinstance(source, Scenario):
        why, lesson = source.prediction.why, source.rule
    else:
        why, lesson = source.verdict, source.lesson
    if choice is not None:
        right = f", and that is {'right' if choice == report.truth else 'wrong'}."
        if report.truth is None:
            right = ". The report is disputed, so no answer is scored."
        reply = f"You said **{CHOICES[choice].lower()}**{right} "
    with st.container(border=True, key="verdict"):
        st.markdown(
            f"{reply}**{kind(report)}: {words.plain(source.title)}.**"
            f" {words.plain(why)}  \n"
            f"**The lesson:** {words.plain(lesson)}"
        )


def settling(report: Report, draft: PageDraft) -> None:
    alarm, both, body = report.source, draft.comparison, []
    if isinstance(alarm, Scenario):
        if both.diverging:
            st.markdown(
                "The board has the numbers of both engines. The first stage that"
                f" differs is `{both.diverging[0]}`."
            )
        return
    for evidence in alarm.evidence:
        try:
            shown = in_words(numbers(evidence, both.batch))
        except GradebookError as error:
            shown = words.message_of(error)
        where = "the board's" if evidence.rows is None else "another batch"
        # A formula replaces code that the engine does not have.
        by = "a formula" if evidence.show in FORMULAS else "the engine"
        body.append([evidence.says, shown, where, by])
    text = f"Computed now, and again after each edit. {words.plain(alarm.note)}"
    st.markdown(words.titled("The numbers behind it", text, level=3))
    head = ["what", "numbers", "batch", "computed by"]
    table(head, body, label="what settles the report")


def sources(report: Report) -> None:
    source = report.source
    text = f"{words.plain(source.standing)}."
    if isinstance(source, Scenario):
        lines = (f"{status.trainer}: {status.sentence}" for status in source.status)
        text += "".join(f"\n\n{words.plain(line)}" for line in lines)
    cites = "\n".join(f"- {cited(cite)}" for cite in source.sources)
    st.markdown(words.titled("The report", f"{text}\n\n{cites}", level=3))
    if isinstance(source, Scenario):
        address.page_link(source.bug, f"Open: {words.plain(source.title)}")
