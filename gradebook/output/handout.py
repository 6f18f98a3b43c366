"""A bug on paper, as one HTML page that needs nothing else."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import beside, first_sentence, worked
from gradebook.analysis.token_formula import worked_token
from gradebook.cases.scenario import bug, load
from gradebook.core.formatting import minus, pair
from gradebook.output.axes import unit_of
from gradebook.output.figures import picture
from gradebook.output.panels import Panel, panels, telling, token_panel
from gradebook.output.rendering import rendered


def handout(bug_name: str) -> str:
    """The bug's page for A4 paper. Raises GradebookError for a name not in BUGS."""
    record, scenario = bug(bug_name), load(bug_name)
    comparison, row = compare(record, scenario.batch()), scenario.focus
    by_token = scenario.lines != "row"
    columns = scenario.rows.values()
    if "mask" in columns:
        columns["mask"] = [list(map(int, mask)) for mask in columns["mask"]]
    if by_token:
        panel, places = token_panel(comparison, scenario.lines)
        shown, results = [panel], _of_rows(panel, places, len(scenario.rows))
        groups = [str(p[scenario.lines == "position"]) for p in places]
        labels = [f"row {row}, token {token}" for row, token in places]
        formula = worked_token(comparison, row, scenario.token)
    else:
        shown = panels(comparison, scenario.telltale.kind)
        panel = telling(comparison, scenario.telltale.kind)
        results = [*map(pair, panel.correct, panel.faulty)]
        groups, labels, formula = columns["prompt"], None, worked(comparison, row)
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
        pictures=[Markup(picture(panel, groups, labels=labels)) for panel in shown],
        line="token" if by_token else "row",
        at=f"row {row}, token {scenario.token}" if by_token else f"row {row}",
        worked=formula,
        says=[first_sentence(f) for f in (record.correct, record.faulty)],
        listings=beside(record.correct, record.faulty),
    )


def _of_rows(
    panel: Panel, places: Sequence[tuple[int, int]], rows: int
) -> list[tuple[str, str]]:
    """Both engines' numbers of each row's tokens, in a cell each."""
    cells: list[tuple[list[str], list[str]]] = [([], []) for _ in range(rows)]
    for (row, _), right, wrong in zip(places, panel.correct, panel.faulty):
        for cell, text in zip(cells[row], pair(right, wrong)):
            cell.append(text)
    return [(" ".join(a), " ".join(b)) for a, b in cells]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if len({*value}) == 1 and isinstance(value[0], float):
            return f"{len(value)} × {_cell(value[0])}"
        return " ".join(_cell(v) for v in value)
    return minus(f"{value:.4g}") if isinstance(value, float) else str(value)
