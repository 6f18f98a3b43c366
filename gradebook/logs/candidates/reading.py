"""Reading: a log's canonical rows as logged steps, with the groups and the
one reward that the trainer had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.logged_steps import LoggedSteps, to_logged
from gradebook.logs.candidates.sampled import place_groups
from gradebook.logs.candidates.trl import Reading, read_as_trl, rewarded
from gradebook.logs.read.canonical import canonical
from gradebook.logs.read.columns import Columns, guessed
from gradebook.logs.read.resumed import told_apart


def prepared(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | None,
    weights: Sequence[float] | None,
    group_size: int | None,
) -> LoggedSteps:
    """A log's frame as logged steps. Raises GradebookError with the column
    and row of the first cell that cannot be read."""
    found = guessed_from(frame, columns)
    table, broken = canonical(frame, found)
    if broken:
        raise broken[0]
    table, _ = told_apart(table)
    reading = read_as_trl(table, found, weights, group_size)
    return logged(table, found, reading)


def logged(
    table: pd.DataFrame, columns: Columns, reading: Reading
) -> LoggedSteps:
    """A canonical table under a reading, without rows of evaluation."""
    if reading.layout is not None:
        table = reading.layout.training(table)
    return to_logged(rewarded(with_groups(table, columns, reading), reading))


def guessed_from(
    frame: pd.DataFrame, given: Mapping[str, str] | None
) -> Columns:
    """The guess for a frame's columns."""
    names = [str(c) for c in frame.columns]
    kinds = [frame[c].dtype.kind for c in frame.columns]
    numbers = [n for n, k in zip(names, kinds) if k in "fiub"]
    return guessed(names, numbers, given)


def with_groups(
    table: pd.DataFrame, columns: Columns, reading: Reading
) -> pd.DataFrame:
    """The canonical frame with groups by position, where TRL cuts them or
    the log names no prompt."""
    by_place = columns.by_place or "prompt" not in table
    if not by_place or not reading.group_size:
        if "prompt" not in table:
            raise GradebookError(
                key="prompt",
                expected="a column of prompts or group ids, or a group size",
                found="none",
            )
        return table
    return table.assign(prompt=place_groups(table, reading.group_size))
