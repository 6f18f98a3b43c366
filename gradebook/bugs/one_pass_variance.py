"""One-pass variance: NeMo-RL PR 4158, fixed on main (2026-09-19)."""

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.tolerance import NEARLY_EQUAL, ONE_PASS, UNDIVIDED
from gradebook.engine.advantages import divisor
from gradebook.engine.segments import by_group, others


def scale(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor, baseline: Tensor
) -> Tensor:
    """The others' deviation as the root of E[x^2] - E[x]^2 in float32,
    used as the divisor if it is above 0. float [R].

    The trainer sees advantages in the thousands on rows whose siblings all
    have the same reward: rounding leaves a deviation other than 0.
    """
    s, groups = batch.settings, by_group(group, counted)
    if s.scale != "others_std":
        return divisor(s.scale, batch, score, groups, baseline)
    rest = others(batch, groups)
    k, x = rest.n.clamp(min=2).float(), score.float()
    mean = rest.sum(x.double()).float() / k
    square = rest.sum((x * x).double()).float() / k
    variance = (square - mean * mean) * k / (k - s.ddof)
    spread = variance.sqrt().nan_to_num(0)
    divides = (rest.n >= 2) & (spread > 0)
    return torch.where(divides, spread + s.eps, 1).to(score.dtype)


READING = {"baseline": "leave_one_out", "scale": "others_std"}
"""The one computation that reads the others' deviation."""


def _siblings(log: "pd.DataFrame") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many siblings each row has, the variance of their rewards, and whether
    these differ by about a thousandth or less. [R] each."""
    prompt, x = log["prompt"].to_numpy(), log["reward"].to_numpy()
    n = np.bincount(prompt)[prompt] - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean, square = ((np.bincount(prompt, v)[prompt] - v) / n for v in (x, x * x))
        variance = np.maximum(square - mean * mean, 0)
    near = (n >= 2) & (variance <= NEARLY_EQUAL * square)
    return n, np.nan_to_num(variance), near


def unexplained(log: "pd.DataFrame") -> np.ndarray:
    """Rows whose siblings' rewards are nearly equal, and, unless that is every
    row, their siblings if float32 cannot hold the rewards. bool [R]."""
    prompt, x = log["prompt"].to_numpy(), log["reward"].to_numpy()
    near = _siblings(log)[2]
    inexact = np.bincount(prompt, x * 1024 != np.round(x * 1024)) > 0
    touched = near | (inexact & (np.bincount(prompt, near) > 0))[prompt]
    return near if touched.all() else touched


def evidence(log: "pd.DataFrame", settings: Settings) -> np.ndarray:
    """For odd rows: 1 if the logged deviation is within the rounding
    error of a one-pass variance in float32; 2 if also the siblings are
    nearly equal and the deviation is off by that rounding, in two
    groups or more; else 0. int [R]."""
    n, variance, near = _siblings(log)
    prompt, x = log["prompt"].to_numpy(), log["reward"].to_numpy()
    advantage, away = log["advantage"].to_numpy(), x - log["baseline"].to_numpy()
    square = np.bincount(prompt, x * x)[prompt]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(away / advantage - settings.eps, 0)
        logged = spread**2 * (n - settings.ddof) / n
        gap = np.abs(logged - variance)
    undivided = np.abs(away - advantage) <= UNDIVIDED * np.abs(away)
    explained = log["odd"].to_numpy() & (n >= 2) & (away != 0) & (advantage != 0)
    # One pass gives multiples of the mean square's spacing. For 0 it does not divide,
    # so it never divides by eps alone.
    unit = np.spacing((square / (n + 1)).astype("float32"))
    explained &= undivided | ((gap <= ONE_PASS * square) & (logged > unit / 4))
    proof = explained & near & (undivided | (gap > unit / 4))
    proves = len(np.unique(prompt[proof])) > 1
    return explained.astype("int64") + (proof & proves)
