"""What gives a bug away, as panels of numbers a row: the advantage, or the
parts of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import flips, same
from gradebook.core.formatting import pair, plain, settled

GRADIENT = "gradient"
"""The tell-tale of a case whose advantages agree."""
SQUASHED = 30.0
"""Beyond this ratio of largest to typical value a linear axis hides rows."""


@dataclass(frozen=True)
class Panel:
    """One quantity per row, both engines, and the rows on which its sign
    flips. NaN has no mark."""

    title: str
    correct: Sequence[float]
    faulty: Sequence[float]
    flips: Sequence[bool] = ()


def panels(comparison: Comparison, kind: str) -> list[Panel]:
    """The panels of a tell-tale."""
    return [
        Panel(
            title.replace("gradient", "gradient (sum over tokens)"),
            *map(Tensor.tolist, (*values, flips(*values))),
        )
        for title, values in results(comparison, kind)
    ]


Pair = tuple[Tensor, Tensor]


def results(comparison: Comparison, kind: str) -> list[tuple[str, Pair]]:
    """Title, and both engines' values a row, of each panel. The gradient, as
    a sum over the row's tokens, has a KL part only where there is a
    reference policy."""
    correct, faulty = comparison.correct, comparison.faulty
    if kind != GRADIENT or correct.gradient is None:
        return [("advantage", (correct.advantage, faulty.advantage))]
    parts = [("policy part of the gradient", "policy_gradient")]
    if comparison.batch.ref_logp is not None:
        parts.append(("KL part of the gradient", "kl_gradient"))
    return [
        (
            title,
            (getattr(correct, name).sum(-1), getattr(faulty, name).sum(-1)),
        )
        for title, name in parts
    ]


def squashes(panels: Sequence[Panel]) -> bool:
    """A value would make all others unreadable on a linear axis."""
    for panel in panels:
        values = [*panel.correct, *panel.faulty]
        sizes = sorted(abs(v) for v in values if math.isfinite(v) and settled(v))
        if len(sizes) > 2 and sizes[-1] > SQUASHED * sizes[len(sizes) // 2]:
            return True
    return False


def telling(shown: Sequence[Panel]) -> Panel:
    """The first panel in which the engines differ, else the last."""
    for panel in shown:
        if not all(map(same, panel.correct, panel.faulty)):
            return panel
    return shown[-1]


def summary(comparison: Comparison, kind: str) -> str:
    """The telling panel in one sentence."""
    panel = telling(panels(comparison, kind))
    pairs = enumerate(zip(panel.correct, panel.faulty))
    apart = [row for row, (a, b) in pairs if not same(a, b)]
    flipped = [row for row, flip in enumerate(panel.flips) if flip]
    title = panel.title.split(" (")[0]
    return in_words(title, len(panel.correct), apart, flipped)


def in_words(
    title: str, rows: int, apart: Sequence[int], flipped: Sequence[int]
) -> str:
    """Which of so many rows differ: '4 of 12 rows differ in advantage; the
    sign flips on row 10.'"""
    if not apart:
        return f"Both engines agree on all {rows} rows."
    sentence = f"{len(apart)} of {rows} rows differ in {title}"
    if flipped:
        more = len(flipped) - 6
        sentence += "; the sign flips on row" + "s" * (len(flipped) > 1)
        sentence += f" {', '.join(map(str, flipped[:6]))}"
        sentence += f" and {more} more" if more > 0 else ""
    return sentence + "."


# A stage's results in lines: one for each row, or for each part of the loss


class Line(NamedTuple):
    """A stage's result on a row, or a part of the loss."""

    label: str
    correct: float | bool | int
    faulty: float | bool | int
    differs: bool
    digits: int = 3

    def texts(self, write: Callable[[float, int], str] = plain) -> tuple[str, str]:
        """Both results: yes or no, the number of a group or none, or digits
        that tell them apart."""
        a, b = self.correct, self.faulty
        if isinstance(a, bool):
            return ("yes" if a else "no", "yes" if b else "no")
        if isinstance(a, int):
            return ("none" if a < 0 else str(a), "none" if b < 0 else str(b))
        return pair(a, b, self.digits, write)


def lines_of(comparison: Comparison, stage: str, labels: Sequence[str]) -> list[Line]:
    """A stage's result on each row; of the loss, itself and its parts."""
    traces = comparison.correct, comparison.faulty
    if stage != "loss":
        values = (getattr(trace, stage).tolist() for trace in traces)
        return list(map(Line, labels, *values, comparison.differs(stage).tolist()))
    lines = []
    for part, title in (
        ("loss", "loss"),
        ("policy_loss", "policy part"),
        ("kl_loss", "KL part"),
    ):
        a, b = (float(getattr(trace, part).sum()) for trace in traces)
        lines.append(Line(title, a, b, not same(a, b), 6))
    return lines
