"""Near: the closest computation for a log that no known computation explains."""

from dataclasses import dataclass, replace

import numpy as np

from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.fit import WRITTEN, distance
from gradebook.logs.judging.search import Candidates, quiet, search
from gradebook.logs.judging.suspects import compute

LEAST_SHARE = 0.02
"""A computation that fits a smaller share of the rows is no near miss."""


@dataclass(frozen=True)
class NearMiss:
    """The computation that comes nearest.

    is_turned  it fits every row with the opposite sign
    fitting    rows that it fits, of so many `rows`
    is_tail    only the last rows of each step miss
    """

    computation: Computation
    is_turned: bool = False
    fitting: int = 0
    rows: int = 0
    is_tail: bool = False


def near_miss(candidates: Candidates) -> NearMiss | None:
    """The closest computation, or None."""
    steps, ruler = candidates.steps, candidates.ruler
    turned = replace(steps, advantage=-steps.advantage)
    others = search(replace(ruler, steps=turned), candidates.declaration)
    if opposite := others.fitting(~quiet(turned), WRITTEN):
        return NearMiss(opposite[0], is_turned=True)
    nearest, share = candidates.nearest or (None, 0.0)
    if nearest is None or share <= LEAST_SHARE:
        return None
    values = compute(steps, nearest).values
    misses = distance(values, steps.advantage) > 10 * (ruler.base + ruler.written)
    fits_again = 1 + np.flatnonzero(misses[:-1] & ~misses[1:])
    ends_alone = np.isin(fits_again, steps.starts).all()
    is_tail = misses.any() and ends_alone and not misses[steps.starts].any()
    fitting = int((~misses).sum())
    return NearMiss(nearest, False, fitting, steps.rows, bool(is_tail))
