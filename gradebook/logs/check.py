"""`gradebook.check`: whole steps in, one row a step out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trl import read_as_trl
from gradebook.logs.judging.declared import asked_of
from gradebook.logs.judging.fit import ruler_of
from gradebook.logs.judging.judge import COLUMNS, by_step
from gradebook.logs.read.log import read_frame, read_recording

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording


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

    Columns of the answer: step; verdict (correct, other, suspect, asks,
    cannot tell, none fits); bug, the suspect's name or ""; ties, the names
    that fit equally well; asks, the bugs that it would be under a condition;
    estimator; residual, the largest distance of a row from that computation;
    correct_residual, the same for the correct one; row, the worst one,
    counted from 0 in its step. A step's verdict depends on its own rows. A
    step that stands twice, since the run was resumed, has two rows: "4" and
    "4 (again)".

    Raises GradebookError naming column and row of what cannot be read.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"prompt": [0, 0], "reward": [1.0, 4.0],
    ...                       "advantage": [-1.5, 1.5]})
    >>> check(frame)[["verdict", "estimator"]].values.tolist()
    [['correct', 'dr_grpo']]
    """
    if isinstance(frame, pd.DataFrame):
        log = read_frame(frame, columns)
    else:
        declared = {**frame.declared, **(declared or {})}
        log = read_recording(frame, columns)
    asked = asked_of(declared, group_size, log.columns.trusted)
    parts = []
    for table in log.tables():
        reading = read_as_trl(table, log.columns, weights, group_size)
        steps = logged(table, log.columns, reading)
        parts.append(by_step(ruler_of(steps, log.types, places), asked))
    if not parts:
        return pd.DataFrame({name: [] for name in COLUMNS})
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]
