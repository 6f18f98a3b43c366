"""Axes of numbers: how far one reaches, and whether it is bent. One rule for the
board, the pictures and the pages on paper."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradebook.core.formatting import settled
from gradebook.core.tolerance import EXACT

SQUASHED = 12.0
"""If the largest number is more than so many times the typical one, a linear axis would
press the others together: on half a plot of 560 pixels the typical mark, 10 pixels
wide, is then 22 from 0. Of the 111 panels of shipped cases (2026-11-28) five are above:
one at 13.8, the others beyond 40; none of the rest is above 8."""
ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10)
"""An axis of results, as far to the left as to the right of 0, ends at one of these
times a power of ten. They are short to read, and an axis is at most 1.5 times as long
as its numbers."""
HEADROOM = 1.5
"""The reach before the answer, in sizes of the largest correct value: a guess beyond
it has a place, and the end of the axis does not tell the faulty values."""
FAR = 5
"""A choice beyond so many reaches bends the axis: on a linear one, the largest correct
value would be less than 1 / (5 * 1.5) of the way from 0 to the end."""
CLOSE = 0.1
"""Rewards that differ by less than this share of their size would cover one another on
an axis that begins at 0: they share a tenth of its length."""


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`. With a `unit` it is symlog: linear in value / unit
    near 0, logarithmic far away."""

    low: float
    high: float
    unit: float | None = None

    def share(self, value: float) -> float:
        """The place of a value, from 0 at the low end to 1 at the high one."""
        start, end = bent(self.low, self.unit), bent(self.high, self.unit)
        return (bent(value, self.unit) - start) / (end - start) if end > start else 0.5


def bent(value: float, unit: float | None) -> float:
    """The function that the axis is linear in; it keeps sign and order. Infinity and
    NaN stay as they are."""
    if unit is None or not math.isfinite(value):
        return value
    return math.copysign(math.log10(1 + abs(value) / unit), value)


def unit_of(values: Iterable[float]) -> float | None:
    """The unit of the symlog axis that the values call for, a power of ten; None if a
    linear axis shows them all. Rounding, infinity and NaN do not count.

    >>> unit_of([1, -1, 2, 2000]), unit_of([1, -1, 2, 11])
    (1.0, None)
    """
    sizes = sorted(abs(x) for x in values if math.isfinite(x) and settled(x))
    if len(sizes) < 3:
        return None
    typical = sizes[(len(sizes) - 1) // 2]
    if sizes[-1] <= SQUASHED * typical:
        return None
    return 10.0 ** math.floor(math.log10(typical))


def result_axis(
    correct: Iterable[float],
    places: Iterable[float],
    drawn: Iterable[float | None],
) -> dict[str, list[float | None]]:
    """The axis of results: `reach` and `unit` of the one before the answer, and of the
    one that holds all that is `drawn`. The first holds the correct results and the
    choices, and knows nothing of the faulty engine."""
    sizes, chosen = [x for x in correct if math.isfinite(x)], list(places)
    shown = [x for x in drawn if x is not None and math.isfinite(x)]
    near = round_up([HEADROOM * x for x in sizes])
    reach = round_up([near, *chosen])
    bent = reach > FAR * near
    unit = 10.0 ** math.floor(math.log10(near)) if bent else None
    units: list[float | None] = [unit, unit or unit_of(shown)]
    return {"reach": [reach, round_up([reach, *shown])], "unit": units}


def round_up(values: Iterable[float | None]) -> float:
    """The least end of an axis that holds these values; 1 for none."""
    size = max((abs(x) for x in values if x), default=0.0)
    power = 10.0 ** math.floor(math.log10(size or 1))
    ends = (float(f"{end * power:.3g}") for end in ROUND)
    # A product such as 1.5 * 0.2 is a little more than the 0.3 at which it ends.
    return next(end for end in ends if end >= size * (1 - EXACT))


def of_inputs(typed: Sequence[float], others: Iterable[float] = ()) -> Axis:
    """The axis of what is typed and dragged, such as rewards, that also holds the
    `others`. It begins or ends at 0, unless the typed values are close to one
    another."""
    low, high = min(typed, default=0.0), max(typed, default=0.0)
    size = min(abs(low), abs(high))
    close = low * high > 0 and 0 < high - low < CLOSE * size
    values = [*typed, *others, *([] if close else [0.0])]
    return Axis(min(values), max(values), unit_of(values))
