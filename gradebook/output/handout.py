"""A bug on paper, as one HTML page that needs nothing else."""

from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import beside, first_sentence, worked
from gradebook.cases.scenario import bug, load
from gradebook.core.formatting import minus, pair
from gradebook.output.axes import unit_of
from gradebook.output.figures import picture
from gradebook.output.panels import panels, telling
from gradebook.output.rendering import rendered


def handout(bug_name: str) -> str:
    """The bug's page for A4 paper. Raises GradebookError for a name not in BUGS."""
    record, scenario = bug(bug_name), load(bug_name)
    comparison, row = compare(record, scenario.batch()), scenario.focus
    shown = panels(comparison, scenario.telltale.kind)
    panel = telling(comparison, scenario.telltale.kind)
    columns = scenario.rows.values()
    if "mask" in columns:
        columns["mask"] = [list(map(int, mask)) for mask in columns["mask"]]
    results = map(pair, panel.correct, panel.faulty)
    body = [
        [str(number), *map(_cell, cells), *both]
        for number, (cells, both) in enumerate(zip(zip(*columns.values()), results))
    ]
    return rendered(
        "handout.html.jinja",
        scenario=scenario,
        names=scenario.engine_names,
        stage=record.stage,
        head=["row", *columns, *scenario.engine_names],
        body=body,
        numbers=[len(columns) + 1, len(columns) + 2],
        title=panel.title,
        bent=any(unit_of(panel.finite) for panel in shown),
        pictures=[Markup(picture(panel, columns["prompt"])) for panel in shown],
        worked=worked(comparison, row),
        says=[first_sentence(f) for f in (record.correct, record.faulty)],
        listings=beside(record.correct, record.faulty),
    )


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if len({*value}) == 1 and isinstance(value[0], float):
            return f"{len(value)} × {_cell(value[0])}"
        return " ".join(_cell(v) for v in value)
    return minus(f"{value:.4g}") if isinstance(value, float) else str(value)
