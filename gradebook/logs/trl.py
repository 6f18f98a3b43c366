"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Iterator, Sequence

import numpy as np
import pandas as pd

from gradebook.errors import GradebookError
from gradebook.logs.columns import Columns
from gradebook.logs.computations import computations
from gradebook.logs.judging import Judging
from gradebook.logs.rollouts import to_rollouts

TRL_EPS = 1e-4
TRL_ESTIMATORS = ("grpo", "grpo_batch_std", "dr_grpo")
SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""

SOLVED = "the logged advantages determine them"
GIVEN = "as given"
ASSUMED = "TRL's default; the log does not determine them"


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights     one for each reward function
    group_size  rows per prompt where groups are cut by position, else None
    notes       what a reader should know about both
    """

    weights: tuple[float, ...]
    group_size: int | None
    notes: tuple[str, ...] = ()


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
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        raise GradebookError(
            key="weights",
            expected=f"{len(names)} numbers, for " + ", ".join(names),
            found=str(len(weights)),
        )
    single = weights is not None or len(names) == 1
    if not columns.by_place and (single or "prompt" not in table):
        given = tuple(float(w) for w in weights or (1.0,) * len(names))
        return Reading(given, group_size)
    sample = _sample(table)
    if not len(sample):
        return Reading((1.0,) * len(names), group_size)
    sizes = [group_size] if group_size else _sizes(sample, columns)
    return _best(sample, columns, weights, sizes)


def _sample(table: pd.DataFrame) -> pd.DataFrame:
    """The first whole steps, of about SAMPLE_ROWS rows."""
    if len(table) <= SAMPLE_ROWS or "step" not in table:
        return table
    step = table["step"].to_numpy()
    last = step[SAMPLE_ROWS]
    whole = table.iloc[:SAMPLE_ROWS][step[:SAMPLE_ROWS] != last]
    return whole if len(whole) else table[step == last]


def runs(table: pd.DataFrame) -> np.ndarray:
    """int64: how many rows with one prompt follow each other in a step."""
    prompt = pd.factorize(table["prompt"])[0]
    new = np.diff(prompt, prepend=-2) != 0
    if "step" in table:
        step = pd.factorize(table["step"])[0]
        new |= np.diff(step, prepend=-2) != 0
    heads = np.flatnonzero(new)
    return np.diff(np.append(heads, len(table)))


def _sizes(sample: pd.DataFrame, columns: Columns) -> list[int | None]:
    """Group sizes that divide every run of equal prompts, largest first;
    [None] when only single rows do: then equal prompts are a group."""
    if not columns.by_place:
        return [None]
    common = reduce(gcd, runs(sample).tolist())
    found = [n for n in range(common, 1, -1) if common % n == 0]
    return [*found] or [None]


def _best(
    sample: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None,
    sizes: Sequence[int | None],
) -> Reading:
    """The reading under which most steps fit a correct computation."""
    rewards, missing = _rewards(sample, columns)
    default = tuple(1.0 for _ in columns.rewards)
    advantage = None
    if "advantage" in sample:
        advantage = sample["advantage"].to_numpy()
    best: tuple[tuple[float, ...], Reading] | None = None
    for size in sizes:
        group = _group(sample, size)
        tried: list[tuple[tuple[float, ...], str]]
        if weights is not None:
            tried = [(tuple(map(float, weights)), GIVEN)]
        elif advantage is None or not np.isfinite(advantage).all():
            tried = [(default, ASSUMED)]
        else:
            found = _solved(rewards, advantage, *group)
            tried = [(default, ASSUMED), *((w, SOLVED) for w in found)]
        for each, why in tried:
            notes = _notes(columns, each, why, size, missing)
            reading = Reading(each, size, notes)
            if advantage is None:
                return reading
            merit = _merit(rewards @ np.array(each), advantage, group)
            if best is None or merit > best[0]:
                best = (merit, reading)
    assert best is not None
    return best[1]


def _notes(
    columns: Columns,
    weights: tuple[float, ...],
    why: str,
    size: int | None,
    missing: int,
) -> tuple[str, ...]:
    notes = []
    if len(weights) > 1 or why == SOLVED:
        terms = " + ".join(
            f"{w:g} {n}" for w, n in zip(weights, columns.rewards)
        )
        notes.append(f"reward = {terms} ({why})")
    if size:
        notes.append(f"groups are {size} rows each, by position")
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    if missing:
        notes.append(
            f"{missing} of the first rows' rewards are empty and add nothing"
        )
    return tuple(notes)


def _rewards(
    sample: pd.DataFrame, columns: Columns
) -> tuple[np.ndarray, int]:
    """Rewards float64 [R, functions], 0 where empty; how many were."""
    names = [f"reward {at}" for at in range(len(columns.rewards))]
    table = sample[names].to_numpy()
    return np.nan_to_num(table, posinf=0, neginf=0), int(np.isnan(table).sum())


def _group(
    sample: pd.DataFrame, size: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Step int64 [R] and group int64 [R], one for each (step, group)."""
    step = np.zeros(len(sample), dtype="int64")
    if "step" in sample:
        step = pd.factorize(sample["step"])[0].astype("int64")
    if size is None:
        prompt = pd.factorize(sample["prompt"])[0]
    else:
        first = np.unique(step, return_index=True)[1]
        place = np.arange(len(sample)) - first[step]
        prompt = place // size
    return step, pd.factorize(step * (len(sample) + 1) + prompt)[0]


def _merit(
    reward: np.ndarray,
    advantage: np.ndarray,
    group: tuple[np.ndarray, np.ndarray],
) -> tuple[float, ...]:
    """How well a reward explains the advantages: steps that one correct
    computation fits, TRL's own preferred, then the residual."""
    table = pd.DataFrame(
        {
            "step": group[0],
            "prompt": group[1],
            "reward": reward,
            "advantage": advantage,
        }
    )
    work = Judging(to_rollouts(table))
    every = np.ones(work.rollouts.steps, dtype=bool)
    work.try_all(computations("", 1, work.facts), every)
    best: tuple[float, ...] = (-1.0,)
    for computation, fit in work.fits.items():
        s = computation.settings
        known = computation.estimator in TRL_ESTIMATORS
        known &= s.scale == "none" or s.eps == TRL_EPS
        worst = float(np.where(fit.fits, fit.residual, 0).max())
        merit = (float(fit.fits.sum()), float(known), -round(worst, 6))
        best = max(best, merit)
    return best


def _solved(
    rewards: np.ndarray,
    advantage: np.ndarray,
    step: np.ndarray,
    group: np.ndarray,
) -> list[tuple[float, ...]]:
    """Weights, likely ones first, that could have given the advantages: in
    every group, or in every step, they are proportional to the centered
    sum of rewards. A function that never varies in a group keeps 1."""
    centered = rewards - _means(rewards, group)[group]
    norms = np.sqrt((centered**2).sum(0))
    live = norms > 1e-9
    if not live.any():
        return []
    unit = centered[:, live] / norms[live]
    found: list[np.ndarray] = []
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
            *_from_groups(one, advantage, group),
            *_from_steps(one, total, advantage, step),
        ]
        found += [along * f for each in factors for f in _rounded(each)]
    for solved in (
        _least_squares(unit, advantage),
        _from_pairs(unit, advantage, group),
    ):
        if solved is not None:
            solved = solved / norms[live]
            found += [
                np.array([_digits(w, n) for w in solved]) for n in (1, 2, 3, 6)
            ]
    weights = []
    for each in found:
        full = np.ones(len(live))
        full[live] = each
        if np.isfinite(full).all() and np.abs(full).max() < 1e6:
            weights.append(tuple(float(f"{w:.6g}") for w in full))
    return list(dict.fromkeys(weights))


def _means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Mean of each group's rows, [G, functions]."""
    sums = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(sums, group, values)
    return sums / np.bincount(group)[:, None]


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
    return list(dict.fromkeys(_digits(factor, n) for n in (1, 2, 3)))


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _absolute(centered: np.ndarray, advantage: np.ndarray) -> list[float]:
    """How large the weights are when nothing divides the advantages."""
    factor = float(advantage @ centered / (centered @ centered))
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
    slope = np.bincount(step, advantage * centered)[ok]
    slope = slope / np.bincount(step, centered**2)[ok]
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
