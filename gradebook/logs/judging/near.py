"""Near: the closest computation for a log that no known computation explains."""

from dataclasses import dataclass

import numpy as np

from gradebook.core.tolerance import BEYOND, LEAST_SHARE
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.fit import Ruler, distance


@dataclass(frozen=True)
class NearMiss:
    """The computation that is closest to the log.

    is_turned  it fits every row with the opposite sign
    fitting    rows that it fits, of so many `rows`
    is_tail    only the last rows of each step miss
    """

    computation: Computation
    is_turned: bool = False
    fitting: int = 0
    rows: int = 0
    is_tail: bool = False


def near_miss(
    ruler: Ruler, computation: Computation, values: np.ndarray
) -> NearMiss | None:
    """How close a computation with these advantages, float64 [R], is; None if it fits
    too few rows."""
    steps = ruler.steps
    misses = distance(values, steps.advantage) > BEYOND * (ruler.base + ruler.written)
    fitting = int((~misses).sum())
    if fitting <= LEAST_SHARE * steps.rows:
        return None
    fits_again = 1 + np.flatnonzero(misses[:-1] & ~misses[1:])
    ends_alone = np.isin(fits_again, steps.starts).all()
    is_tail = misses.any() and ends_alone and not misses[steps.starts].any()
    return NearMiss(computation, False, fitting, steps.rows, bool(is_tail))
