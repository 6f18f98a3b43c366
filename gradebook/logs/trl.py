"""TRL's logs: how many rows share a prompt, which rows are of evaluation, and the
reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows: whatever a
trainer subtracts from a group's rewards and divides them by, the advantages of a
group lie on a line with its summed rewards. That gives the weights up to a
factor, and what divides them gives the factor. Where TRL evaluates, it writes
rows of evaluation behind the training rows of a step, and the oldest training
rows drop out for them.

Letters: R rows, F reward functions, G groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.logs.logged_steps import LoggedSteps, to_logged
from gradebook.logs.read.columns import Columns

SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""
STEPS = 512
"""So many steps are looked at to find the rows of evaluation."""
CLOSE = 1e-5
"""So near numbers of size 1 tell one eps from another."""
EPS = (1e-4, 1e-6, 1e-8)
"""What GDPO adds to a function's deviation: TRL's first."""
NEAR = 1e-3
"""A group's advantages are so near to the line, beside numbers of size 1."""
MOST = 0.9
"""Weights have to explain this share of the rows."""
GIVEN = "as given"
ALONE = "this function alone explains the logged advantages"
SOLVED = "the logged advantages determine them"
EQUAL = "equal weights agree with the logged advantages"
ASSUMED = "TRL's default; the log does not determine them: give them as weights"
NORMALIZED = (
    "each function's rewards are normalized in their group before they are"
    " summed (normalize_then_sum); the weights are known up to a factor"
)


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights       one for each reward function
    group_size    rows per prompt where groups are cut by position, else None
    training      bool [R] the row is not of evaluation; None where none is
    normalized    the eps with which each function's rewards are normalized
                  in their group before they are summed, or None
    why           where the weights come from
    notes         what a reader should know about all this
    """

    weights: tuple[float, ...]
    group_size: int | None
    training: np.ndarray | None = None
    normalized: float | None = None
    why: str = GIVEN
    notes: tuple[str, ...] = ()

    @property
    def asks_weights(self) -> bool:
        """The weights are assumed, and the rows do not confirm them."""
        return self.why == ASSUMED and len(self.weights) > 1


def logged(table: pd.DataFrame, columns: Columns, reading: Reading) -> LoggedSteps:
    """A canonical table under a reading, without rows of evaluation, its
    groups cut by position where TRL does so or the log names no prompt.
    Raises GradebookError for a log of neither prompts nor a group size."""
    if reading.training is not None:
        table = table[reading.training]
    if columns.by_place or "prompt" not in table:
        table = _by_place(table, reading.group_size)
    if "prompt" not in table:
        raise GradebookError(
            key="prompt",
            expected="a column of prompts or group ids, or a group size",
            found="none",
        )
    return to_logged(summed(normalized(table, reading.normalized), reading.weights))


def read_as_trl(
    table: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
) -> Reading:
    """Group size and weights of a canonical table, as given or as the rows show:
    those whose summed rewards explain the most advantages, the likeliest where
    several do as well. Raises GradebookError when the number of weights is
    wrong."""
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        expected = f"{len(names)} numbers, for " + ", ".join(names)
        raise refuse(expected, len(weights), "weights")
    training = _training(table) if columns.by_place else None
    default = tuple(map(float, weights)) if weights else (1.0,) * len(names)
    settled = weights is not None or len(names) == 1
    reading = Reading(default, group_size, training)
    sample = table if training is None else table[training]
    step = _steps(sample)
    if len(sample) > SAMPLE_ROWS:
        sample = sample[step <= step[SAMPLE_ROWS]]
    plain = settled or "prompt" not in table
    if not len(sample) or (plain and not columns.by_place):
        return reading
    sizes: list[int | None] = [group_size]
    if not group_size and columns.by_place:
        # Sizes that divide every run of equal prompts, and at last None: equal
        # prompts are a group, of whatever size.
        common = _common_run(sample)
        sizes = [*(n for n in range(common, 1, -1) if common % n == 0), None]
    if "advantage" not in sample:
        reading = replace(
            reading, group_size=sizes[0], why=GIVEN if settled else ASSUMED
        )
        return _with_notes(sample, columns, reading)
    tries = [
        each
        for size in sizes
        for eps in ((None, *EPS) if len(names) > 1 else (None,))
        for each in _tried(
            sample, replace(reading, group_size=size, normalized=eps), settled
        )
    ]
    share, _, best = max(tries, key=lambda each: each[:2])
    if best.why == EQUAL and best.group_size == 2:
        best = replace(best, why=ASSUMED)  # any weights explain a group of two
    if share < MOST and weights is None:
        size = best.group_size if share else sizes[0]
        best = replace(reading, group_size=size, why=ASSUMED)
    return _with_notes(sample, columns, best)


def _tried(
    sample: pd.DataFrame, reading: Reading, settled: bool
) -> list[tuple[float, float, Reading]]:
    """The reading with weights to try, likely ones first, each with the share of
    the rows that it explains, nearly and closely."""
    sample = _by_place(sample, reading.group_size)
    advantage = sample["advantage"].to_numpy()
    counts = ~unscored(sample) & np.isfinite(advantage)
    if not counts.any():
        return [(0.0, 0.0, replace(reading, why=ASSUMED))]
    sample = normalized(sample, reading.normalized)[counts]
    step, group, advantage = _steps(sample), _groups(sample), advantage[counts]
    rewards = sample[functions_of(sample)].to_numpy()
    rewards = np.nan_to_num(rewards, posinf=0, neginf=0)
    tries = [(GIVEN if settled else EQUAL, reading.weights)]
    if not settled:
        weights = solved(rewards, advantage, step, group)
        tries = [(SOLVED, weights), *tries] if weights else tries
        tries += [(ALONE, tuple(row)) for row in np.eye(rewards.shape[1]).tolist()]
    readings = []
    for why, weights in tries:
        total = rewards @ weights
        near, close = (explained(total, advantage, group, n) for n in (NEAR, CLOSE))
        readings.append((near, close, replace(reading, weights=weights, why=why)))
    return readings


def _with_notes(sample: pd.DataFrame, columns: Columns, reading: Reading) -> Reading:
    """The reading, with what a reader should know about it."""
    notes, size = [], reading.group_size
    if len(columns.rewards) > 1:
        pairs = zip(reading.weights, columns.rewards)
        terms = " + ".join(f"{weight:g} {name}" for weight, name in pairs)
        notes.append(f"reward = {terms} ({reading.why})".replace("+ -", "- "))
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
    notes += [NORMALIZED] if reading.normalized else []
    return replace(reading, notes=tuple(notes))


def explained(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray, near: float = NEAR
) -> float:
    """The share of rows in groups whose advantages lie on a rising line with
    the rewards, float64 [R] each."""
    away, centered = _centered(rewards, group), _centered(advantage, group)
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
) -> tuple[float, ...] | None:
    """Weights that explain the advantages, float64 [R], of the rewards,
    float64 [R, F], None where many might. Step and group, int64 [R], count from
    0. A function that varies in no group gets 0.

    The factor is, where nothing divides, how many times an advantage is its
    reward; else what TRL's eps shows of it."""
    away = np.stack([_centered(each, group) for each in rewards.T], axis=1)
    centered = _centered(advantage, group)
    size = np.sqrt((away**2).mean(0))
    varies = size > 1e-9
    if not 0 < varies.sum() <= len(away):
        return None
    # The weighted sum of what in a group's rewards does not lie along its
    # advantages is 0.
    plain = away[:, varies] / size[varies]
    along = np.stack([_rise(centered, each, group) for each in plain.T], axis=1)
    rest = plain - along[group] * centered[:, None]
    _, value, right = np.linalg.svd(rest, full_matrices=False)
    if len(value) > 1 and value[-2] < NEAR * value[0]:
        return None
    weights = np.zeros(len(size))
    weights[varies] = right[-1] / size[varies]
    weights *= np.sign(weights @ (away.T @ centered)) / np.abs(weights).max()
    weights[np.abs(weights) < 1e-4] = 0
    rise = _rise(away @ weights, centered, group)
    factor = _factor(rise, rewards @ weights, step, group)
    if factor is None:
        return None
    weights *= factor
    for digits in (1, 2, 3, 6):
        short = np.array([float(f"{w:.{digits}g}") for w in weights]) + 0.0
        if np.allclose(short, weights, rtol=1e-4, atol=0):
            break
    return tuple(short.tolist())


def _factor(
    rise: np.ndarray, reward: np.ndarray, step: np.ndarray, group: np.ndarray
) -> float | None:
    """Where nothing divides, how many times an advantage is its reward; else what
    TRL's eps shows of it; None where the numbers do not show it."""
    rows, varies = np.bincount(group), rise > 0
    if not varies.any():
        return None
    for factors in (rise, rise * (rows - 1) / rows):  # the mean, and leave-one-out
        middle = float(f"{np.median(factors[varies]):.2g}")
        if np.allclose(factors[varies], middle, rtol=1e-4):
            return middle
    first = np.unique(group, return_index=True)[1]
    for labels in (group, step):
        spread = pd.Series(reward).groupby(labels).transform("std").to_numpy()[first]
        # 1 / rise = the spread + eps / the factor
        rest = 1 / rise[varies] - spread[varies]
        middle = float(np.median(rest))
        steady = np.median(np.abs(rest - middle)) < 0.02 * middle
        if steady and 0.05 < EPS[0] / middle < 20:
            return float(f"{EPS[0] / middle:.2g}")
    return None


def _centered(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less their group's mean. [R]"""
    return values - (np.bincount(group, values) / np.bincount(group))[group]


def summed(table: pd.DataFrame, weights: Sequence[float]) -> pd.DataFrame:
    """The table with one reward, the weighted sum of the functions'; one
    that gave none (NaN) adds nothing, as in TRL. Rows that are `unscored`
    are not scored: they enter no statistic."""
    names, out = functions_of(table), unscored(table)
    total = np.zeros(len(table))
    for name, weight in zip(names, weights):
        total += weight * np.nan_to_num(table[name].to_numpy())
    table = table.drop(columns=names).assign(reward=total)
    if out.any():
        table["scored"] = np.where(out, 0.0, table.get("scored", 1.0))
    return table


def functions_of(table: pd.DataFrame) -> list[str]:
    """The columns of the reward functions."""
    return [name for name in table if name.startswith("reward ")]


def unscored(table: pd.DataFrame) -> np.ndarray:
    """bool [R]: no function gave the row a reward."""
    return table[functions_of(table)].isna().all(axis=1).to_numpy()


def normalized(table: pd.DataFrame, eps: float | None) -> pd.DataFrame:
    """The table with each function's rewards less their group's mean and over its
    standard deviation (ddof 1) + eps: NaN where empty, 0 for the only one of a
    group; as it is without an eps."""
    if not eps:
        return table
    rewards = table[functions_of(table)]
    groups = rewards.groupby(_groups(table))
    values = (rewards - groups.transform("mean")) / (groups.transform("std") + eps)
    return table.assign(**values.fillna(0).where(rewards.notna()))


def _by_place(table: pd.DataFrame, size: int | None) -> pd.DataFrame:
    """The table with groups of `size` rows of a step as prompts; as it is
    without a size."""
    if not size:
        return table
    step = _steps(table)
    place = pd.Series(step).groupby(step).cumcount().to_numpy()
    return table.assign(prompt=place // size)


def _steps(table: pd.DataFrame) -> np.ndarray:
    """int64 [R] steps from 0."""
    if "step" not in table:
        return np.zeros(len(table), dtype="int64")
    return pd.factorize(table["step"])[0].astype("int64")


def _groups(table: pd.DataFrame) -> np.ndarray:
    """int64 [R], one number for each prompt of a step."""
    prompt = pd.factorize(table["prompt"])[0]
    return pd.factorize(_steps(table) * (len(table) + 1) + prompt)[0]


def _common_run(table: pd.DataFrame) -> int:
    """What divides the rows with one prompt that follow each other in a step."""
    heads = np.flatnonzero(np.diff(_groups(table), prepend=-1))
    return int(np.gcd.reduce(np.diff([*heads, len(table)])))


def _training(table: pd.DataFrame) -> np.ndarray | None:
    """bool [R]: the row is of a whole group of training. A step that has rows of
    evaluation has as many as any other, at its end; the fewest under which all
    steps are whole groups of one prompt are taken. None where all are whole
    groups as they stand, or can not be."""
    if "step" not in table or "prompt" not in table:
        return None
    heads = np.flatnonzero(np.diff(_steps(table), prepend=-1))
    steps = np.split(pd.factorize(table["prompt"])[0], heads[1:])
    some, longest = steps[:STEPS], max(map(len, steps[:STEPS]))
    for size in range(longest, 1, -1):
        odd = [prompts for prompts in some if _whole(prompts, size, 0) is None]
        if not odd:
            return None
        most = min(map(len, odd)) - size if len(odd) < len(some) else 0
        for last in range(1, most + 1):
            if any(_whole(prompts, size, last) is None for prompts in odd):
                continue
            kept = []
            for step in steps:
                rows = _whole(step, size, 0)
                rows = _whole(step, size, last) if rows is None else rows
                kept.append(np.ones(len(step), bool) if rows is None else rows)
            return np.concatenate(kept)
    return None


def _whole(prompts: np.ndarray, size: int, last: int) -> np.ndarray | None:
    """bool: the rows of a step that are of whole groups: not the `last` ones, and
    not what is left over before the first group. None where a group has several
    prompts, there is none, or something is left over without `last` rows."""
    if len(prompts) % size and not last:
        return None
    row, stop = np.arange(len(prompts)), len(prompts) - last
    whole = (row >= stop % size) & (row < stop)
    groups = prompts[whole].reshape(-1, size)
    return whole if len(groups) and (groups == groups[:, :1]).all() else None
