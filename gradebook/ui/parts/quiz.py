"""A game of "Bug or not?" in one session, and its link.

    v=1  seed=<the game's>  every=1  round=<from 1>  a=<answers>  and the
    edits of the round's batch as in any link

An answer is b (a bug), n (not a bug), or - for a round without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradebook.cases.link import decode_of, encode
from gradebook.cases.reports import Report, game
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.game_link import seed_of

ANSWERS = ("b", "n")
"""A bug, not a bug; in the order of CHOICES."""
CHOICES = ("A bug", "Not a bug")
NONE = "-"
OWN = ("seed", "every", "round", "a")


@dataclass
class Quiz:
    """Where a visitor stands in a game.

    at       the round that is shown, from 0; past the last one the result
    answers  by round, an index into CHOICES
    drafts   the batches as the visitor left them, by the case's name
    """

    seed: str
    every: bool = False
    at: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of the game, in order."""
        return game(self.seed, self.every)

    @property
    def report(self) -> Report | None:
        """The report that is shown; none at the result."""
        return self.reports[self.at] if self.at < len(self.reports) else None

    def draft(self, report: Report, answered: bool) -> Draft:
        """The report's batch, as it was left."""
        case = report.case(answered)
        if case.name not in self.drafts:
            self.drafts[case.name] = Draft(case.as_scenario())
        return self.drafts[case.name]

    def say(self, choice: int) -> None:
        """The answer to the report, once."""
        self.answers.setdefault(self.at, choice)

    def go(self, at: int) -> None:
        """Another report is shown, or past the last one the result."""
        self.at = at

    def right(self, answers: Mapping[int, int]) -> int:
        """How many of the answers are right."""
        return sum(
            answer == truth(self.reports[at])
            for at, answer in answers.items()
            if at < len(self.reports)
        )

    def link(self) -> dict[str, str]:
        """The game as parameters of an address."""
        found = round_link(self)
        last = max(self.answers, default=-1)
        marks = [
            ANSWERS[self.answers[at]] if at in self.answers else NONE
            for at in range(last + 1)
        ]
        if marks:
            found["a"] = "".join(marks)
        report = self.report
        if report is not None:
            draft = self.draft(report, self.at in self.answers)
            written = encode(draft.state, covered=True)
            found |= {k: t for k, t in written.items() if k not in ("v", "s")}
        return found


def truth(report: Report) -> int:
    """The right answer, an index into CHOICES."""
    return 0 if report.is_bug else 1


def start_of(quiz: Quiz) -> dict[str, str]:
    """The link of the game before its first answer."""
    return {"seed": quiz.seed} | ({"every": "1"} if quiz.every else {})


def round_link(quiz: Quiz) -> dict[str, str]:
    """The link of the game at its round, without answers."""
    shown = {"round": str(quiz.at + 1)} if quiz.at else {}
    return start_of(quiz) | shown


def read(query: Mapping[str, str]) -> Quiz:
    """The game of a link. Never raises; what makes no sense is left out."""
    quiz = Quiz(seed_of(query), query.get("every") == "1")
    count = len(quiz.reports)
    quiz.at = place(query.get("round", "1"), count)
    for at, mark in enumerate(query.get("a", "")[:count]):
        if mark in ANSWERS:
            quiz.answers[at] = ANSWERS.index(mark)
    report = quiz.report
    edits = {k: text for k, text in query.items() if k not in OWN}
    if report is not None and edits.keys() - {"v"}:
        draft = quiz.draft(report, quiz.at in quiz.answers)
        found = decode_of(draft.scenario, edits)
        draft.become(found.state)
        quiz.problems = found.problems
    return quiz


def place(text: str, count: int) -> int:
    """A round as a link writes it, from 0; `count` is the result."""
    number = int(text) if text.isascii() and text.isdigit() else 1
    return max(0, min(number - 1, count))


def score(right: int, of: int) -> str:
    """The score in words."""
    return f"{right} of {of} right"


def marked(reports: Sequence[Report], answers: Mapping[int, int]) -> list:
    """A line a round: number, report, what it is, the answer, its mark."""
    lines = []
    for at, report in enumerate(reports):
        made = answers.get(at)
        said = "no answer" if made is None else CHOICES[made]
        mark = "✓" if made == truth(report) else ""
        kind = CHOICES[truth(report)]
        lines.append([str(at + 1), report.source.title, kind, said, mark])
    return lines
