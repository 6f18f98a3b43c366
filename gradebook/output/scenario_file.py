"""A state as a scenario file, which a page opens as one of its cases."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.record import bug
from gradebook.cases.schema import LARGEST_FILE, MOST_ROWS, MOST_TOKENS
from gradebook.cases.state import State, start
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import refuse
from gradebook.output.panels import kind_of, summary
from gradebook.output.rendering import rendered


def scenario_file(state: State) -> str:
    """The batch as a scenario file: a page variant when it stands in
    scenarios/ as <bug>-<name>.toml.

    Raises GradebookError where the batch cannot be read, no file can hold
    it, or the faulty engine has not exactly one bug.
    """
    batch = state.batch()
    if not 1 <= batch.rows <= MOST_ROWS:
        raise refuse(f"1 to {MOST_ROWS}", batch.rows, "rows")
    tokens = batch.mask.shape[1]
    if not 1 <= tokens <= MOST_TOKENS:
        raise refuse(f"1 to {MOST_TOKENS} tokens", tokens, "mask")
    comparison = compare(bug(state.bug), batch)
    rows, settings = _rows(state, batch), dict(batch.settings)
    text = rendered(
        "scenario_file.toml.jinja",
        mark=hashlib.sha256(repr((rows, settings)).encode()).hexdigest()[:6],
        bug=state.bug,
        case=state.scenario.title,
        edited=not state.same_batch(start(state.scenario)),
        agree=comparison.agree,
        summary=summary(comparison, kind_of(comparison)),
        rows=rows,
        settings=settings,
        **_prediction(comparison, min(state.row, batch.rows - 1)),
        **_expected(comparison),
    )
    if len(text.encode()) > LARGEST_FILE:
        raise refuse(
            f"a batch of at most {LARGEST_FILE} bytes",
            len(text.encode()),
            "rows",
        )
    return text


def _rows(state: State, batch: Batch) -> list[dict[str, Any]]:
    columns = state.table.values()
    if not bool(batch.eos.all()):
        columns["eos"] = batch.eos.tolist()
    if "mask" in columns:
        columns["mask"] = batch.mask.int().tolist()
    names = [name for name in COLUMNS if name in columns]
    return [
        dict(zip(names, cells)) for cells in zip(*(columns[name] for name in names))
    ]


def _prediction(comparison: Comparison, row: int) -> dict[str, Any]:
    """Whether both engines treat the row alike, and why."""
    moved = bool(comparison.differs("advantage")[row])
    differs = moved or bool(comparison.gradient_differs[row])
    a, b = (
        float(trace.advantage[row]) for trace in (comparison.correct, comparison.faulty)
    )
    why = f"The engines computed the advantages {a:.6g} and {b:.6g}."
    if differs and not moved:
        why += " The gradient of its tokens differs."
    right, wrong = f"Right: {why[:1].lower()}{why[1:]}", why
    sentences = [wrong, right] if differs else [right, wrong]
    return {"focus": row, "differs": differs, "why": why, "said": sentences}


def _expected(comparison: Comparison) -> dict[str, Any]:
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    losses = {
        side: float(trace.loss)
        for side, trace in sides.items()
        if trace.loss is not None and math.isfinite(float(trace.loss))
    }
    advantages = {
        side: [
            value if math.isfinite(value) else "none"
            for value in trace.advantage.tolist()
        ]
        for side, trace in sides.items()
    }
    return {"advantages": advantages, "losses": losses}
