"""A batch and every stage of both engines as CSV.

Every cell passes through `_cell`, so that no spreadsheet computes one.
"""

from __future__ import annotations

import csv as csv_files
import io
import math
import re
from collections.abc import Iterable
from typing import Any

from gradebook.analysis.comparison import ROW_STAGES, compared
from gradebook.cases.state import State
from gradebook.core.batch import PER_TOKEN, Batch
from gradebook.engine.pipeline import Trace

FORMULA = re.compile(r"(^|[;\t\r\n])(\s*)([=+\-@\t\r＝＋－＠])")
"""Where a spreadsheet would begin to compute; after separators too, since
some read a semicolon as one."""


def csv(state: State) -> str:
    """The batch and every stage of both engines, one row a rollout.

    An empty cell is no value. A prompt that a spreadsheet would take for a
    formula has an apostrophe before it. Raises GradebookError where the
    batch cannot be read.
    """
    comparison = compared(state)
    columns = {"row": list(range(comparison.batch.rows))}
    columns |= _inputs(state, comparison.batch)
    for stage in ROW_STAGES:
        for side in ("correct", "faulty"):
            values = getattr(getattr(comparison, side), stage)
            columns[f"{side}_{stage}"] = values.tolist()
    for side in ("correct", "faulty"):
        columns |= _losses(side, getattr(comparison, side), comparison.batch.rows)
    return table_csv(columns, zip(*columns.values()))


def table_csv(head: Iterable[str], body: Iterable[Iterable[Any]]) -> str:
    """A table as CSV, no cell of which a spreadsheet computes."""
    out = io.StringIO()
    writer = csv_files.writer(out)
    writer.writerow(_cell(name) for name in head)
    writer.writerows([_cell(c) for c in row] for row in body)
    return out.getvalue()


def _inputs(state: State, batch: Batch) -> dict[str, list[Any]]:
    """What the engines were given, by the names of a table."""
    columns: dict[str, list[Any]] = {
        "prompt": state.table.values()["prompt"],
        "reward": batch.reward.tolist(),
    }
    for name in ("eos", "step", "steps", "kept_steps"):
        columns[name] = getattr(batch, name).tolist()
    typed = state.table.values()
    for name in typed:
        if name not in columns and name not in PER_TOKEN:
            columns[name] = typed[name]
    columns |= _by_token("t", batch.mask)
    for name in ("logp", "ref_logp"):
        if getattr(batch, name) is not None:
            columns |= _by_token(f"{name}_t", getattr(batch, name))
    return columns


def _by_token(stem: str, values: Any) -> dict[str, list[Any]]:
    return {f"{stem}{t + 1}": values[:, t].tolist() for t in range(values.shape[1])}


def _losses(side: str, trace: Trace, rows: int) -> dict[str, list[Any]]:
    """Gradients by token, and the loss of the whole batch on each row."""
    if trace.loss is None:
        return {}
    columns: dict[str, list[Any]] = {}
    for part in ("policy_gradient", "kl_gradient"):
        columns |= _by_token(f"{side}_{part}_t", getattr(trace, part))
    columns[f"{side}_loss_of_the_batch"] = [float(trace.loss)] * rows
    return columns


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet computes."""
    if isinstance(value, str):
        safe = value.encode("utf-8", "replace").decode()
        return FORMULA.sub(r"\1\2'\3", safe)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return ""
    return value
