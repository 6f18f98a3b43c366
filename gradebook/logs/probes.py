"""Probes: what rules a computation out before all rows are run.

A row's number depends on its group alone, or is a straight line through
such numbers: what fails on a few whole groups of a step fails on the step.
Letters: R rows, G groups, S steps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from gradebook.engine.pipeline import Trace
from gradebook.logs.candidates.rollouts import Rollouts
from gradebook.logs.computations import (
    EPS,
    Computation,
    altered,
    with_settings,
)
from gradebook.logs.fits import Fit, dust_of

PROBED = 4096
"""From so many rows on, a few groups of each step are looked at first."""


def some_groups(rollouts: Rollouts) -> np.ndarray:
    """bool [R]: the first and the last group of each step whose rewards
    vary, and the first of these in which some row is muted."""
    groups, b = rollouts.groups, rollouts.batch
    code = b.prompt_index.numpy()
    reward = b.reward.numpy()
    count = len(groups.size)
    varied = reward != reward[groups.first][code]
    varies = np.bincount(code[varied], minlength=count) > 0
    muted = ~(b.eos & b.mask.any(-1)).numpy()
    odd = np.bincount(code[muted], minlength=count) > 0
    taken = np.zeros(count, dtype=bool)
    ends = ((varies, 1), (varies, -1), (odd & varies, 1), (varies | True, 1))
    for wanted, way in ends:
        at = np.flatnonzero(wanted)[::way]
        taken[at[np.unique(groups.step[at], return_index=True)[1]]] = True
    return taken[code]


def some_strides(rollouts: Rollouts, size: np.ndarray) -> np.ndarray:
    """bool [R]: some strides of each step, of `size` rows, int64 [S], from
    the first that is no group."""
    groups, b = rollouts.groups, rollouts.batch
    place = groups.first - rollouts.starts[groups.step]
    own = size[groups.step]
    whole = (groups.size == own) & (place % own == 0)
    start = np.full(rollouts.steps, np.iinfo("int64").max)
    np.minimum.at(start, groups.step[~whole], place[~whole])
    full = b.step_rows.numpy() // size
    first = np.minimum(start // size, np.maximum(full - 1, 0)) * size
    last = np.minimum(first + size * (1 + 16 // size), full * size)
    last = np.where(full == 0, b.step_rows.numpy(), last)
    step, where = b.step_index.numpy(), b.place.numpy()
    return (where >= first[step]) & (where < last[step])


@lru_cache(maxsize=65536)
def shape_of(computation: Computation) -> Computation | None:
    """A computation within groups through whose numbers the log must be a
    straight line on every step; None when there is none."""
    c, s = computation, computation.settings
    if not c.coupled:
        return c
    if c.bug == "double_normalization":
        c = replace(c, bug="")
        return c if not c.coupled else None
    if s.baseline == "batch_mean" and s.scale != "group_std":
        return scores(c)
    if s.baseline == "batch_mean":
        return None
    local = altered(s, scale="none", whiten_tokens=False)
    return with_settings(c, local)


def has_own_line(computation: Computation) -> bool:
    """In every group, or stride, the log must be a straight line through
    the scores: all rows that earn one have the same baseline and divisor.
    In Pass@k the best row has its own."""
    return computation.settings.baseline != "second_best"


def scores(computation: Computation) -> Computation:
    """The scores themselves, as the computation clips and masks them."""
    s = altered(
        computation.settings,
        baseline="none",
        scale="none",
        whiten_tokens=False,
    )
    return Computation("", "none", s, 1)


def line_fit(
    part: Rollouts,
    trace: Trace,
    x: np.ndarray,
    scale: np.ndarray,
    allowed: np.ndarray,
    of: np.ndarray,
) -> Fit:
    """How far the credited rows are from the best line through x, of each
    step or group `of`, int64 [R]; those of -1 have no say. [S]"""
    use = trace.credited.numpy() & np.isfinite(x) & (of >= 0)
    dust = dust_of(part, trace, scale, np.arange(len(x)))
    away, out = off_line(x, part.advantage, use, of + 1, dust, allowed)
    fits = part.total(out.astype("int64")) == 0
    return Fit(part.worst(away), fits, fits)


def off_line(
    x: np.ndarray,
    y: np.ndarray,
    use: np.ndarray,
    of: np.ndarray,
    dust: np.ndarray,
    allowed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How far y is from the best line through x of each segment `of`,
    int64 [R], and whether that is more than `allowed` and the rounding of
    x, `dust`, explain: float64 and bool [R]. Rows not in `use`, or whose y
    is not finite, have no say and are never out."""
    use = use & np.isfinite(y)
    x, y = np.where(use, x, 0), np.where(use, y, 0)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(of, values)[of]

    n = np.maximum(total(use.astype("float64")), 1)
    dx = np.where(use, x - total(x) / n, 0)
    dy = np.where(use, y - total(y) / n, 0)
    across, up = total(dx * dx), total(dy * dy)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.where(across > 0, total(dx * dy) / across, 0)
        steep = np.where(across > 0, np.sqrt(up / across), 0)
        away = np.abs(dy - slope * dx)
        worst = np.zeros(int(of.max()) + 1)
        np.maximum.at(worst, of, dust * steep)
        out = use & ~(away <= 4 * worst[of] + allowed)
    return np.where(np.isfinite(away), away, 0), out


def beyond_eps(
    part: Rollouts, trace: Trace, eps: float, allowed: np.ndarray
) -> np.ndarray:
    """How far the log lies outside what any eps gives, 0 where inside. [S]

    An advantage only grows as eps shrinks, so it lies between that of the
    largest eps and that of the smallest.
    """
    scale = trace.scale.numpy()
    now = trace.advantage.numpy()
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        least = now * (scale / (scale - eps + max(EPS)))
        most = now * (scale / np.maximum(scale - eps, 0))
        low, high = np.minimum(least, most), np.maximum(least, most)
        logged = part.advantage
        away = np.maximum(low - logged, logged - high)
        away = np.where(np.isfinite(away), away, 0)
    over = np.flatnonzero(away > allowed)
    smallest = np.maximum(scale - eps, min(e for e in EPS if e))
    bound = allowed[over] + dust_of(part, trace, smallest, over)
    inside = away <= allowed
    inside[over] = away[over] <= bound
    return part.worst(np.where(inside, 0, away))
