"""Mystery trainer: a seed hides a bug, and edits bring it out.

The link of a game is its seed, which does not say which bug it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch

from gradebook.analysis.challenges import changes
from gradebook.analysis.comparison import Comparison, same
from gradebook.bugs import BUGS, swap
from gradebook.cases.scenario import FOLDER, PlainCase, bug
from gradebook.cases.schema import read_part
from gradebook.cases.state import State, start
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run

FILE = FOLDER / "games" / "mystery.toml"
NONE = ""
"""Stands for the trainer without a bug."""
DIGITS = 5
"""Significant digits of an advantage that are shown. More would tell the
number type in which the trainer computes."""


class Crash(GradebookError):
    """The trainer stops with an error where the correct one does not."""


def look(name: str, state: State) -> Comparison:
    """What the trainer with the bug `name` (or NONE) gives for the state:
    the trainer beside itself, for a board that shows one engine. Its
    advantages are rounded to DIGITS.

    Raises GradebookError where the state cannot be read, or where no trainer
    can compute it, and Crash where only this one stops.
    """
    batch = state.batch()
    trace = run(CORRECT, batch)
    try:
        trace = run(swap(name).engine, batch) if name else trace
    except GradebookError:
        clue = "The trainer stopped with an error on this batch. That is a clue, too."
        raise Crash(clue) from None
    values = [float(f"{x:.{DIGITS}g}") for x in trace.advantage.tolist()]
    rounded = replace(trace, advantage=torch.tensor(values, dtype=torch.float64))
    return Comparison(batch, rounded, rounded)


def odd_rows(name: str, state: State) -> list[int]:
    """The rows whose advantage is not the correct one; all after a crash."""
    correct = look(NONE, state).faulty.advantage
    try:
        seen = look(name, state).faulty.advantage
    except Crash:
        return list(range(len(correct)))
    return (~same(seen, correct)).nonzero().flatten().tolist()


def edits(states: Sequence[State]) -> int:
    """How many edits lead from each state to the next: cells, settings and
    rows that changed, and 1 for another order."""
    return sum(max(changes(a, b).count, 1) for a, b in zip(states, states[1:]))


@cache
def first_state() -> State:
    """The batch with which every game begins. Raises GradebookError where
    the file cannot be read."""
    return start(read_part(PlainCase, FILE, name="mystery").as_scenario())


@cache
def suspects() -> tuple[str, ...]:
    """What a game may hide: no bug, and every bug that advantages show."""
    return (NONE, *(name for name in BUGS if bug(name).in_advantages))


def hidden(seed: str) -> str:
    """The bug that the seed hides, or NONE.

    Each suspect draws a number from the seed and the highest wins. So a bug
    that is added later changes few old games.
    """

    def drawn(name: str) -> str:
        return hashlib.sha256(f"{seed}\nmystery\n{name}".encode()).hexdigest()

    return max(suspects(), key=drawn)


def stage_of(name: str) -> str:
    """The stage in which the bug is, or NONE."""
    return bug(name).stage if name else NONE
