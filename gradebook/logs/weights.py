"""Weights of reward functions, from the logged advantages.

Within a group, every known computation is a straight line: advantages rise with the
weighted sum of the rewards. So each group in which the functions vary gives the ratio
of the weights; the divisor of the advantages gives their size. Letters: R rows, F
functions, G groups.
"""

from collections.abc import Iterator

import numpy as np

from gradebook.core.tolerance import EXACT

NEAR = 1e-3
"""Largest distance of an advantage from the line, for numbers of size 1: twice what
printing three decimals moves a number by."""
USUAL_EPS = (1e-4, 1e-6, 1e-8, 0.0)
"""What trainers add to a deviation."""

Weights = tuple[float, ...]


def centered(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The values less their group's mean, [R] or [R, F]."""
    if values.ndim == 2:
        columns = [centered(column, group) for column in values.T]
        return np.stack(columns, axis=1).reshape(values.shape)
    return values - (np.bincount(group, values) / np.bincount(group))[group]


def solved(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray, step: np.ndarray
) -> Weights | None:
    """The weights under which advantages rise with the summed rewards: float64 [R, F],
    float64 [R], and numbers from 0 of the rows' groups and steps. A function that
    varies in no group gets 0. None if several ratios do, or none does.

    >>> rewards = np.array([[0, 0], [1, 0], [0, 1.0]])
    >>> solved(rewards, np.array([-1, 1, 0.0]), *np.zeros((2, 3), dtype=int))
    (2.0, 1.0)
    """
    ratio = _ratio(rewards, advantage, group)
    if ratio is None:
        return None
    total = rewards @ ratio
    several = [*_of_a_size(ratio, total, advantage, group, step)]
    return several[0] if several else None


def _ratio(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray
) -> np.ndarray | None:
    """float64 [F], the largest weight 1 or -1. If not all groups agree on one
    ratio, that on which most rows' groups agree."""
    away, line = centered(rewards, group), centered(advantage, group)
    size = np.sqrt((away**2).mean(0))
    varies = size > EXACT
    if not varies.any() or not np.isfinite(line).all():
        return None
    parts = _off_the_line(away[:, varies] / size[varies], line, group)
    if not len(parts):
        return None  # in no group do both rewards and advantages vary
    ratio = _null(parts.sum(0))
    if ratio is None or _agreeing(parts, ratio).mean() < 1:
        ratio = _commonest(parts)
    if ratio is None:
        return None
    weights = np.zeros(len(size))
    weights[varies] = ratio / size[varies]
    weights /= np.abs(weights).max()
    weights[np.abs(weights) < 1e-4] = 0
    falls = (away @ weights) @ line < 0
    return -weights if falls else weights


def _off_the_line(away: np.ndarray, line: np.ndarray, group: np.ndarray) -> np.ndarray:
    """float64 [G, F, F] of each group with advantages other than 0: its form is 0 for
    weights whose sums rise with the advantages, and 1 for those whose sums do not."""
    functions = range(away.shape[1])
    square = np.bincount(group, line**2)
    groups = square > 1e-12 * max(square.max(), 1e-30)
    along = np.stack([np.bincount(group, away[:, f] * line) for f in functions], 1)
    both = np.stack(
        [
            np.stack([np.bincount(group, away[:, f] * away[:, g]) for g in functions])
            for f in functions
        ]
    ).transpose(2, 0, 1)
    along, both, square = along[groups], both[groups], square[groups]
    forms = both - along[:, :, None] * along[:, None, :] / square[:, None, None]
    size = np.trace(both, axis1=1, axis2=2)
    return forms[size > 1e-18] / size[size > 1e-18, None, None]


def _null(form: np.ndarray) -> np.ndarray | None:
    """The only direction in which the form is 0; None without one, or with more."""
    values, vectors = np.linalg.eigh(form)
    tolerance = NEAR**2 * max(values[-1], 1e-30)
    if len(values) > 1 and values[1] <= tolerance:
        return None
    return vectors[:, 0]


def _agreeing(parts: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """bool [G]: the group's advantages rise with the sums under this ratio."""
    return np.einsum("f,gfh,h->g", ratio, parts, ratio) <= NEAR**2 * (ratio @ ratio)


def _commonest(parts: np.ndarray) -> np.ndarray | None:
    """The direction on which most groups agree that tell one by themselves, at least
    half of all and three more than one; None without one."""
    # If half of the groups have the ratio, one of 32 has it but for chance, 2^-32. Not
    # every group tells one alone: 256 are searched, so that time does not grow.
    alone = [ratio for part in parts[:256] if (ratio := _null(part)) is not None]
    if not alone:
        return None
    votes = [_agreeing(parts, ratio) for ratio in alone[:32]]
    best = max(votes, key=np.sum)
    if best.sum() < max(4, len(parts) / 2):
        return None
    return _null(parts[best].sum(0))


def _of_a_size(
    ratio: np.ndarray,
    total: np.ndarray,
    advantage: np.ndarray,
    group: np.ndarray,
    step: np.ndarray,
) -> Iterator[Weights]:
    """The weights of this ratio, the likeliest size first: that of undivided
    advantages, those under which a usual eps is added to a deviation, and the
    shortest."""
    away, line = centered(total, group), centered(advantage, group)
    square = np.bincount(group, away**2)
    rises = square > 1e-12
    slope = np.bincount(group, away * line)[rises] / square[rises]
    rows = np.bincount(group)[rises]
    sizes = [_size(slope), _size(slope * (1 - 1 / rows))]  # mean, leave-one-out
    # That on which more groups agree; of equals, the weights that people choose.
    most = max(agreeing for _, agreeing in sizes)
    likely = [size for size, agreeing in sizes if 0.5 < agreeing == most]
    short = [weights for size in likely for weights in _short(size * ratio)]
    yield from sorted(
        short, key=lambda weights: (not _is_usual(weights), _digits(weights))
    )

    def has_usual_eps(weights: Weights) -> bool:
        size = np.abs(weights).max()
        return _have_usual_eps(total * size, advantage, group, step) > 0.5

    yield from sorted(_simple(ratio), key=has_usual_eps, reverse=True)[:1]
    yield tuple(float(f"{weight:.6g}") for weight in ratio)


def _size(slope: np.ndarray) -> tuple[float, float]:
    """The slope of most groups, and the share of groups that have it; 0 if all
    advantages are 0."""
    slope = slope[np.abs(slope) > EXACT]
    if not len(slope):
        return 0.0, 0.0
    middle = float(np.median(slope))
    same = np.abs(slope - middle) <= NEAR * np.abs(middle)
    return middle, float(same.mean())


def _is_usual(weights: Weights) -> bool:
    """The largest is 1, or they add up to 1."""
    sizes = np.abs(weights)
    return bool(np.isclose([sizes.max(), sizes.sum()], 1).any())


def _simple(ratio: np.ndarray) -> Iterator[Weights]:
    """Short weights of this ratio: the largest is 1, they add up to 1, the smallest
    is 1, or the largest is another number below 6."""
    used = np.abs(ratio[ratio != 0])
    sizes = (1.0, used.sum(), used.min(), *(1 / n for n in range(2, 6)))
    for size in dict.fromkeys(sizes):
        yield from _short(ratio / size)


def _digits(weights: Weights) -> int:
    """The most significant digits of any weight."""
    return max(len(f"{abs(w):.6g}".replace(".", "").strip("0")) for w in weights)


def _short(weights: np.ndarray) -> Iterator[Weights]:
    """The weights with as few significant digits as people choose."""
    for digits, near in ((2, 5e-4), (3, 1e-4)):
        short = tuple(float(f"{weight:.{digits}g}") + 0.0 for weight in weights)
        if np.allclose(short, weights, rtol=near, atol=0):
            yield short
            return


def _have_usual_eps(
    total: np.ndarray, advantage: np.ndarray, group: np.ndarray, step: np.ndarray
) -> float:
    """The share of groups whose advantages are the distances from the mean over a
    deviation, of the group or of the step, and a usual eps, the same for all."""
    away, line = centered(total, group), centered(advantage, group)
    square = np.bincount(group, away**2)
    along = np.bincount(group, away * line)
    tells = along > 1e-12
    divisor = np.divide(square, along, out=np.ones_like(square), where=tells)
    step_of = np.zeros(len(square), dtype=int)
    step_of[group] = step
    share = 0.0
    spreads = [(square, np.bincount(group))]
    for values in (total, away):
        about = centered(values, step)
        of_step = np.bincount(step, about**2), np.bincount(step)
        spreads.append((of_step[0][step_of], of_step[1][step_of]))
    for squares, rows in spreads:
        for ddof in (1, 0):
            std = np.sqrt(squares / np.maximum(rows - ddof, 1))
            for eps in USUAL_EPS:
                near = np.abs(divisor - std - eps) <= 2e-5 * divisor
                share = max(share, float(near[tells].mean()) if tells.any() else 0.0)
    return share


def least_squares(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray
) -> Weights | None:
    """Weights of two digits under which advantages, float64 [R], are the summed
    rewards, float64 [R, F], less the group's mean or the mean of its other rows;
    None if there are none, or many. A function that varies in no group gets 0."""
    away = centered(rewards, group)
    size = np.sqrt((away**2).mean(0))
    varies = size > EXACT
    solution, _, rank, _ = np.linalg.lstsq(
        away[:, varies] / size[varies], centered(advantage, group), rcond=NEAR
    )
    if rank < varies.sum() or not solution.any():
        return None
    solution[np.abs(solution) < 1e-4 * np.abs(solution).max()] = 0
    weights = np.zeros(len(size))
    weights[varies] = solution / size[varies]
    rows = np.bincount(group).max()
    fits: list[Weights] = []
    for factor in (1, 1 - 1 / rows):  # of the mean, and of leave-one-out
        short = [float(f"{factor * weight:.2g}") + 0.0 for weight in weights]
        if np.allclose(short, factor * weights, rtol=1e-4, atol=0):
            fits.append(tuple(short))
    return fits[0] if len(fits) == 1 else None
