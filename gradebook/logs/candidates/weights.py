"""Weights: which sums of reward functions could give the advantages.

TRL divides a centered sum of rewards by nothing, or by the standard deviation
of its group or step plus eps. For each of these, the weights nearest to the
log are worked out by the method of Gauss and Newton: directions follow from
the rows, and eps tells how large the weights are.
"""

from __future__ import annotations

import numpy as np

TRL_EPS = 1e-4
"""What TRL adds to a standard deviation."""

DIGITS = (1, 2, 3, 6)
"""Weights are tried with so many digits."""

ROUNDS, STEP = 12, 1e-6
"""Rounds of the search, and how far a derivative looks."""

FLAT = 1e-8
"""What changes the quotient less than this share of it is left alone."""

SMALL = 1e-4
"""Weights below this share of the largest are none."""

NEAR = 1e-3
"""Half of the rows have to come so near, or the weights are no answer."""


def solved(
    rewards: np.ndarray,
    advantage: np.ndarray,
    step: np.ndarray,
    group: np.ndarray,
) -> list[tuple[float, ...]]:
    """Weights, short ones first, that could have given the advantages,
    float64 [R], of the rewards, float64 [R, functions]; step and group,
    int64 [R], count from 0. A function that never varies in a group, and
    that no standard deviation tells the weight of, gets 1, or 0; one that
    the others make up gets 0."""
    centered = centered_in(rewards, group)
    live = independent(centered)
    if not live.any():
        return []
    same = np.abs(centered).max(0) <= 1e-9
    use = live | same
    in_step = centered_in(rewards, step)[:, use]
    size = np.sqrt((np.where(same[use], in_step, centered[:, use]) ** 2).mean(0))
    size[size == 0] = 1
    plain = centered[:, use] / size
    count = np.bincount(group)[group]
    others = plain * (count / np.maximum(count - 1, 1))[:, None]
    found = []
    for sums, spread, among in (
        (plain, None, None),
        (others, None, None),
        (plain, plain, group),
        (plain, in_step / size, step),
        (others, others, step),
    ):
        one = _nearest(sums, spread, among, advantage, size)
        if one is None:
            continue
        for each in (one, one / np.abs(one).max()):
            for rest in (each, np.where(same[use], 0, each)):
                full = np.zeros(len(use))
                full[use] = rest
                found += [_rounded(full, digits) for digits in DIGITS]
    return sorted(dict.fromkeys(found), key=digits_of)


def digits_of(weights: tuple[float, ...]) -> int:
    """How many digits it takes to write the weights."""
    return sum(len(f"{w:g}".strip("-0.")) for w in weights)


def _nearest(
    sums: np.ndarray,
    spread: np.ndarray | None,
    among: np.ndarray | None,
    advantage: np.ndarray,
    size: np.ndarray,
) -> np.ndarray | None:
    """Weights w, for columns of so many times the `size`, for which `sums` w
    over the standard deviation of `spread` w `among` equal numbers + eps is
    nearest to the advantages; None where it is not near.

    w = u / k is searched as u and k: first u with k = 0, then both. The
    quotient hardly bends in them. Their length is free, and the shortest of
    all steps leaves it alone.
    """
    found = np.linalg.lstsq(sums, advantage, rcond=1e-9)[0]
    if spread is None or among is None:
        near = sums @ found
    else:
        own = np.append(found / max(np.abs(found / size).max(), 1e-9), 0.0)

        def quotient(own: np.ndarray) -> np.ndarray:
            below = _deviation(spread @ own[:-1], among) + TRL_EPS * own[-1]
            return sums @ own[:-1] / np.where(below > 0, below, np.inf)

        for at in range(ROUNDS):
            along = STEP * np.eye(len(own))
            slopes = [quotient(own + d) - quotient(own - d) for d in along]
            if 2 * at < ROUNDS:
                slopes[-1][:] = 0
            slope = np.stack(slopes, -1) / (2 * STEP)
            off = advantage - quotient(own)
            left, value, right = np.linalg.svd(slope, full_matrices=False)
            steep = value > FLAT * np.sqrt(advantage @ advantage)
            along_steep = (left.T @ off)[steep] / value[steep]
            own += right[steep].T @ along_steep
        found, near = own[:-1] / (own[-1] or 1.0), quotient(own)
    found = found / size
    found[np.abs(found) < SMALL * np.abs(found).max()] = 0
    fine = np.isfinite(found).all() and 0 < np.abs(found).max() < 1e6
    if fine and np.median(np.abs(near - advantage)) <= NEAR:
        return found
    return None


def _deviation(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The standard deviation (ddof 1) of the rows of a row's group. [R]"""
    away = centered_in(values[:, None], among)[:, 0]
    count = np.bincount(among)
    square = np.bincount(among, away**2) / np.maximum(count - 1, 1)
    return np.sqrt(square)[among]


def _rounded(weights: np.ndarray, digits: int) -> tuple[float, ...]:
    return tuple(float(f"{w:.{digits}g}") + 0.0 for w in weights)


def independent(centered: np.ndarray) -> np.ndarray:
    """bool [functions]: it varies in a group, and not only as those before
    it do together."""
    live = np.zeros(centered.shape[1], dtype=bool)
    norms = np.sqrt((centered**2).sum(0))
    for at in np.flatnonzero(norms > 1e-9):
        kept = centered[:, live] / norms[live]
        own = centered[:, at] / norms[at]
        rest = own - kept @ np.linalg.lstsq(kept, own, rcond=None)[0]
        live[at] = np.sqrt(rest @ rest) > 1e-6
    return live


def centered_in(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less their group's mean, [R, functions]."""
    return values - (sums(values, group) / np.bincount(group)[:, None])[group]


def sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of each group's rows, [G, functions]."""
    found = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(found, group, values)
    return found
