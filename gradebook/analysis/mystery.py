"""What a mystery trainer shows of a batch, and what a game costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradebook.analysis.challenges import changes
from gradebook.analysis.comparison import Comparison, same
from gradebook.bugs import swap
from gradebook.cases.mystery import NONE
from gradebook.cases.state import State
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run

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
    if name != NONE:
        try:
            trace = run(swap(name).engine, batch)
        except GradebookError:
            raise Crash(
                "The trainer stopped with an error on this batch. That is a clue, too."
            ) from None
    values = [float(f"{x:.{DIGITS}g}") for x in trace.advantage.tolist()]
    advantage = torch.tensor(values, dtype=torch.float64)
    rounded = replace(trace, advantage=advantage)
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
