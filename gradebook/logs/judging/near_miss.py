"""The near miss: what the rows that do not fit have in common."""

from __future__ import annotations

import numpy as np

from gradebook.logs.judging.fit import distance
from gradebook.logs.judging.judgement import Judgement
from gradebook.logs.judging.views import compute


def near_miss(j: Judgement) -> str:
    """One sentence on the rows that keep the nearest reading from fitting:
    the last ones of each step, or all by one factor; "" for neither."""
    nearest = j.found.nearest
    if j.verdict != "none fits" or nearest is None:
        return ""
    reading, steps = nearest[0], j.found.steps
    if reading.grouping == "without copies":
        return ""
    values = compute(steps, reading).values
    away = distance(values, steps.advantage)
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
    large = np.abs(values) > 1e-4
    if not large.any():
        return ""
    factor = float(np.median(steps.advantage[large] / values[large]))
    allowed = 1e-4 * np.maximum(1, np.abs(factor))
    near = distance(values * factor, steps.advantage) < allowed
    if abs(factor) > 1e-4 and near.all():
        return (
            f"Near miss: the log is {reading.title} times {factor:.4g} on every row."
            " Look for a coefficient on the advantage or the reward."
        )
    return ""
