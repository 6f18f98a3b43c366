"""`gradebook.check`: whole steps in, one row a step out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.rollouts import Rollouts, to_rollouts
from gradebook.logs.candidates.trl import Reading, read_as_trl, rewarded
from gradebook.logs.judging import Judging, judged, undisturbed
from gradebook.logs.places import decimal_places
from gradebook.logs.read.canonical import canonical
from gradebook.logs.read.columns import Columns, guessed
from gradebook.logs.results import StepResults, results_of

AT_ONCE = 131_072
"""Rows that go through the engine together."""


def check(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    places: int | None = None,
) -> pd.DataFrame:
    """What each step's advantages are: one row a step.

    `frame` has whole steps, one row a rollout, in the log's order. Names
    of columns are guessed; `columns` says otherwise ({"reward": "score"}).
    Columns of the answer: step; verdict (correct, suspect, cannot tell,
    none fits); bug, a name from BUGS or ""; ties, the names that fit
    equally well; estimator; residual, the largest distance of a row from
    that computation; correct_residual, the same for the correct engine;
    row, the worst one, counted from 0 in its step. A step depends on its
    own rows alone.

    Raises GradebookError naming column and row of what cannot be read.
    """
    with undisturbed():
        rollouts, places = prepared(
            frame, columns, weights, group_size, places
        )
        parts = [
            judged_part(part, places, group_size)[1].frame
            for part in in_parts(rollouts)
        ]
    return pd.concat(parts, ignore_index=True)


def prepared(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | None,
    weights: Sequence[float] | None,
    group_size: int | None,
    places: int | None,
) -> tuple[Rollouts, int | None]:
    """A log's frame as rollouts, and the decimals its advantages have."""
    found = guessed_from(frame, columns)
    table, broken = canonical(frame, found)
    if broken:
        first = broken[0]
        raise GradebookError(
            key=first.column,
            row=first.row,
            expected=first.expected,
            found=first.found,
        )
    reading = read_as_trl(table, found, weights, group_size)
    table = rewarded(with_groups(table, found, reading), reading)
    rollouts = to_rollouts(table)
    if places is None:
        places = decimal_places(rollouts.advantage)
    return rollouts, places


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


def place_groups(table: pd.DataFrame, size: int) -> np.ndarray:
    """int64 [R] position in the step // size."""
    if "step" not in table:
        return np.arange(len(table)) // size
    codes = pd.factorize(table["step"])[0]
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    first = np.searchsorted(sorted_codes, sorted_codes, side="left")
    place = np.empty(len(table), dtype="int64")
    place[order] = np.arange(len(table)) - first
    return place // size


def in_parts(rollouts: Rollouts) -> list[Rollouts]:
    """The rollouts, cut between steps so that few rows are held at once."""
    if rollouts.batch.rows <= AT_ONCE:
        return [rollouts]
    part = np.append(rollouts.starts[1:], rollouts.batch.rows) // AT_ONCE
    return [rollouts.of_steps(part == p) for p in np.unique(part)]


def judged_part(
    rollouts: Rollouts, places: int | None, group_size: int | None
) -> tuple[Judging, StepResults]:
    """A part's steps, judged to float32 precision; where nothing fits, to
    the decimals that the log was written with."""
    work = judged(rollouts, None, group_size)
    results = results_of(work)
    open_steps = (results.frame["verdict"] == "none fits").to_numpy()
    if places is None or not open_steps.any():
        return work, results
    again = judged(rollouts, places, group_size)
    rounded = results_of(again)
    return again, _merged(results, rounded, open_steps)


def _merged(
    exact: StepResults, rounded: StepResults, use: np.ndarray
) -> StepResults:
    frame, timeline = exact.frame.copy(), exact.timeline.copy()
    frame.loc[use] = rounded.frame.loc[use]
    timeline.loc[use] = rounded.timeline.loc[use]
    chosen = tuple(
        r if u else e for e, r, u in zip(exact.chosen, rounded.chosen, use)
    )
    return StepResults(frame, timeline, chosen)
