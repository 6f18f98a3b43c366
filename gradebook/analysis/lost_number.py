"""The number that a number type cannot hold: its exact value, the nearest
float, and what the faulty engine has instead, in units in the last place.

Exact values are fractions of the scores as the trainer stores them. One ulp
(unit in the last place) is the distance from one float to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch

from gradebook.analysis.comparison import Comparison, votes
from gradebook.cases.case import LOST_NUMBERS, LostNumber

BITS = {"float32": 24, "bfloat16": 8}
"""Significant bits of a number type."""
LEAST = {"float32": -149, "bfloat16": -133}
"""The power of two of the smallest number above 0."""


@dataclass(frozen=True)
class Loss:
    """One number of one row.

    name     what it is
    exact    its exact value
    nearest  the float nearest to it
    faulty   what the faulty engine has; None where it has only `nearest`
    ulp      the unit that the gap is counted in
    """

    name: str
    exact: Fraction
    nearest: float
    faulty: float | None
    ulp: Fraction

    @property
    def gap(self) -> float:
        """How far the faulty number, or the nearest float, is from the exact
        value, in ulps."""
        found = self.nearest if self.faulty is None else self.faulty
        return float((Fraction(found) - self.exact) / self.ulp)


def ulp(value: Fraction, kind: str) -> Fraction:
    """The distance between the floats at `value`.

    >>> float(ulp(Fraction(1), "bfloat16"))
    0.0078125
    """
    if not value:
        return Fraction(2) ** LEAST[kind]
    power = math.frexp(float(abs(value)))[1] - BITS[kind]
    return Fraction(2) ** max(power, LEAST[kind])


def nearest(value: Fraction, kind: str) -> Fraction:
    """The float nearest to `value`, the even one of two.

    >>> float(nearest(Fraction(1.001953125), "bfloat16"))
    1.0
    """
    unit = ulp(value, kind)
    return round(value / unit) * unit


def lost(
    comparison: Comparison, row: int, what: LostNumber, typed: str
) -> tuple[Loss, ...]:
    """The numbers of the row that matter, the row's reward first.

    what   the number and its type, from the bug's record
    typed  the row's reward as it was typed
    Returns () where the settings compute the number in another way, or the
    row is compared with nobody.
    """
    found = _NUMBERS[what.number](comparison, row, what.type)
    return (_reward(typed, what.type), *found) if found else ()


def _reward(typed: str, kind: str) -> Loss:
    exact = Fraction(typed.strip())
    unit = ulp(exact, kind)
    return Loss("reward", exact, float(nearest(exact, kind)), None, unit)


def _mean(comparison: Comparison, row: int, kind: str) -> tuple[Loss, ...]:
    """The mean of the scores, as floats of that type, that the baseline is
    taken over."""
    baseline = comparison.batch.settings.baseline
    x = _scores(comparison, row, kind, others=baseline == "leave_one_out")
    if baseline not in ("group_mean", "leave_one_out") or not x:
        return ()
    exact = sum(x) / Fraction(len(x))
    held = comparison.faulty.baseline[row].to(getattr(torch, kind))
    near = float(nearest(exact, kind))
    return (Loss("mean", exact, near, float(held), ulp(exact, kind)),)


def _variance(comparison: Comparison, row: int, kind: str) -> tuple[Loss, ...]:
    """The mean of the squares, and what is left of it when the square of the
    mean is taken away. What is left is counted in ulps of the first: no
    smaller difference can come out of the subtraction."""
    settings = comparison.batch.settings
    others = settings.scale == "others_std"
    x = _scores(comparison, row, kind, others)
    n = len(x)
    if not (others or settings.scale == "group_std") or n <= settings.ddof:
        return ()
    mean, square = sum(x) / Fraction(n), sum(v * v for v in x) / Fraction(n)
    scale = float(comparison.faulty.scale[row])
    undivided = others and scale == 1
    spread = 0.0 if undivided else scale - settings.eps
    held = spread * spread * (n - settings.ddof) / n
    unit, variance = ulp(square, kind), square - mean * mean
    near, less = nearest(square, kind), nearest(variance, kind)
    return (
        Loss("mean of the squares", square, float(near), None, unit),
        Loss("less the square of the mean", variance, float(less), held, unit),
    )


def _scores(
    comparison: Comparison, row: int, kind: str, others: bool
) -> list[Fraction]:
    """The scores that vote in the row's group, as floats of that type."""
    trace = comparison.correct
    rows = votes(comparison.batch, trace, row, others)
    return [nearest(Fraction(float(trace.score[r])), kind) for r in rows]


_NUMBERS = dict(zip(LOST_NUMBERS, (_mean, _variance)))
