"""A state as a scenario file, which a page opens as one of its cases."""

import hashlib
import math
from typing import Any

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.scenario import bug
from gradebook.cases.state import State, start
from gradebook.core.columns import COLUMNS
from gradebook.output.panels import summary, telling
from gradebook.output.rendering import rendered


def scenario_file(state: State) -> str:
    """The batch as a scenario file: saved in scenarios/ as <bug>-<name>.toml, it is a
    variant of the bug's page. Raises GradebookError if the batch cannot be read or no
    file can hold it, and unless the faulty engine has exactly one bug."""
    batch = state.batch()
    comparison = compare(bug(state.bug), batch)
    columns = state.table.values()
    if not bool(batch.eos.all()):
        columns["eos"] = batch.eos.tolist()
    if "mask" in columns:
        columns["mask"] = batch.mask.int().tolist()
    names = [name for name in COLUMNS if name in columns]
    cells = zip(*(columns[name] for name in names))
    rows, settings = [dict(zip(names, row)) for row in cells], dict(batch.settings)
    row = min(state.row, batch.rows - 1)
    differs, why = _question(comparison, row)
    right, wrong = f"Right: {why[:1].lower()}{why[1:]}", why
    return rendered(
        "scenario_file.toml.jinja",
        # 24 bits: of a hundred files, two have the same mark with chance 0.0003.
        mark=hashlib.sha256(repr((rows, settings)).encode()).hexdigest()[:6],
        bug=state.bug,
        case=state.scenario.title,
        edited=not state.same_batch(start(state.scenario)),
        agree=comparison.agree,
        summary=summary(telling(comparison)),
        rows=rows,
        settings=settings,
        focus=row,
        differs=differs,
        why=why,
        said=[wrong, right] if differs else [right, wrong],
        expected=_expected(comparison),
    )


def _expected(comparison: Comparison) -> dict[str, Any]:
    """What each engine computes: advantages, and the loss if it is a number."""
    expected: dict[str, Any] = {}
    for name in ("correct", "faulty"):
        trace = getattr(comparison, name)
        numbers = trace.advantage.tolist()
        expected[name] = [x if math.isfinite(x) else "none" for x in numbers]
        if trace.loss is not None and trace.loss.isfinite():
            expected[f"{name}_loss"] = float(trace.loss)
    return expected


def _question(comparison: Comparison, row: int) -> tuple[bool, str]:
    """The file's question is whether both engines treat the row differently: whether
    they do, and the numbers that show it."""
    correct, faulty = comparison.correct.advantage, comparison.faulty.advantage
    numbers = f"{float(correct[row]):.6g} and {float(faulty[row]):.6g}"
    why = f"The engines computed the advantages {numbers}."
    if comparison.differs("advantage")[row]:
        return True, why
    if comparison.differs("gradient")[row]:
        return True, f"{why} The gradient of its tokens differs."
    return False, why
