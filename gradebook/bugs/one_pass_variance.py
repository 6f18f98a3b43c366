"""One-pass variance: NeMo-RL PR 4158, fixed on main."""

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import SCALES
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


def _siblings(
    reward: np.ndarray, prompt: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many siblings each row has, the variance of their rewards, and whether
    these differ by about a thousandth or less. [R] each."""
    batch = Batch(prompt, reward)
    rest = others(batch, by_group(batch.prompt_index, batch.scored))
    n, x = rest.n, batch.reward
    mean, square = rest.sum(x) / n, rest.sum(x * x) / n
    variance = (square - mean * mean).clamp(min=0)
    near = (n >= 2) & (variance <= 2.5e-7 * square)
    return n.numpy(), variance.nan_to_num(0).numpy(), near.numpy()


def unexplained(reward: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Rows whose siblings' rewards are nearly equal, and, unless that is every
    row, their siblings where float32 cannot hold the rewards. bool [R]."""
    near = _siblings(reward, prompt)[2]
    inexact = np.bincount(prompt, reward * 1024 != np.round(reward * 1024)) > 0
    touched = near | (inexact & (np.bincount(prompt, near) > 0))[prompt]
    return near if touched.all() else touched


def evidence(
    rows: np.ndarray,
    reward: np.ndarray,
    prompt: np.ndarray,
    advantage: np.ndarray,
    baseline: np.ndarray,
    ddof: int | None,
    eps: float,
) -> np.ndarray:
    """For those of `rows`, bool [R]: 1 where the logged deviation is within the
    rounding error of a one-pass variance in float32; 2 where the siblings are
    nearly equal as well and the deviation is off by that rounding, in two
    groups or more; else 0. int [R]."""
    n, variance, near = _siblings(reward, prompt)
    away, square = reward - baseline, np.bincount(prompt, reward**2)[prompt]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(away / advantage - eps, 0)
        gap = np.abs(spread**2 * (n - (ddof or 0)) / n - variance)
    undivided = np.abs(away - advantage) <= 1e-4 * np.abs(away)
    explained = rows & (n >= 2) & (away != 0) & (advantage != 0)
    explained &= undivided | (gap <= 8 * 2.0**-24 * square)
    # One pass gives multiples of the mean square's spacing.
    unit = np.spacing((square / (n + 1)).astype("float32"))
    proof = explained & near & (undivided | (gap > unit / 4))
    proves = len(np.unique(prompt[proof])) > 1
    return explained.astype("int64") + (proof & proves)
