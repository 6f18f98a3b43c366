"""Reading: a log's canonical rows as logged steps, with the groups and the
one reward that the trainer had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.evaluation import Layout
from gradebook.logs.candidates.logged_steps import LoggedSteps, to_logged
from gradebook.logs.candidates.weights import normalized_rewards
from gradebook.logs.read.canonical import functions_of, summed
from gradebook.logs.read.columns import Columns


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights       one for each reward function
    asks_weights  they are assumed, and the rows do not confirm them
    group_size    rows per prompt where groups are cut by position, else None
    notes         what a reader should know about both
    normalized    each function's rewards are normalized in their group
                  before they are summed
    layout        where rows of evaluation stand, None without any
    """

    weights: tuple[float, ...]
    group_size: int | None
    notes: tuple[str, ...] = ()
    normalized: bool = False
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
        values = normalized_rewards(table[names].to_numpy(), group)
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
