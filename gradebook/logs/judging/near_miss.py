"""The near miss: what the rows that do not fit have in common."""

from __future__ import annotations

import numpy as np

from gradebook.logs.judging.fit import distance
from gradebook.logs.judging.judgement import Judgement


def near_miss(j: Judgement) -> str:
    """One sentence where only the last rows of each step keep the nearest
    reading from fitting; else ""."""
    nearest = j.found.nearest
    if j.verdict != "none fits" or nearest is None:
        return ""
    reading, steps = nearest[0], j.found.steps
    if reading.grouping == "without copies":
        return ""
    away = distance(j.found.compute(reading).values, steps.advantage)
    misses = away > 10 * (j.found.ruler.base + j.found.ruler.written)
    ends = np.append(steps.starts[1:], steps.rows)
    whole = [misses[a:b] for a, b in zip(steps.starts, ends)]
    tails = [bool((np.diff(m.astype(int)) >= 0).all()) for m in whole]
    if 2 * misses.sum() <= len(misses) and all(tails):
        fits = int((~misses).sum())
        return (
            f"Near miss: {reading.title} fits {fits:,} of the {steps.rows:,} rows, and"
            " only the last rows of each step miss. A tail is often a smaller batch,"
            " or padding: log it as a step of its own, or leave it out."
        )
    return ""
