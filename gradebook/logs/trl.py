"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import gcd
from typing import Iterator, Sequence

import numpy as np
import pandas as pd

from gradebook.errors import GradebookError
from gradebook.logs.canonical import summed, unscored
from gradebook.logs.columns import Columns
from gradebook.logs.computations import computations
from gradebook.logs.judging import Judging
from gradebook.logs.rollouts import to_rollouts

TRL_EPS = 1e-4
TRL_ESTIMATORS = (
    "grpo",
    "grpo_batch_std",
    "dr_grpo",
    "rloo",
    "leave_one_out/batch_std",
)
SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""

FREE = 3
"""So many functions that are constant in groups get weight 0 in turn."""

LONGEST, FEW, STRIDED_ROWS = 16, 6, 256
"""Where nothing else fits: strides up to here, with so many weights each,
over so many rows."""

SOLVED = "the logged advantages determine them"
STRIDED = "fixed strides with these weights give the logged advantages"
GIVEN = "as given"
NORMALIZED = (
    "each function's rewards are normalized in their group before they are"
    " summed (normalize_then_sum); the weights are known up to a factor"
)
ASSUMED = "TRL's default; the log does not determine them"


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights     one for each reward function
    group_size  rows per prompt where groups are cut by position, else None
    notes       what a reader should know about both
    normalized  each function's rewards are normalized in their group
                before they are summed
    """

    weights: tuple[float, ...]
    group_size: int | None
    notes: tuple[str, ...] = ()
    normalized: bool = False


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


def rewarded(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """The canonical table, its groups cut, with one reward."""
    if reading.normalized:
        table = table.copy()
        step = _steps(table)
        names = [f"reward {at}" for at in range(len(reading.weights))]
        group = _codes(step, pd.factorize(table["prompt"])[0])
        table[names] = _normalized(table[names].to_numpy(), group)
    return summed(table, reading.weights)


def _sample(table: pd.DataFrame, most: int = SAMPLE_ROWS) -> pd.DataFrame:
    """The first whole steps, of about `most` rows."""
    if len(table) <= most or "step" not in table:
        return table
    step = table["step"].to_numpy()
    last = step[most]
    whole = table.iloc[:most][step[:most] != last]
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
    None at last: equal prompts are a group, of whatever size."""
    if not columns.by_place:
        return [None]
    common = reduce(gcd, runs(sample).tolist())
    found = [n for n in range(common, 1, -1) if common % n == 0]
    return [*found, None]


def _best(
    sample: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None,
    sizes: Sequence[int | None],
) -> Reading:
    """The reading under which most steps fit a correct computation, the
    likeliest one where none does."""
    out = unscored(sample)
    given = None if weights is None else tuple(map(float, weights))
    if "advantage" not in sample or out.all():
        default = given or tuple(1.0 for _ in columns.rewards)
        why = ASSUMED if weights is None else GIVEN
        return Reading(
            default, sizes[0], _notes(columns, default, why, sizes[0], sample)
        )
    best: tuple[tuple[float, ...], Reading] | None = None
    for size in sizes:
        for normalized in (False, True):
            if normalized and best and _explains(best[0], sample):
                continue
            seen = _Seen.of(sample, size, normalized)
            for each, why in _tried(seen, given):
                notes = _notes(columns, each, why, size, sample)
                if normalized:
                    notes = (*notes, NORMALIZED)
                merit = _merit(seen, each, why)
                if best is None or merit > best[0] and merit[0]:
                    best = merit, Reading(each, size, notes, normalized)
    assert best is not None
    if given is None and not _explains(best[0], sample):
        for each in _strided(_sample(sample, STRIDED_ROWS)):
            notes = _notes(columns, each, STRIDED, sizes[0], sample)
            return Reading(each, sizes[0], notes)
    return best[1]


def _strided(sample: pd.DataFrame) -> Iterator[tuple[float, ...]]:
    """Weights under which fixed strides of some size, whatever the groups,
    give the advantages of all their rows."""
    largest = int(runs(sample).max()) if "prompt" in sample else 0
    rows = sample.groupby(_steps(sample)).cumcount().to_numpy()
    count = np.bincount(_steps(sample))[_steps(sample)]
    for size in range(2, min(2 * largest, LONGEST) + 1):
        part = sample[rows < count // size * size]
        if not len(part) or unscored(part).any():
            continue
        seen = _Seen.of(part, size, False)
        for each, why in _tried(seen, None)[:FEW]:
            merit = _merit(seen, each, why)
            if _explains(merit, part):
                yield each


def _explains(merit: tuple[float, ...], sample: pd.DataFrame) -> bool:
    """Every step fits."""
    steps = sample["step"].nunique() if "step" in sample else 1
    return merit[0] >= steps


@dataclass(frozen=True, eq=False)
class _Seen:
    """A sample's rows that have a say, as one reading has them.

    rewards    float64 [R, functions], 0 where empty
    advantage  float64 [R]
    step       int64 [R]
    group      int64 [R], one for each (step, group)
    """

    rewards: np.ndarray
    advantage: np.ndarray
    step: np.ndarray
    group: np.ndarray

    @classmethod
    def of(
        cls, sample: pd.DataFrame, size: int | None, normalized: bool
    ) -> "_Seen":
        """The sample with groups of `size` rows."""
        names = [n for n in sample if n.startswith("reward ")]
        step, group = _group(sample, size)
        rewards = sample[names].to_numpy()
        if normalized:
            rewards = _normalized(rewards, group)
        in_ = ~unscored(sample)
        return cls(
            np.nan_to_num(rewards[in_], posinf=0, neginf=0),
            sample["advantage"].to_numpy()[in_],
            pd.factorize(step[in_])[0],
            pd.factorize(group[in_])[0],
        )


def _tried(
    seen: _Seen, given: tuple[float, ...] | None
) -> list[tuple[tuple[float, ...], str]]:
    """Weights to try, and where they come from, likely ones first."""
    if given is not None:
        return [(given, GIVEN)]
    default = tuple(1.0 for _ in seen.rewards.T)
    if not np.isfinite(seen.advantage).all():
        return [(default, ASSUMED)]
    found = _solved(seen)
    why = SOLVED if default in found else ASSUMED
    return [(default, why), *((w, SOLVED) for w in found if w != default)]


def _notes(
    columns: Columns,
    weights: tuple[float, ...],
    why: str,
    size: int | None,
    sample: pd.DataFrame,
) -> tuple[str, ...]:
    notes = []
    if len(weights) > 1 or why == SOLVED and weights != (1.0,):
        terms = " + ".join(
            f"{w:g} {n}" for w, n in zip(weights, columns.rewards)
        )
        notes.append(f"reward = {terms} ({why})".replace("+ -", "- "))
    if why == SOLVED:
        notes += _unsolved(columns, sample, size)
    if size:
        notes.append(f"groups are {size} rows each, by position")
        notes += _longer(sample, size)
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    names = [f"reward {at}" for at in range(len(weights))]
    missing = int(sample[names].isna().to_numpy().sum())
    out = int(unscored(sample).sum())
    if out:
        notes.append(
            f"{out} of the first {len(sample)} rows have no reward at all:"
            " they enter no statistic and have advantage 0"
        )
    elif missing:
        notes.append(
            f"{missing} of the first rows' rewards are empty and add nothing"
        )
    return tuple(notes)


def _longer(sample: pd.DataFrame, size: int) -> list[str]:
    """A note where equal prompts always stand in longer runs."""
    if "prompt" not in sample:
        return []
    found = runs(sample)
    common = reduce(gcd, found.tolist())
    several = len(found) >= 2 * len(np.unique(_steps(sample)))
    if common % size or common == size or not several:
        return []
    return [
        f"equal prompts stand in runs of {common}: if a prompt has {common}"
        " rows, say so (group size), and fixed strides are looked for"
    ]


def _unsolved(
    columns: Columns, sample: pd.DataFrame, size: int | None
) -> list[str]:
    """A note on functions whose weight the advantages cannot show."""
    if "advantage" not in sample:
        return []
    seen = _Seen.of(sample, size, False)
    centered = seen.rewards - _means(seen.rewards, seen.group)[seen.group]
    live = _independent(centered)
    rest = [n for n, alive in zip(columns.rewards, live) if not alive]
    if not rest or len(rest) == len(live):
        return []
    return [
        ", ".join(rest) + (" tells" if len(rest) == 1 else " tell")
        + " no rows of a group apart that the others do not;"
        " the weight may be another"
    ]


def _normalized(rewards: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each function's rewards, less their group's mean and over its
    standard deviation (ddof 1) + eps: NaN where empty, 0 for the only one
    of a group. [R, functions]"""
    has = ~np.isnan(rewards)
    count = _sums(has.astype("float64"), group)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _sums(np.where(has, rewards, 0), group) / count
        away = rewards - mean[group]
        square = _sums(np.where(has, away, 0) ** 2, group)
        spread = np.sqrt(square / (count - 1))
        found = np.nan_to_num(away / (spread[group] + TRL_EPS))
        return np.where(has, found, np.nan)


def _sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of each group's rows, [G, functions]."""
    found = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(found, group, values)
    return found


def _steps(table: pd.DataFrame) -> np.ndarray:
    """int64 [R] steps from 0."""
    if "step" not in table:
        return np.zeros(len(table), dtype="int64")
    return pd.factorize(table["step"])[0].astype("int64")


def _codes(step: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """int64 [R], one for each (step, prompt)."""
    return pd.factorize(step * (len(step) + 1) + prompt)[0]


def _group(
    sample: pd.DataFrame, size: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Step int64 [R] and group int64 [R], one for each (step, group)."""
    step = _steps(sample)
    if size is None:
        prompt = pd.factorize(sample["prompt"])[0]
    else:
        first = np.unique(step, return_index=True)[1]
        place = np.arange(len(sample)) - first[step]
        prompt = place // size
    return step, _codes(step, prompt)


def _merit(
    seen: _Seen, weights: tuple[float, ...], why: str
) -> tuple[float, ...]:
    """How well a reward explains the advantages: steps that one correct
    computation fits, TRL's own preferred, then the residual, then how
    short the weights are. Solved weights make any advantages raw rewards
    (of weight 1 / eps, say), so that does not count."""
    table = pd.DataFrame(
        {
            "step": seen.step,
            "prompt": seen.group,
            "reward": seen.rewards @ np.array(weights),
            "advantage": seen.advantage,
        }
    )
    work = Judging(to_rollouts(table))
    every = np.ones(work.rollouts.steps, dtype=bool)
    work.try_all(computations("", 1, work.facts), every)
    own = [
        c
        for c in computations("", 2, work.facts)
        if c.estimator in TRL_ESTIMATORS
    ]
    work.try_all(own, every)
    best: tuple[float, ...] = (-1.0,)
    digits = sum(len(f"{w:g}".strip("-0.")) for w in weights)
    for computation, fit in work.fits.items():
        s = computation.settings
        if why == SOLVED and s.baseline == "none":
            continue
        known = computation.estimator in TRL_ESTIMATORS
        known &= s.scale == "none" or s.eps == TRL_EPS
        worst = float(np.where(fit.fits, fit.residual, 0).max())
        merit = (
            float(fit.fits.sum()), float(known), -round(worst, 6), -digits
        )
        best = max(best, merit)
    return best


def _solved(seen: _Seen) -> list[tuple[float, ...]]:
    """Weights, likely ones first, that could have given the advantages: in
    every group, or in every step, they are proportional to the centered
    sum of rewards. A function that never varies in a group gets 1, or 0;
    one that the others make up gets 0."""
    rewards, advantage = seen.rewards, seen.advantage
    step, group = seen.step, seen.group
    centered = rewards - _means(rewards, group)[group]
    norms = np.sqrt((centered**2).sum(0))
    live = _independent(centered)
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
    for solved in (
        _least_squares(unit, advantage),
        _least_squares(unit * others[:, None], advantage),
        _from_pairs(unit, advantage, group),
    ):
        if solved is not None:
            solved = solved / norms[live]
            found += [
                np.array([_digits(w, n) for w in solved]) for n in (1, 2, 3, 6)
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


def _independent(centered: np.ndarray) -> np.ndarray:
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


def _means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Mean of each group's rows, [G, functions]."""
    return _sums(values, group) / np.bincount(group)[:, None]


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
