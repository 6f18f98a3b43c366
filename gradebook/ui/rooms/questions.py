"""What a room can be asked: the question of a case, a report of "Bug or not?",
the outcome of a training run, or how a plan opens and closes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradebook.cases.reports import named
from gradebook.cases.scenario import load, names
from gradebook.classroom.plan import CLOSING, OPENING, TRAINING
from gradebook.training.effect import question as about_training
from gradebook.training.environments import KINDS
from gradebook.training.study import studied, study
from gradebook.ui.board import lesson
from gradebook.ui.parts import quiz
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import SKIPPED, Guess, Progress


@dataclass(frozen=True)
class Question:
    """A question as it stands on its page; `answer` is the right choice, None
    where there is none."""

    text: str
    choices: tuple[str, ...]
    answer: int | None


@lru_cache(maxsize=1024)
def question(name: str) -> Question | None:
    """The question of this name; None where there is none."""
    if report := named(name):
        return Question(report.claim, quiz.CHOICES, quiz.truth(report))
    if name == OPENING.question:
        return Question(OPENING.ask, OPENING.choices, 0)
    if name == CLOSING.question:
        return Question(CLOSING.ask, CLOSING.choices, None)
    bug = name.removeprefix(TRAINING)
    if bug != name and bug in studied():
        one = study(bug)
        engines = load(bug).engine_names
        text = about_training(one, one.slider.default, engines, one.report[0])
        choices = tuple(said[:1].upper() + said[1:] for said in one.measured.choices)
        return Question(text, choices, KINDS.index(one.answer))
    if name not in names():
        return None
    asked = load(name).prediction
    return Question(asked.question, asked.choices, asked.answer)


OF_A_DRAFT = ("epoch", "ack", "row", "lists", "history", "invite", "notes", "refused")
"""Of a board's data, what belongs to one learner's draft."""


@lru_cache(maxsize=512)
def revealed(name: str, vote: int | None) -> dict[str, Any] | None:
    """What the board of the case shows after the reveal, on its original batch,
    to a learner who voted so; None for a question without a board."""
    if name not in names():
        return None
    progress = Progress({name: Guess(SKIPPED if vote is None else vote)})
    board = lesson.shown(Draft(load(name)), progress)
    return {key: value for key, value in board.items() if key not in OF_A_DRAFT}
