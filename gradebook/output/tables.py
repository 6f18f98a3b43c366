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

from torch import Tensor

from gradebook.analysis.comparison import ROW_STAGES, compared
from gradebook.cases.state import State
from gradebook.core.columns import of_kind

FORMULA = re.compile(r"(^|[;\t\r\n])(\s*)([=+\-@\t\r＝＋－＠])")
"""Where a spreadsheet would begin to compute; after separators too, since
some read a semicolon as one."""


def csv(state: State) -> str:
    """The batch and every stage of both engines, one row a rollout.

    An empty cell is no value. A prompt that a spreadsheet would take for a
    formula has an apostrophe before it. Raises GradebookError where the
    batch cannot be read.
    """
    comparison, typed = compared(state), state.table.values()
    batch = comparison.batch
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    columns: dict[str, list[Any]] = {
        "row": list(range(batch.rows)),
        "prompt": typed["prompt"],
    }
    for name in ("reward", "eos", "step", "steps", "kept_steps"):
        columns[name] = getattr(batch, name).tolist()
    per_token = of_kind("tokens", "list")
    for name in typed:
        if name not in columns and name not in per_token:
            columns[name] = typed[name]
    columns |= _by_token("t", batch.mask)
    columns |= _by_token("logp_t", batch.logp) | _by_token("ref_logp_t", batch.ref_logp)
    for stage in ROW_STAGES:
        for side, trace in sides.items():
            columns[f"{side}_{stage}"] = getattr(trace, stage).tolist()
    for side, trace in sides.items():
        columns |= _by_token(f"{side}_policy_gradient_t", trace.policy_gradient)
        columns |= _by_token(f"{side}_kl_gradient_t", trace.kl_gradient)
        if trace.loss is not None:
            columns[f"{side}_loss_of_the_batch"] = [float(trace.loss)] * batch.rows
    return table_csv(columns, zip(*columns.values()))


def table_csv(head: Iterable[str], body: Iterable[Iterable[Any]]) -> str:
    """A table as CSV, no cell of which a spreadsheet computes."""
    out = io.StringIO()
    writer = csv_files.writer(out)
    writer.writerow(map(_cell, head))
    writer.writerows(map(_cell, row) for row in body)
    return out.getvalue()


def _by_token(stem: str, values: Tensor | None) -> dict[str, list[Any]]:
    if values is None:
        return {}
    return {f"{stem}{t + 1}": values[:, t].tolist() for t in range(values.shape[1])}


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        safe = value.encode("utf-8", "replace").decode()
        return FORMULA.sub(r"\1\2'\3", safe)
    if isinstance(value, bool):
        return int(value)
    return "" if isinstance(value, float) and math.isnan(value) else value
