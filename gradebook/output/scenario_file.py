"""A state as a scenario file, which a page opens as one of its cases."""

from __future__ import annotations

import hashlib
import math

from gradebook.analysis.comparison import compare
from gradebook.cases.scenario import bug
from gradebook.cases.schema import MOST_ROWS, MOST_TOKENS
from gradebook.cases.state import State, start
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
    columns = state.table.values()
    if not bool(batch.eos.all()):
        columns["eos"] = batch.eos.tolist()
    if "mask" in columns:
        columns["mask"] = batch.mask.int().tolist()
    names = [name for name in COLUMNS if name in columns]
    cells = zip(*(columns[name] for name in names))
    rows, settings = [dict(zip(names, row)) for row in cells], dict(batch.settings)
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    losses = {
        side: float(trace.loss)
        for side, trace in sides.items()
        if trace.loss is not None and math.isfinite(float(trace.loss))
    }
    advantages = {
        side: [x if math.isfinite(x) else "none" for x in trace.advantage.tolist()]
        for side, trace in sides.items()
    }
    # The question: whether both engines treat the selected row alike.
    row = min(state.row, batch.rows - 1)
    moved = bool(comparison.differs("advantage")[row])
    differs = moved or bool(comparison.gradient_differs[row])
    a, b = (float(trace.advantage[row]) for trace in sides.values())
    why = f"The engines computed the advantages {a:.6g} and {b:.6g}."
    if differs and not moved:
        why += " The gradient of its tokens differs."
    right, wrong = f"Right: {why[:1].lower()}{why[1:]}", why
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
        focus=row,
        differs=differs,
        why=why,
        said=[wrong, right] if differs else [right, wrong],
        advantages=advantages,
        losses=losses,
    )
    return text
