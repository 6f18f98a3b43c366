"""Weights: which sum of reward functions could give the advantages.

Whatever a trainer subtracts from a group's rewards and divides them by, the
advantages of a group lie on a line with its summed rewards. That gives the
weights up to a factor, and what divides them gives the factor.

Letters: R rows, F reward functions, G groups.
"""

from __future__ import annotations

import numpy as np

TRL_EPS = 1e-4
"""What TRL adds to a standard deviation."""
NEAR = 1e-3
"""A group's advantages are so near to the line, beside numbers of size 1."""
DIGITS = (1, 2, 3, 6)
"""Weights have so many digits, the fewest that explain the advantages."""


def explained(rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray) -> float:
    """The share of rows in groups whose advantages lie on a rising line with
    the rewards, float64 [R] each."""
    away, centered = (
        centered_in(v[:, None], group)[:, 0] for v in (rewards, advantage)
    )
    rise = _rise(away, centered, group)
    off = np.abs(centered - away * rise[group]) > NEAR * (1 + np.abs(advantage))
    good = (np.bincount(group, off) == 0) & (rise >= 0)
    return float(good[group].mean())


def _rise(away: np.ndarray, centered: np.ndarray, group: np.ndarray) -> np.ndarray:
    """How much of an advantage each unit of reward gives, [G], both less
    their group's mean; 0 in a group of equal rewards."""
    square = np.bincount(group, away**2)
    flat = square <= 1e-18
    product = np.where(flat, 0, np.bincount(group, away * centered))
    return product / np.where(flat, 1, square)


def solved(
    rewards: np.ndarray, advantage: np.ndarray, step: np.ndarray, group: np.ndarray
) -> tuple[tuple[float, ...] | None, bool]:
    """Weights that explain the advantages, float64 [R], of the rewards,
    float64 [R, F], None where many might; and whether the numbers show how
    long they are. Step and group, int64 [R], count from 0. A function that
    tells no rows of a group apart that the others do not gets 0."""
    away = centered_in(rewards, group)
    centered = centered_in(advantage[:, None], group)
    live = independent(away)
    if not live.any():
        return None, False
    size = np.sqrt((away[:, live] ** 2).mean(0))
    plain = away[:, live] / size
    # The weighted sum of what in a group's rewards does not lie along its
    # advantages is 0.
    square = sums(centered**2, group)
    along = sums(plain * centered, group) / np.where(square > 0, square, 1)
    _, value, right = np.linalg.svd(
        plain - along[group] * centered, full_matrices=False
    )
    if len(plain) < live.sum() or (len(value) > 1 and value[-2] < NEAR * value[0]):
        return None, False
    weights = np.zeros(len(live))
    weights[live] = right[-1] / size
    weights *= np.sign(weights @ (away.T @ centered)[:, 0]) / np.abs(weights).max()
    weights[np.abs(weights) < 1e-4] = 0
    length = _length(away @ weights, centered[:, 0], rewards @ weights, step, group)
    weights *= length or 1.0
    for digits in DIGITS:
        short = np.array([float(f"{w:.{digits}g}") for w in weights]) + 0.0
        if np.allclose(short, weights, rtol=1e-4, atol=0):
            break
    return tuple(short.tolist()), length is not None


def _length(
    away: np.ndarray,
    centered: np.ndarray,
    reward: np.ndarray,
    step: np.ndarray,
    group: np.ndarray,
) -> float | None:
    """The factor of the weights: where nothing divides, how many times an
    advantage is its reward; else what TRL's eps shows of it; None where the
    numbers do not show it."""
    rise, rows = _rise(away, centered, group), np.bincount(group)
    varies = rise > 0
    if not varies.any():
        return None
    for factor in (rise, rise * (rows - 1) / rows):  # the mean, and leave-one-out
        length = _two_digits(float(np.median(factor[varies])))
        if np.allclose(factor[varies], length, rtol=1e-4):
            return length
    first = np.unique(group, return_index=True)[1]
    for among in (group, step):
        square = np.bincount(among, centered_in(reward[:, None], among)[:, 0] ** 2)
        spread = np.sqrt(square / np.maximum(np.bincount(among) - 1, 1))[among[first]]
        # 1 / rise = the spread + eps / the length
        rest = (1 / rise[varies]) - spread[varies]
        middle = float(np.median(rest))
        steady = np.median(np.abs(rest - middle)) < 0.02 * middle
        if steady and 0.05 < TRL_EPS / middle < 20:
            return _two_digits(TRL_EPS / middle)
    return None


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def normalized_rewards(rewards: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each function's rewards, less their group's mean and over its
    standard deviation (ddof 1) + eps: NaN where empty, 0 for the only one
    of a group. [R, F]"""
    has = ~np.isnan(rewards)
    count = sums(has.astype("float64"), group)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums(np.where(has, rewards, 0), group) / count
        away = rewards - mean[group]
        square = sums(np.where(has, away, 0) ** 2, group)
        spread = np.sqrt(square / (count - 1))
        return np.where(has, np.nan_to_num(away / (spread[group] + TRL_EPS)), np.nan)


def independent(centered: np.ndarray) -> np.ndarray:
    """bool [F]: it varies in a group, and not only as those before it do
    together."""
    live = np.zeros(centered.shape[1], dtype=bool)
    norms = np.sqrt((centered**2).sum(0))
    for at in np.flatnonzero(norms > 1e-9):
        kept = centered[:, live] / norms[live]
        column = centered[:, at] / norms[at]
        rest = column - kept @ np.linalg.lstsq(kept, column, rcond=None)[0]
        live[at] = np.sqrt(rest @ rest) > 1e-6
    return live


def centered_in(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less their group's mean, [R, F]."""
    return values - (sums(values, group) / np.bincount(group)[:, None])[group]


def sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of each group's rows, [G, F]."""
    total = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(total, group, values)
    return total
