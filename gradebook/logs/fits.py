"""Fits: how a computation's advantages lie with the logged ones.

Letters: R rows, S steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.pipeline import Engine, Trace, run
from gradebook.logs.candidates.rollouts import Rollouts, under
from gradebook.logs.computations import Computation

ABSOLUTE = RELATIVE = 1e-5
"""How far a float32 advantage with noise of 1e-6 may lie from its value."""

DUST = 4 * 2.0**-24
"""Relative rounding of a float32 score and of a mean over such scores."""

ALIKE = 3e-6
"""Residuals below this are all the same: the log's own noise."""


@dataclass(frozen=True, eq=False)
class Fit:
    """How one computation lies with the log. NaN and false where the step
    was not computed.

    residual  float64 [S] largest distance of a row, dust left out
    fits      bool [S] every row is within tolerance and rounding dust
    tight     bool [S] every row is within tolerance
    """

    residual: np.ndarray
    fits: np.ndarray
    tight: np.ndarray

    @classmethod
    def unknown(cls, steps: int) -> Fit:
        """Nothing computed yet."""
        no = np.zeros(steps, dtype=bool)
        return cls(np.full(steps, np.nan), no, no.copy())

    @classmethod
    def out(cls, steps: int) -> Fit:
        """Nothing that could be computed."""
        no = np.zeros(steps, dtype=bool)
        return cls(np.full(steps, np.inf), no, no)

    def at(self, steps: np.ndarray) -> Fit:
        """Only these steps, bool [S]."""
        return Fit(self.residual[steps], self.fits[steps], self.tight[steps])

    def filled(self, at: np.ndarray, new: Fit) -> Fit:
        """This fit with `new` at the steps `at`, bool [S]."""
        both = zip(
            (self.residual, self.fits, self.tight),
            (new.residual, new.fits, new.tight),
        )
        merged = []
        for old, value in both:
            old = old.copy()
            old[at] = value
            merged.append(old)
        return Fit(*merged)


def all_filled(fits: list[Fit], at: np.ndarray, new: Fit) -> list[Fit]:
    """The fits with `new` at the steps `at`; what was one stays one."""
    known = {id(fit): fit for fit in fits}
    after = {key: fit.filled(at, new) for key, fit in known.items()}
    return [after[id(fit)] for fit in fits]


def numbers_of(
    rollouts: Rollouts, computation: Computation, sizes: Tensor | None = None
) -> np.ndarray:
    """The advantages under one computation. float64 [R]."""
    batch = under(rollouts.batch, computation.settings, sizes)
    return run(without_loss(computation.engine), batch).advantage.numpy()


@lru_cache
def without_loss(engine: Engine) -> Engine:
    """The engine without its question which rows train: advantages do not
    ask it."""
    return replace(engine, trained=_not_asked)


def _not_asked(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """Counted rows, in place of `trained`. bool [R]."""
    return counted


def tolerance(logged: np.ndarray) -> np.ndarray:
    """How far each logged advantage may be off. float64 [R]."""
    size = np.abs(np.where(np.isfinite(logged), logged, 0))
    return ABSOLUTE + RELATIVE * size


def distance(found: np.ndarray, logged: np.ndarray) -> np.ndarray:
    """|found - logged|; 0 where both are not finite, inf where one is."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(found - logged)
    odd = ~np.isfinite(away)
    if odd.any():
        same = np.isfinite(found[odd]) == np.isfinite(logged[odd])
        away[odd] = np.where(same, 0.0, np.inf)
    return away


def dust_of(
    rollouts: Rollouts, trace: Trace, scale: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """What float32 rounding of scores and means may do to these rows.

    Scores such as 0, 1 or 0.25 have exact sums, and so has a group in which
    one row counts. Dust over its own spread stays below the root of
    the number of rows. [rows]
    """
    score = trace.score.numpy()[rows]
    baseline = np.nan_to_num(trace.baseline.numpy()[rows])
    size = np.abs(score) + np.abs(baseline)
    divisor = np.where(scale[rows] > 0, scale[rows], np.inf)
    group = trace.group.numpy() + 1
    voters = np.bincount(group[trace.counted.numpy()], minlength=1)
    own = group[rows]
    alone = voters[np.minimum(own, len(voters) - 1)] <= 1
    alone |= own >= len(voters)
    short = (score * 1024 == np.round(score * 1024)) & (size < 4096)
    exact = short | alone & (own > 0) | ~trace.credited.numpy()[rows]
    dust = np.where(exact, 0, DUST * size / divisor)
    step = rollouts.batch.step_index.numpy()[rows]
    return np.minimum(dust, np.sqrt(rollouts.batch.step_rows.numpy())[step])


def fit_of(
    rollouts: Rollouts, trace: Trace, scale: np.ndarray, allowed: np.ndarray
) -> Fit:
    """How a trace's advantages lie with the log."""
    found = trace.advantage.numpy()
    away = distance(found, rollouts.advantage)
    worst = rollouts.worst(away)
    loose = rollouts.worst(away - allowed) > 0
    if not loose.any():
        return Fit(worst, ~loose, ~loose)
    steps = rollouts.batch.step_index.numpy()
    gain = _gain(rollouts, trace, found)

    def beyond(rows: np.ndarray) -> np.ndarray:
        dust = dust_of(rollouts, trace, scale, rows) * gain[steps[rows]]
        return away[rows] > allowed[rows] + dust

    misfit = loose.copy()
    misfit[loose] = beyond(rollouts.first_at(away, worst)[loose])
    open_steps = loose & ~misfit
    if open_steps.any():
        rows = np.flatnonzero(open_steps[steps] & (away > allowed))
        still = beyond(rows)
        away[rows[~still]] = 0
        misfit[steps[rows[still]]] = True
        worst = rollouts.worst(away)
    return Fit(worst, ~misfit, ~loose)


def _gain(rollouts: Rollouts, trace: Trace, found: np.ndarray) -> np.ndarray:
    """How much the last stage spreads the standardized scores. [S]"""
    before = trace.standardized.numpy()
    if found is before or np.array_equal(found, before):
        return np.ones(rollouts.steps)
    spreads = []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for values in (found, before):
            values = np.nan_to_num(values)
            spreads.append(rollouts.worst(values) + rollouts.worst(-values))
        gain = spreads[0] / spreads[1]
    return np.where(np.isfinite(gain), gain, 1.0)
