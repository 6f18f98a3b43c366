"""Reading: a log's canonical rows as logged steps, with the groups and the
one reward that the trainer had.

Where TRL evaluates, it writes rows of evaluation behind the training rows of a
step, and the oldest training rows drop out for them. Letters: R rows, F reward
functions, G groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.logged_steps import LoggedSteps, to_logged
from gradebook.logs.read.canonical import functions_of, summed
from gradebook.logs.read.columns import Columns

STEPS = 512
"""So many steps are looked at to find the layout of rows of evaluation."""


@dataclass(frozen=True)
class Layout:
    """How a step's rows lie.

    size  training rows per prompt
    last  rows of evaluation at the end of a step that has any
    """

    size: int
    last: int

    def training(self, table: pd.DataFrame) -> pd.DataFrame:
        """Only the training rows whose whole group is there."""
        step, prompt = _codes(table)
        keep = np.ones(len(table), dtype=bool)
        for first, end in _bounds(step):
            rows = prompt[first:end]
            if not _pure(rows, self.size, 0) and _pure(rows, self.size, self.last):
                stop = end - self.last
                keep[first:end] = False
                keep[first + (stop - first) % self.size : stop] = True
        return table[keep].reset_index(drop=True)


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights       one for each reward function
    asks_weights  they are assumed, and the rows do not confirm them
    group_size    rows per prompt where groups are cut by position, else None
    notes         what a reader should know about both
    normalized    the eps with which each function's rewards are normalized
                  in their group before they are summed, or None
    layout        where rows of evaluation stand, None without any
    """

    weights: tuple[float, ...]
    group_size: int | None
    notes: tuple[str, ...] = ()
    normalized: float | None = None
    layout: Layout | None = None
    asks_weights: bool = False


def logged(table: pd.DataFrame, columns: Columns, reading: Reading) -> LoggedSteps:
    """A canonical table under a reading, without rows of evaluation, its
    groups cut by position where TRL does so or the log names no prompt.
    Raises GradebookError for a log of neither prompts nor a group size."""
    if reading.layout is not None:
        table = reading.layout.training(table)
    by_place = columns.by_place or "prompt" not in table
    if by_place and reading.group_size:
        table = table.assign(prompt=place_groups(table, reading.group_size))
    if "prompt" not in table:
        raise GradebookError(
            key="prompt",
            expected="a column of prompts or group ids, or a group size",
            found="none",
        )
    return to_logged(rewarded(table, reading))


def rewarded(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """The canonical table, its groups cut, with one reward."""
    if reading.normalized:
        names = functions_of(table)
        group = codes_of(steps_of(table), pd.factorize(table["prompt"])[0])
        values = normalized_rewards(table[names].to_numpy(), group, reading.normalized)
        table = table.assign(**dict(zip(names, values.T)))
    return summed(table, reading.weights)


def steps_of(table: pd.DataFrame) -> np.ndarray:
    """int64 [R] steps from 0."""
    if "step" not in table:
        return np.zeros(len(table), dtype="int64")
    return pd.factorize(table["step"])[0].astype("int64")


def codes_of(step: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """int64 [R], one for each (step, prompt)."""
    return pd.factorize(step * (len(step) + 1) + prompt)[0]


def place_groups(table: pd.DataFrame, size: int) -> np.ndarray:
    """int64 [R] position in the step // size."""
    step = steps_of(table)
    return pd.Series(step).groupby(step).cumcount().to_numpy() // size


def normalized_rewards(
    rewards: np.ndarray, group: np.ndarray, eps: float
) -> np.ndarray:
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
        return np.where(has, np.nan_to_num(away / (spread[group] + eps)), np.nan)


def sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of each group's rows, [G, F]."""
    total = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(total, group, values)
    return total


def layout_of(table: pd.DataFrame) -> Layout | None:
    """The layout under which all steps are whole groups of one prompt, with
    as few rows of evaluation as possible; None where they are whole groups
    as they stand, or under no layout."""
    if "step" not in table or "prompt" not in table:
        return None
    step, prompt = _codes(table)
    rows = [prompt[a:b] for a, b in _bounds(step)[:STEPS]]
    largest = max(len(r) for r in rows)
    for size in range(largest, 1, -1):
        odd = [r for r in rows if not _pure(r, size, 0)]
        if not odd:
            return None
        if len(odd) == len(rows):
            continue
        for last in range(1, min(len(r) for r in odd) - size + 1):
            if all(_pure(r, size, last) for r in odd):
                return Layout(size, last)
    return None


def _codes(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    step = pd.factorize(table["step"], use_na_sentinel=False)[0]
    return step, pd.factorize(table["prompt"], use_na_sentinel=False)[0]


def _bounds(step: np.ndarray) -> list[tuple[int, int]]:
    """First row and end of each stretch of one step."""
    heads = np.flatnonzero(np.diff(step, prepend=-1))
    return list(zip(heads.tolist(), [*heads[1:].tolist(), len(step)]))


def _pure(prompt: np.ndarray, size: int, last: int) -> bool:
    """Without the `last` rows, and without what is left over before the
    first whole group, every `size` rows have one prompt. Without rows to
    leave out, nothing may be left over."""
    rows = prompt[: len(prompt) - last]
    over = len(rows) % size
    if len(rows) < size or (over and not last):
        return False
    groups = rows[over:].reshape(-1, size)
    return bool((groups == groups[:, :1]).all())
