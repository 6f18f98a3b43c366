"""A bug on paper: one HTML page that needs nothing else."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import Comparison, compare, row_weight
from gradebook.analysis.formula import worked
from gradebook.analysis.source import beside, first_sentence
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import pair, settled, signed
from gradebook.engine.pipeline import Trace
from gradebook.output.figures import picture
from gradebook.output.panels import Panel, panels, squashes, telling
from gradebook.output.rendering import rendered


def handout(bug_name: str) -> str:
    """The bug's page as HTML for A4 paper.

    Raises GradebookError for a name not in BUGS.
    """
    record = bug(bug_name)
    scenario = load(bug_name)
    comparison = compare(record, scenario.batch())
    shown = panels(comparison, scenario.telltale.kind)
    log = squashes(shown)
    prompts = [str(row["prompt"]) for row in scenario.rows]
    sides = zip(
        worked(comparison, scenario.focus),
        (comparison.correct, comparison.faulty),
    )
    return rendered(
        "handout.html.jinja",
        scenario=scenario,
        names=scenario.engine_names,
        stage=record.stage,
        batch=_batch(scenario, telling(shown)),
        symlog=log,
        pictures=[Markup(picture(panel, prompts, log)) for panel in shown],
        worked=[
            {
                "lines": side,
                "gradient": _gradient(comparison, trace, scenario.focus),
            }
            for side, trace in sides
        ],
        says=[first_sentence(f) for f in (record.correct, record.faulty)],
        listings=beside(record.correct, record.faulty),
    )


def _batch(scenario: Scenario, panel: Panel) -> dict[str, Any]:
    columns = list(scenario.rows[0])
    pairs = [pair(*ab) for ab in zip(panel.correct, panel.faulty)]
    return {
        "head": ["row", *columns, *scenario.engine_names],
        "rows": [
            [str(r), *(_cell(row[name]) for name in columns), *both]
            for r, (row, both) in enumerate(zip(scenario.rows, pairs))
        ],
        "numbers": [len(columns) + 1, len(columns) + 2],
        "title": panel.title,
    }


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if len({*value}) == 1 and isinstance(value[0], float):
            return f"{len(value)} × {_cell(value[0])}"
        return " ".join(_cell(v) for v in value)
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return str(value)


def _gradient(comparison: Comparison, trace: Trace, row: int) -> dict[str, str] | None:
    """The KL part at the row's first unmasked token, worked out."""
    batch = comparison.batch
    if trace.kl_gradient is None or batch.ref_logp is None:
        return None
    if not bool(trace.trained[row]):
        return {"text": "KL part: 0, the row is not trained", "value": ""}
    token = int(batch.mask[row].int().argmax())
    gap = float(batch.ref_logp[row, token] - batch.logp[row, token])
    weight = row_weight(batch, trace, row)
    value = settled(float(trace.kl_gradient[row, token]))
    text = (
        "KL part at a token: β (1 − exp(ref − logp)) × weight ="
        f" {batch.settings.beta:g} × (1 − exp({signed(gap)})) × {weight:.3f}"
    )
    return {"text": text, "value": signed(value, 5)}
