"""Weights: which sums of reward functions could give the advantages.

In every group, or in every step, advantages are proportional to the
centered sum of rewards; eps tells how large the weights are.
"""

from __future__ import annotations

from itertools import product

import numpy as np

TRL_EPS = 1e-4

FREE = 3
"""So many functions that are constant in groups get weight 0 in turn."""


def solved(
    rewards: np.ndarray,
    advantage: np.ndarray,
    step: np.ndarray,
    group: np.ndarray,
) -> list[tuple[float, ...]]:
    """Weights, likely ones first, that could have given the advantages,
    float64 [R], of the rewards, float64 [R, functions]; step and group,
    int64 [R], count from 0. A function that never varies in a group gets
    1, or 0; one that the others make up gets 0."""
    centered = centered_in(rewards, group)
    norms = np.sqrt((centered**2).sum(0))
    live = independent(centered)
    if not live.any():
        return []
    if not advantage.any() and not live.all():
        return [tuple(np.where(norms > 1e-9, 0.0, 1.0).tolist())]
    unit = centered[:, live] / norms[live]
    found: list[np.ndarray] = []
    others = _leave_one_out(group)
    for among in (group, step):
        along = _direction(unit, advantage, among)
        if along is None:
            continue
        along = along / norms[live]
        along = np.array([_nice(w) for w in along / np.abs(along).max()])
        found.append(along)
        one = centered[:, live] @ along
        total = rewards[:, live] @ along
        factors = [
            *_absolute(one, advantage),
            *_absolute(one * others, advantage),
            *_from_groups(one, advantage, group),
            *_from_steps(one, total, advantage, step),
            *_from_steps(one * others, one * others, advantage, step),
        ]
        found += [along * f for each in factors for f in _rounded(each)]
    for exact in (
        _least_squares(unit, advantage),
        _least_squares(unit * others[:, None], advantage),
        _from_pairs(unit, advantage, group),
    ):
        if exact is not None:
            exact = exact / norms[live]
            found += [
                np.array([_digits(w, n) for w in exact]) for n in (1, 2, 3, 6)
            ]
    weights = []
    for rest in _rests(rewards, step, live, norms):
        for each in found:
            full = np.array(rest)
            full[live] = each
            some = np.abs(each).max(initial=0) > 0
            if some and np.isfinite(full).all() and np.abs(full).max() < 1e6:
                weights.append(tuple(float(f"{w:.6g}") + 0.0 for w in full))
    return list(dict.fromkeys(weights))


def independent(centered: np.ndarray) -> np.ndarray:
    """bool [functions]: it varies in a group, and not only as those before
    it do together."""
    live = np.zeros(centered.shape[1], dtype=bool)
    kept: list[np.ndarray] = []
    for at, column in enumerate(centered.T):
        norm = np.sqrt(column @ column)
        if norm <= 1e-9:
            continue
        rest = column / norm
        for other in kept:
            rest = rest - (rest @ other) * other
        size = np.sqrt(rest @ rest)
        if size > 1e-6:
            live[at] = True
            kept.append(rest / size)
    return live


def _rests(
    rewards: np.ndarray, step: np.ndarray, live: np.ndarray, norms: np.ndarray
) -> list[tuple[float, ...]]:
    """Weights of the functions that are not live: 1 where they never vary
    in a group, or 0 where they do vary in a step; else 0."""
    away = np.abs(rewards - _means(rewards, step)[step]).max(0)
    choices: list[tuple[float, ...]] = []
    free = 0
    for alive, norm, varies in zip(live, norms, away > 1e-9):
        if alive or norm > 1e-9:
            choices.append((0.0,))
        elif varies and free < FREE:
            choices.append((1.0, 0.0))
            free += 1
        else:
            choices.append((1.0,))
    return list(product(*choices))


def _leave_one_out(group: np.ndarray) -> np.ndarray:
    """n / (n - 1) for each row of a group of n, float64 [R]: what makes a
    centered reward its distance from the mean of the others."""
    size = np.bincount(group)[group].astype("float64")
    return np.where(size > 1, size / np.maximum(size - 1, 1), 0)


def centered_in(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less their group's mean, [R, functions]."""
    return values - _means(values, group)[group]


def _means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Mean of each group's rows, [G, functions]."""
    return sums(values, group) / np.bincount(group)[:, None]


def _direction(
    unit: np.ndarray, advantage: np.ndarray, among: np.ndarray
) -> np.ndarray | None:
    """w, up to a factor, for which C w lies along a in every group, with
    centered rewards C and advantages a: (I - a a' / a'a) C w = 0. The
    eigenvector of the smallest eigenvalue; None when there are several."""
    along = np.zeros((among.max() + 1, unit.shape[1]))
    np.add.at(along, among, unit * advantage[:, None])
    power = np.bincount(among, advantage**2)
    vary = power > 1e-8
    along = along[vary] / np.sqrt(power[vary])[:, None]
    values, vectors = np.linalg.eigh(unit.T @ unit - along.T @ along)
    if len(values) > 1 and values[1] < 1e-7:
        return None
    found = vectors[:, 0]
    return -found if (unit @ found) @ advantage < 0 else found


def _least_squares(
    unit: np.ndarray, advantage: np.ndarray
) -> np.ndarray | None:
    """w with C w = a: nothing divides the advantages."""
    found, _, rank, _ = np.linalg.lstsq(unit, advantage, rcond=1e-9)
    return found if rank == unit.shape[1] else None


def _from_pairs(
    unit: np.ndarray, advantage: np.ndarray, group: np.ndarray
) -> np.ndarray | None:
    """w from groups of two, where a = ±s / (s + eps) / sqrt 2 has nothing
    but its distance from ±1 / sqrt 2 to tell s, the group's spread."""
    pairs = np.bincount(group)[group] == 2
    share = np.abs(advantage) * np.sqrt(2)
    use = pairs & (share > 0.5) & (share < 1 - 1e-6)
    if use.sum() < 2 * unit.shape[1]:
        return None
    spread = TRL_EPS * share[use] / (1 - share[use])
    target = np.sign(advantage[use]) * spread / np.sqrt(2)
    weight = 1 / spread**2
    found, _, rank, _ = np.linalg.lstsq(
        unit[use] * weight[:, None], target * weight, rcond=1e-9
    )
    return found if rank == unit.shape[1] else None


def _rounded(factor: float) -> list[float]:
    near = [_digits(factor, n) for n in (1, 2, 3)]
    return list(dict.fromkeys([*near, _nice(factor)]))


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _absolute(centered: np.ndarray, advantage: np.ndarray) -> list[float]:
    """How large the weights are when nothing divides the advantages."""
    power = float(centered @ centered)
    factor = float(advantage @ centered) / power if power else 0.0
    return [factor] if factor > 0 else []


def _from_groups(
    centered: np.ndarray, advantage: np.ndarray, group: np.ndarray
) -> list[float]:
    """How large they are when each group's standard deviation + eps
    divides: a small one falls short of 1 by what eps adds."""
    sizes = np.bincount(group)
    ok = sizes > 1
    spread = np.sqrt(np.bincount(group, centered**2)[ok] / (sizes[ok] - 1))
    share = np.sqrt(np.bincount(group, advantage**2)[ok] / (sizes[ok] - 1))
    return _middle(spread, share)


def _from_steps(
    centered: np.ndarray,
    total: np.ndarray,
    advantage: np.ndarray,
    step: np.ndarray,
) -> list[float]:
    """The same when the whole step's standard deviation + eps divides."""
    sizes = np.bincount(step)
    mean = np.bincount(step, total) / sizes
    square = np.bincount(step, (total - mean[step]) ** 2)
    ok = (sizes > 1) & (np.bincount(step, centered**2) > 1e-9)
    spread = np.sqrt(square[ok] / (sizes[ok] - 1))
    moved = np.bincount(step, advantage * centered)[ok]
    slope = moved / np.bincount(step, centered**2)[ok]
    return _middle(spread, slope * spread)


def _middle(spread: np.ndarray, share: np.ndarray) -> list[float]:
    """Median of the factors f with share = f spread / (f spread + eps)."""
    use = (spread > 1e-6) & (share < 1 - 1e-6) & (share > 0)
    if not use.any():
        return []
    each = TRL_EPS * share[use] / ((1 - share[use]) * spread[use])
    return [float(np.median(each))]


def _nice(ratio: float) -> float:
    """The simplest fraction within 1e-4, else the ratio itself."""
    for below in range(1, 41):
        near = round(ratio * below) / below
        if abs(near - ratio) < 1e-4:
            return near
    return ratio


def sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of each group's rows, [G, functions]."""
    found = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(found, group, values)
    return found
