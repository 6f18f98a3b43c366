"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows: whatever a
trainer subtracts from a group's rewards and divides them by, the advantages of a
group lie on a line with its summed rewards. That gives the weights up to a
factor, and what divides them gives the factor.

Letters: R rows, F reward functions, G groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradebook.core.errors import refuse
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.reading import (
    Reading,
    codes_of,
    layout_of,
    normalized_rewards,
    place_groups,
    steps_of,
    sums,
)
from gradebook.logs.read.canonical import functions_of, unscored
from gradebook.logs.read.columns import Columns

SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""
CLOSE = 1e-5
"""So near numbers of size 1 tell one eps from another."""
EPS = (1e-4, 1e-6, 1e-8)
"""What GDPO adds to a function's deviation: TRL's first."""
NEAR = 1e-3
"""A group's advantages are so near to the line, beside numbers of size 1."""
DIGITS = (1, 2, 3, 6)
"""Weights have so many digits, the fewest that explain the advantages."""
MOST = 0.9
"""Weights have to explain this share of the rows."""
GIVEN = "as given"
ALONE = "this function alone explains the logged advantages"
SOLVED = "the logged advantages determine them"
UP_TO = "up to a factor, which the log does not determine: give them as weights"
EQUAL = "equal weights agree with the logged advantages"
ASSUMED = "TRL's default; the log does not determine them: give them as weights"
NORMALIZED = (
    "each function's rewards are normalized in their group before they are"
    " summed (normalize_then_sum); the weights are known up to a factor"
)


def read_as_trl(
    table: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
) -> Reading:
    """Group size and weights of a canonical table, as given or as the
    rows show.

    Raises GradebookError when the number of weights is wrong.
    """
    layout = layout_of(table) if columns.by_place else None
    if layout is not None:
        table = layout.training(table)
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        expected = f"{len(names)} numbers, for " + ", ".join(names)
        raise refuse(expected, len(weights), "weights")
    reading = Reading(
        tuple(map(float, weights)) if weights else (1.0,) * len(names),
        group_size,
        layout=layout,
    )
    plain = weights is not None or len(names) == 1 or "prompt" not in table
    sample = _sample(table)
    if not len(sample) or (plain and not columns.by_place):
        return reading
    return _best(sample, columns, reading, weights is not None)


def _sample(table: pd.DataFrame) -> pd.DataFrame:
    """The first whole steps, of about SAMPLE_ROWS rows."""
    if len(table) <= SAMPLE_ROWS or "step" not in table:
        return table
    step = table["step"].to_numpy()
    last = step[SAMPLE_ROWS]
    whole = table.iloc[:SAMPLE_ROWS][step[:SAMPLE_ROWS] != last]
    return whole if len(whole) else table[step == last]


def _best(
    sample: pd.DataFrame, columns: Columns, reading: Reading, given: bool
) -> Reading:
    """The reading whose summed rewards explain the most advantages, the
    likeliest one where several do as well."""
    sizes: list[int | None] = [reading.group_size]
    if not reading.group_size and columns.by_place:
        # Sizes that divide every run of equal prompts, and at last None: equal
        # prompts are a group, of whatever size.
        common = _common_run(sample)
        sizes = [*(n for n in range(common, 1, -1) if common % n == 0), None]
    if "advantage" not in sample:
        why = GIVEN if given else ASSUMED
        reading = replace(reading, group_size=sizes[0])
        return _with_notes(sample, columns, reading, why)
    normalizations = (None, *EPS) if len(columns.rewards) > 1 else (None,)
    tries = [
        (
            shares,
            why,
            replace(reading, weights=w, group_size=size, normalized=normalized),
        )
        for size in sizes
        for normalized in normalizations
        for shares, why, w in _tried(sample, size, normalized, reading.weights, given)
    ]
    (share, _), why, best = max(tries, key=lambda each: each[0])
    if why == EQUAL and best.group_size == 2:
        why = ASSUMED  # any weights explain the signs in a group of two
    if share < MOST and not given:
        why = ASSUMED
        best = replace(reading, group_size=best.group_size if share else sizes[0])
    return _with_notes(sample, columns, best, why)


def _tried(
    sample: pd.DataFrame,
    size: int | None,
    normalized: float | None,
    default: tuple[float, ...],
    given: bool,
) -> Iterator[tuple[tuple[float, float], str, tuple[float, ...]]]:
    """Weights to try, likely ones first: how large a share of the rows they
    explain, nearly and closely, and where they come from."""
    step = steps_of(sample)
    if size is None:
        group = codes_of(step, pd.factorize(sample["prompt"])[0])
    else:
        group = codes_of(step, place_groups(sample, size))
    rewards = sample[functions_of(sample)].to_numpy()
    if normalized:
        rewards = normalized_rewards(rewards, group, normalized)
    advantage = sample["advantage"].to_numpy()
    counts = ~unscored(sample) & np.isfinite(advantage)
    if not counts.any():
        yield (0.0, 0.0), ASSUMED, default
        return
    rewards = np.nan_to_num(rewards[counts], posinf=0, neginf=0)
    step, group = (pd.factorize(codes[counts])[0] for codes in (step, group))
    several = len(default) > 1 and not given
    tries = [(GIVEN if given or not several else EQUAL, default)]
    if several:
        tries += [(ALONE, tuple(row)) for row in np.eye(len(default)).tolist()]
        exact, sure = solved(rewards, advantage[counts], step, group)
        if exact and sure:
            tries.insert(0, (SOLVED, exact))
        elif exact:
            tries.append((UP_TO, exact))
    for why, weights in tries:
        both = rewards @ weights, advantage[counts], group
        yield (explained(*both), explained(*both, CLOSE)), why, weights


def _common_run(table: pd.DataFrame) -> int:
    """What divides the rows with one prompt that follow each other in a step."""
    labels = codes_of(steps_of(table), pd.factorize(table["prompt"])[0])
    heads = np.flatnonzero(np.diff(labels, prepend=-1))
    return int(np.gcd.reduce(np.diff(np.append(heads, len(table)))))


def _with_notes(
    sample: pd.DataFrame, columns: Columns, reading: Reading, why: str
) -> Reading:
    """The reading, with what a reader should know about it."""
    notes, size, several = [], reading.group_size, len(columns.rewards) > 1
    if several:
        sums = zip(reading.weights, columns.rewards)
        terms = " + ".join(f"{weight:g} {name}" for weight, name in sums)
        notes.append(f"reward = {terms} ({why})".replace("+ -", "- "))
    if size:
        notes.append(f"groups are {size} rows each, by position")
        common = _common_run(sample) if "prompt" in sample else size
        if common > size and not common % size:
            notes.append(
                f"equal prompts come in runs of {common}: if each prompt has {common}"
                f" rows, set the group size to {common}, and grouping by fixed stride"
                " is tested too"
            )
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    if out := int(unscored(sample).sum()):
        notes.append(
            f"{out} of the first {len(sample)} rows have no reward at all:"
            " they enter no statistic and have advantage 0"
        )
    if reading.normalized:
        notes.append(NORMALIZED)
    asks = several and why in (ASSUMED, UP_TO)
    return replace(reading, notes=tuple(notes), asks_weights=asks)


def explained(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray, near: float = NEAR
) -> float:
    """The share of rows in groups whose advantages lie on a rising line with
    the rewards, float64 [R] each."""
    away, centered = (
        centered_in(v[:, None], group)[:, 0] for v in (rewards, advantage)
    )
    rise = _rise(away, centered, group)
    off = np.abs(centered - away * rise[group]) > near * (1 + np.abs(advantage))
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
    varies in no group gets 0."""
    away = centered_in(rewards, group)
    centered = centered_in(advantage[:, None], group)
    size = np.sqrt((away**2).mean(0))
    live = size > 1e-9
    if not live.any():
        return None, False
    size = size[live]
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
        if steady and 0.05 < EPS[0] / middle < 20:
            return _two_digits(EPS[0] / middle)
    return None


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def centered_in(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less their group's mean, [R, F]."""
    return values - (sums(values, group) / np.bincount(group)[:, None])[group]
