"""`gradebook.check`: whole steps in, one row a step out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.conventions import declared_conventions
from gradebook.logs.candidates.fit import (
    Rounding,
    rounding_of,
    rounding_of_type,
)
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trials import Tried
from gradebook.logs.candidates.trl import read_as_trl
from gradebook.logs.quiet import undisturbed
from gradebook.logs.read.canonical import canonical
from gradebook.logs.read.columns import guessed, own_names
from gradebook.logs.read.resumed import told_apart
from gradebook.logs.verdict.search import Search
from gradebook.logs.verdict.steps import COLUMNS, joined, results_of

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

AT_ONCE = 131_072
"""Rows that go through the engine together, in whole steps."""


def check(
    frame: pd.DataFrame | Recording,
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    places: int | None = None,
    declared: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """What each step's advantages are: one row a step.

    `frame` has whole steps, one row a rollout, in the log's order. Names
    of columns are guessed; `columns` says otherwise ({"reward": "score"}).
    It may also be a recording, or a part of one (`Recording.split`), which
    says by itself what it holds and what was declared.
    `places` are the decimals that advantages were rounded to, `declared`
    settings that the trainer was given ({"scale": "group"}).

    Columns of the answer: step; verdict (correct, suspect, cannot tell,
    none fits); bug, a name from BUGS or ""; ties, the names that fit
    equally well; estimator; residual, the largest distance of a row from
    that computation; correct_residual, the same for the correct engine;
    row, the worst one, counted from 0 in its step. A step's verdict depends
    on its own rows. A step that stands twice, since the run was resumed, has
    two rows: "4" and "4 (again)". Beyond 2,048 rows, ties are those that fit
    a sample of the steps, or of one large step's prompts, as well.

    Raises GradebookError naming column and row of what cannot be read.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"prompt": [0, 0], "reward": [1.0, 3.0],
    ...                       "advantage": [-1.0, 1.0]})
    >>> check(frame)[["verdict", "estimator"]].values.tolist()
    [['correct', 'dr_grpo']]
    """
    frames: Iterable[pd.DataFrame] = [frame]
    kind = None
    if not isinstance(frame, pd.DataFrame):
        declared = {**frame.declared, **(declared or {})}
        columns = {**own_names(frame.columns), **(columns or {})}
        kind, frames = (
            rounding_of_type(frame.types["advantage"]),
            frame.frames(),
        )
    search = Search(tried(declared, group_size))
    found = []
    with undisturbed():
        for one in frames:
            steps = _prepared(one, columns, weights, group_size)
            rounding = kind
            if rounding is None:
                rounding = rounding_of(steps.advantage)
            if places is not None:
                rounding = Rounding(places)
            found += [
                results_of(search.run(part, rounding)).frame for part in in_parts(steps)
            ]
    return joined(found)[list(COLUMNS)]


def _prepared(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | None,
    weights: Sequence[float] | None,
    group_size: int | None,
) -> LoggedSteps:
    """A log's frame as logged steps. Raises GradebookError with the column
    and row of the first cell that cannot be read."""
    names = [str(c) for c in frame.columns]
    kinds = [frame[c].dtype.kind for c in frame.columns]
    numbers = [n for n, k in zip(names, kinds) if k in "fiub"]
    found = guessed(names, numbers, columns)
    table, broken = canonical(frame, found)
    if broken:
        raise broken[0]
    table, _ = told_apart(table)
    reading = read_as_trl(table, found, weights, group_size)
    return logged(table, found, reading)


def tried(declared: Mapping[str, Any] | None, group_size: int | None) -> Tried:
    """What is tried where a person named settings. Raises GradebookError
    for a setting or a value that does not exist."""
    given = dict(declared or {})
    if group_size is not None:
        given["group_size"] = group_size
    if not declared:
        return Tried(given=tuple(given.items()))
    table = declared_conventions(given)
    read = {k: table[0].settings[k] for k in given if k != "estimator"}
    return Tried(table, tuple(read.items()))


def in_parts(steps: LoggedSteps) -> Iterator[LoggedSteps]:
    """The steps, cut so that few rows are held at once."""
    if steps.rows <= AT_ONCE:
        yield steps
        return
    part = np.append(steps.starts[1:], steps.rows) // AT_ONCE
    for number in np.unique(part):
        yield steps.of_steps(part == number)
