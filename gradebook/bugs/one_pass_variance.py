"""One-pass variance: NeMo-RL PR 4158, fixed on main."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.scales import SCALES
from gradebook.engine.segments import by_group, others


def scale(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """The others' deviation as the root of E[x^2] - E[x]^2 in float32,
    which divides wherever it is above 0. float [R].

    The trainer sees advantages in the thousands on rows whose siblings all
    have the same reward: rounding left them a deviation other than 0.
    """
    s, groups = batch.settings, by_group(group, counted)
    if s.scale != "others_std":
        return SCALES[s.scale](batch, score, groups, baseline)
    rest = others(batch, groups)
    k, x = rest.n.clamp(min=2).float(), score.float()
    mean = rest.sum(x.double()).float() / k
    square = rest.sum((x * x).double()).float() / k
    variance = (square - mean * mean) * k / (k - s.ddof)
    spread = variance.sqrt().nan_to_num(0)
    divides = (rest.n >= 2) & (spread > 0)
    return torch.where(divides, spread + s.eps, 1).to(score.dtype)


READING = {"baseline": "leave_one_out", "scale": "others_std"}
"""The only computation in which the others' deviation takes part."""

NEAR = 1e-3
"""Rewards are nearly equal that differ by this much of the largest."""


def unexplained(reward: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Rows whose siblings' rewards are nearly equal, and, unless that is every
    row, their siblings where float32 cannot hold the rewards. bool [R]."""
    size, order = np.bincount(prompt), np.lexsort((reward, prompt))
    last = np.cumsum(size) - 1
    first = last - size + 1
    x, out = reward[order], np.zeros(len(reward), dtype=bool)
    near = NEAR * np.maximum(np.maximum(np.abs(x[first]), np.abs(x[last])), 1e-12)
    several = size >= 3
    second, before = np.minimum(first + 1, last), np.maximum(last - 1, first)
    out[order[first[several & (x[last] - x[second] <= near)]]] = True
    out[order[last[several & (x[before] - x[first] <= near)]]] = True
    out |= (several & (x[last] - x[first] <= near))[prompt]
    inexact = np.bincount(prompt, reward * 1024 != np.round(reward * 1024))
    whole = out | (inexact * np.bincount(prompt, out) > 0)[prompt]
    return out if whole.all() else whole


def evidence(
    rows: np.ndarray,
    reward: np.ndarray,
    prompt: np.ndarray,
    advantage: np.ndarray,
    baseline: np.ndarray,
    ddof: int | None,
    eps: float,
) -> np.ndarray:
    """For those of `rows`, bool [R]: 2 where the siblings are nearly equal, and
    a float32 order of summation gives the logged deviation within 4 units in
    the last place and nearer than the exact one, in two groups or more; 1
    inside the bound of a one-pass variance; else 0. int [R]."""
    shown = np.zeros(len(rows), dtype="int64")
    for row in np.flatnonzero(rows):
        mates = np.flatnonzero(prompt == prompt[row])
        others, score = reward[mates[mates != row]], reward[row]
        away, logged, n = score - baseline[row], advantage[row], len(others)
        if away == 0 or not logged or n < 2:
            continue
        undivided = abs(away - logged) <= 1e-4 * abs(away)
        spread = away / logged - eps
        variance = max(spread, 0) ** 2 * (n - (ddof or 0)) / n
        bound = 8 * 2.0**-24 * float((reward[mates] ** 2).sum())
        shown[row] = abs(variance - others.var()) <= bound or undivided
        if np.ptp(others) > NEAR * np.abs(others).max():
            continue
        for each in _variances(others.astype("float32"), np.float32(score)):
            unit = float(np.spacing(np.float32((others**2).mean())))
            swallowed = undivided and not each > 0
            near = abs(variance - each) < min(4 * unit, abs(variance - others.var()))
            if swallowed or not undivided and near:
                shown[row] = 2
    if len(np.unique(prompt[shown == 2])) < 2:
        shown = np.minimum(shown, 1)
    return shown


def _variances(x: np.ndarray, reward: np.float32) -> list[float]:
    """E[x^2] - E[x]^2 in float32, summed in the orders that trainers use."""
    n, double = np.float32(len(x)), x.astype("float64")
    whole = np.append(x, reward)
    sums = (
        (double.sum(), (x * x).astype("float64").sum()),
        (np.add.accumulate(x)[-1], np.add.accumulate(x * x)[-1]),
        (x.sum(), (x * x).sum()),
        (whole.sum() - reward, (whole * whole).sum() - reward * reward),
    )
    means = [(np.float32(first) / n, np.float32(square) / n) for first, square in sums]
    return [float(square - mean * mean) for mean, square in means]
