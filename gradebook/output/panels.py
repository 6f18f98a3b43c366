"""Both engines' results for each row, as panels of numbers and in words."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Self

from gradebook.analysis.comparison import Comparison, by_row, push
from gradebook.core.formatting import flips, pair, plain, same, settled

PUSH = "push"
"""The kind of picture for a case whose lines are tokens."""
GRADIENT = "gradient"
"""The kind of picture for a case whose advantages agree."""

Result = float | bool | int


@dataclass(frozen=True)
class Panel:
    """One quantity of each row, or of each part of the loss, in both engines,
    and the rows on which its sign flips. NaN has no mark. `unit` says what a number
    is of the quantity, "sum over tokens"; "" if it is the quantity itself."""

    title: str
    correct: Sequence[Result]
    faulty: Sequence[Result]
    flips: Sequence[bool] = ()
    unit: str = ""

    @property
    def heading(self) -> str:
        """The title with the unit: 'push (sum over tokens)'."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def finite(self) -> list[float]:
        return [v for v in (*self.correct, *self.faulty) if math.isfinite(v)]

    @property
    def differs(self) -> list[bool]:
        return [not same(a, b) for a, b in zip(self.correct, self.faulty)]

    def of(self, rows: Sequence[int]) -> Self:
        sides = [[side[r] for r in rows] for side in (self.correct, self.faulty)]
        flipped = [self.flips[r] for r in rows] if self.flips else ()
        return replace(self, correct=sides[0], faulty=sides[1], flips=flipped)


def panels(comparison: Comparison, kind: str = "") -> list[Panel]:
    """The panels of a tell-tale: the advantage, or the parts of the gradient as sums
    over the row's tokens.

    kind  "advantage", "gradient" or "push"; default: the gradient if the advantages
          agree
    """
    batch, shown = comparison.batch, []
    agree = not comparison.differs("advantage").any()
    fields = {"advantage": "advantage"}
    if agree and comparison.differs("token_advantage").any():
        fields = {"advantage of tokens": "token_advantage"}
    if batch.logp is not None and (kind == GRADIENT if kind else agree):
        fields = {"policy part of the gradient": "policy_gradient"}
        if batch.ref_logp is not None:
            fields["KL part of the gradient"] = "kl_gradient"
    if kind == PUSH:
        fields = {"push": PUSH}
    for title, field in fields.items():
        sides = (comparison.correct, comparison.faulty)
        results = (
            push(batch, t) if field == PUSH else getattr(t, field) for t in sides
        )
        correct, faulty = (v.unsqueeze(-1).flatten(1).sum(-1) for v in results)
        flipped = flips(correct, faulty).tolist()
        unit = "" if field == "advantage" else "sum over tokens"
        shown.append(Panel(title, correct.tolist(), faulty.tolist(), flipped, unit))
    return shown


def token_panel(
    comparison: Comparison, lines: str
) -> tuple[Panel, list[tuple[int, int]]]:
    """The push on each unmasked token, without logp its advantage; and the row and the
    number of each token. With `lines` "position" equal positions are neighbours."""
    batch = comparison.batch
    places = [(row, token) for row, token in batch.mask.nonzero().tolist()]
    if lines == "position":
        places.sort(key=lambda place: place[::-1])
    pushes = [push(batch, t) for t in (comparison.correct, comparison.faulty)]
    flipped = flips(*pushes)
    sides = [[settled(float(side[place])) for place in places] for side in pushes]
    title = "advantage of each token" if batch.logp is None else "push on each token"
    marks = [bool(flipped[place]) for place in places]
    return Panel(title, sides[0], sides[1], marks), places


def stage_panel(comparison: Comparison, stage: str) -> Panel:
    """A stage's result on each row; of a stage of tokens the sum over the row's."""
    traces = comparison.correct, comparison.faulty
    correct, faulty = (by_row(comparison.batch, t, stage).tolist() for t in traces)
    flipped = comparison.flips.tolist() if stage == "advantage" else ()
    return Panel(stage, correct, faulty, flipped)


def written(
    a: Result,
    b: Result,
    digits: int = 3,
    write: Callable[[float, int], str] = plain,
) -> tuple[str, str]:
    """Both engines' results of a stage: yes or no, the number of a group or
    none, or digits that tell them apart."""
    if isinstance(a, bool):
        return ("yes" if a else "no", "yes" if b else "no")
    if isinstance(a, int):
        return ("none" if a < 0 else str(a), "none" if b < 0 else str(b))
    return pair(a, b, digits, write)


def symlog(value: float) -> float:
    """Linear near 0, logarithmic beyond 1, odd: keeps sign and order."""
    if not math.isfinite(value):
        return value
    return math.copysign(math.log10(1 + abs(value)), value)


def telling(comparison: Comparison, kind: str = "") -> Panel:
    """The first panel in which the engines differ, else the last."""
    shown = panels(comparison, kind)
    return next((panel for panel in shown if any(panel.differs)), shown[-1])


def summary(panel: Panel) -> str:
    rows = range(len(panel.correct))
    apart, flipped = (
        list(compress(rows, marks)) for marks in (panel.differs, panel.flips)
    )
    return in_words(panel.title, len(rows), apart, flipped)


MOST_NAMED = 6
"""Rows that a sentence names: more are no sentence."""


def in_words(
    title: str, rows: int, apart: Sequence[int], flipped: Sequence[int]
) -> str:
    """Which of so many rows differ: '4 of 12 rows differ in advantage; the
    sign flips on row 10.'"""
    if not apart:
        return f"Both engines agree on all {rows} rows."
    sentence = f"{len(apart)} of {rows} rows differ in {title}"
    if flipped:
        sentence += "; the sign flips on row" + "s" * (len(flipped) > 1)
        sentence += f" {', '.join(map(str, flipped[:MOST_NAMED]))}"
        more = len(flipped) - MOST_NAMED
        sentence += f" and {more} more" if more > 0 else ""
    return sentence + "."
