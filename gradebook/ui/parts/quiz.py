"""A game of "Bug or not?" in one session, and its link.

    v=1  seed=<the game's>  every=1

The lead of a room adds round=<from 1>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradebook.cases.reports import Report, game
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.game_link import seed_of

CHOICES = ("A bug", "Not a bug")
DISPUTED = "Disputed"
"""What a report is that nobody scores."""


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


def truth(report: Report) -> int | None:
    """The right answer, an index into CHOICES; None where the report is
    disputed."""
    if not report.scored:
        return None
    return 0 if report.is_bug else 1


def kind(report: Report) -> str:
    """What the report is, in words."""
    answer = truth(report)
    return DISPUTED if answer is None else CHOICES[answer]


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
    text = query.get("round", "1")
    number = int(text) if text.isascii() and text.isdigit() else 1
    quiz.at = max(0, min(number - 1, len(quiz.reports)))
    return quiz


def score(reports: Sequence[Report], answers: Mapping[int, int]) -> str:
    """The score in words; a disputed report does not count."""
    scored = [report for report in reports if truth(report) is not None]
    right = sum(answers.get(report.number) == truth(report) for report in scored)
    return f"{right} of {len(scored)} right"


def marked(reports: Sequence[Report], answers: Mapping[int, int]) -> list[list[str]]:
    """A line a report: number, report, what it is, the answer, its mark."""
    lines = []
    for report in reports:
        choice = answers.get(report.number)
        said = "no answer" if choice is None else CHOICES[choice]
        mark = "✓" if choice is not None and choice == truth(report) else ""
        lines.append(
            [str(report.number + 1), report.source.title, kind(report), said, mark]
        )
    return lines
