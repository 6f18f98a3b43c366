"""How far the axis of a result reaches: as far to the left as to the right of 0.

Before the answer, the reach depends on the correct values and the choices
alone, so it gives nothing away. Afterwards it widens only for a value that
lies beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10)
"""An axis ends at one of these times a power of ten."""
ROOM = 1.5
"""The reach before the answer, in sizes of the largest correct value."""
FAR = 5
"""A choice beyond so many reaches does not widen the axis."""


def round_up(size: float) -> float:
    """The least end of an axis that holds this size."""
    if not size > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(size))
    return next(
        float(f"{end * power:.3g}") for end in ROUND if end * power >= size * (1 - 1e-9)
    )


def before(correct: Iterable[float], places: Iterable[float] = ()) -> float:
    """The reach before the answer.

    places  where the choices lie on this axis
    """
    reach = round_up(ROOM * _largest(correct))
    return widened(reach, (place for place in places if abs(place) <= FAR * reach))


def widened(reach: float, values: Iterable[float]) -> float:
    """The reach that holds these values, too."""
    largest = _largest(values)
    return reach if largest <= reach * (1 + 1e-9) else round_up(largest)


def _largest(values: Iterable[float]) -> float:
    return max((abs(x) for x in values if math.isfinite(x)), default=0.0)
