"""A stage's results in lines: one for each row, or for each part of the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import pair, plain


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
