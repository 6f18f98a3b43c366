"""What a mystery trainer shows of a batch, and what a game costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradebook.analysis.attempt import changes
from gradebook.analysis.comparison import Comparison, same
from gradebook.bugs import swap
from gradebook.cases.mystery import NONE
from gradebook.cases.state import State
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, Trace, run

DIGITS = 5
"""Significant digits of an advantage that are shown. More would tell the
number type in which the trainer computes."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A batch, and what the trainer gave for it: no trace where it stopped
    with an error."""

    batch: Batch
    trace: Trace | None

    @property
    def advantages(self) -> Tensor | None:
        """float64 [R], rounded to DIGITS; None after a crash."""
        return None if self.trace is None else self.trace.advantage

    @property
    def comparison(self) -> Comparison:
        """The trainer beside itself, for a board that shows one engine.
        Raises GradebookError after a crash."""
        if self.trace is None:
            raise GradebookError(
                key="trainer", expected="a result", found="a crash"
            )
        return Comparison(self.batch, self.trace, self.trace)


def look(name: str, state: State) -> Seen:
    """What the trainer with the bug `name` (or NONE) gives for the state.

    Raises GradebookError where the state cannot be read, or where no trainer
    can compute it. Where only this trainer stops with an error, that is a
    crash: the trainer that had the bug stopped there, too.
    """
    batch = state.batch()
    correct = run(CORRECT, batch)
    if name == NONE:
        return Seen(batch, _rounded(correct))
    try:
        return Seen(batch, _rounded(run(swap(name).engine, batch)))
    except GradebookError:
        return Seen(batch, None)


def _rounded(trace: Trace) -> Trace:
    values = [float(f"{x:.{DIGITS}g}") for x in trace.advantage.tolist()]
    return replace(trace, advantage=torch.tensor(values, dtype=torch.float64))


def odd_rows(name: str, state: State) -> list[int]:
    """The rows whose advantage is not the correct one; all after a crash."""
    seen, correct = look(name, state), look(NONE, state)
    if seen.advantages is None or correct.advantages is None:
        return list(range(seen.batch.rows))
    differ = ~same(seen.advantages, correct.advantages)
    return [int(row) for row in differ.nonzero().flatten()]


def edits(states: Sequence[State]) -> int:
    """How many edits lead from each state to the next: cells, settings and
    rows that changed, and 1 for another order."""
    return sum(max(changes(a, b).count, 1) for a, b in zip(states, states[1:]))
