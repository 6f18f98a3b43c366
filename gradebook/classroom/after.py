"""What is left of a class when its room is gone: each question with its votes.

It is a value that fits into a link, so nothing has to be kept for it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradebook.cases import reports
from gradebook.cases import scenario as cases
from gradebook.classroom.plan import TRAINING, PlanStep, asked
from gradebook.classroom.store import Room

MOST_QUESTIONS = 60
"""Questions of a link that are read, so that a forged one makes no endless page: more
than the 43 steps of all plans, their opening and closing, and the 12 reports of a game
of "Bug or not?" (counted on 2026-11-28)."""
# A name is at most 60 characters long (the longest case's has 34), and has as many
# counts as a question may have choices (`room.MOST_CHOICES`).
ONE = re.compile(r"([a-zA-Z0-9_-]{1,60})~([0-9]{1,3}(?:\.[0-9]{1,3}){0,19})")


@dataclass(frozen=True)
class AskedQuestion:
    """A question of a class.

    name    the question's name
    votes   of each choice, those that counted in the end
    before  of each choice, those of the first vote; () for a question asked once
    """

    name: str
    votes: tuple[int, ...]
    before: tuple[int, ...] = ()

    @property
    def step(self) -> PlanStep:
        """Raises LookupError for a question that this version does not know."""
        if (step := asked(self.name)) is None:
            raise LookupError(self.name)
        return step

    @property
    def is_hard(self) -> bool:
        """Fewer than half of the votes were right in the end."""
        answer, all_votes = self.step.answer, sum(self.votes)
        return answer is not None and 2 * self.votes[answer] < max(all_votes, 1)

    @property
    def title(self) -> str:
        report = reports.named(self.name)
        return report.source.title if report else self.step.title

    @property
    def rule(self) -> str:
        """The rule that the question teaches; '' for none."""
        if report := reports.named(self.name):
            source = report.source
            return source.rule if isinstance(source, cases.Scenario) else source.lesson
        name = self.name.removeprefix(TRAINING)
        return cases.load(name).rule if name in cases.names() else ""


def of_room(room: Room) -> tuple[AskedQuestion, ...]:
    """The questions of the room that were revealed, in that order."""
    questions = []
    for name in room.revealed:
        if (step := asked(name)) is not None:
            every = range(len(step.choices))
            counts, first = room.counts[name], room.counts_before[name]
            before = tuple(first[n] for n in every) if name in room.again else ()
            questions.append(
                AskedQuestion(name, tuple(counts[n] for n in every), before)
            )
    return tuple(questions)


def text(questions: Iterable[AskedQuestion]) -> str:
    """As the value of a link's parameter: "partial_groups~3.1.8~5.2.5*..", whose
    second list is that of the first vote."""
    parts = []
    for question in questions:
        votes = [question.votes, question.before]
        lists = [".".join(map(str, each)) for each in votes if each]
        parts.append("~".join([question.name, *lists]))
    return "*".join(parts)


def read(text: str) -> tuple[AskedQuestion, ...]:
    """The questions of a link; what makes no sense is left out."""
    questions = []
    for part in text.split("*")[:MOST_QUESTIONS]:
        name, *lists = part.split("~")
        if not lists or len(lists) > 2 or not ONE.fullmatch(f"{name}~{lists[0]}"):
            continue
        if len(lists) == 2 and not ONE.fullmatch(f"{name}~{lists[1]}"):
            continue
        counts = [tuple(map(int, numbers.split("."))) for numbers in lists]
        step = asked(name)
        if step and all(len(numbers) == len(step.choices) for numbers in counts):
            questions.append(AskedQuestion(name, *counts))
    return tuple(questions)
