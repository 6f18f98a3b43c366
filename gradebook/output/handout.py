"""A bug on paper, as one HTML page that needs nothing else, and in a terminal."""

from __future__ import annotations

import textwrap
from typing import Any

import pandas as pd
from markupsafe import Markup

from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import beside, first_sentence, worked
from gradebook.bugs import BUGS
from gradebook.cases.scenario import bug, load
from gradebook.core.formatting import minus, pair, signed
from gradebook.output.figures import picture
from gradebook.output.panels import kind_of, panels, squashes, telling
from gradebook.output.rendering import rendered


def handout(bug_name: str) -> str:
    """The bug's page for A4 paper. Raises GradebookError for a name not in BUGS."""
    record, scenario = bug(bug_name), load(bug_name)
    comparison, row = compare(record, scenario.batch()), scenario.focus
    shown = panels(comparison, scenario.telltale.kind)
    panel, log = telling(shown), squashes(shown)
    columns = list(scenario.rows[0])
    results = map(pair, panel.correct, panel.faulty)
    body = [
        [str(number), *(_cell(cells[name]) for name in columns), *both]
        for number, (cells, both) in enumerate(zip(scenario.rows, results))
    ]
    prompts = [str(cells["prompt"]) for cells in scenario.rows]
    return rendered(
        "handout.html.jinja",
        scenario=scenario,
        names=scenario.engine_names,
        stage=record.stage,
        head=["row", *columns, *scenario.engine_names],
        body=body,
        numbers=[len(columns) + 1, len(columns) + 2],
        title=panel.title,
        symlog=log,
        pictures=[Markup(picture(panel, prompts, log)) for panel in shown],
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


# For a terminal


def bug_list() -> str:
    """Every bug: its name, title, trainers, status and affected versions."""
    return "\n\n".join(
        f"{name}: {bug(name).title} ({bug(name).standing})\n"
        + _wrapped(load(name).affected.versions, "  affects: ")
        for name in BUGS
    )


def explain(name: str) -> str:
    """One bug: its claim, its tell-tale on the report's own batch as both
    engines compute it, whom it affects and the workaround.

    Raises GradebookError for a name that is not in BUGS.
    """
    record, case = bug(name), load(name)
    comparison = compare(record, case.batch())
    panel = telling(panels(comparison, kind_of(comparison)))
    right, wrong = case.engine_names
    columns = {
        "row": range(len(case.rows)),
        "prompt": [row["prompt"] for row in case.rows],
        "reward": [f"{value:g}" for value in comparison.batch.reward.tolist()],
        right: map(signed, panel.correct),
        wrong: map(signed, panel.faulty),
    }
    formula = []
    for engine, lines in zip(case.engine_names, worked(comparison, case.focus)):
        formula.append(f"Row {case.focus}, {engine}:")
        formula += ["  " + "".join(part.text for part in line) for line in lines]
    parts = [
        f"{record.title} ({record.standing})",
        _wrapped(case.claim),
        _wrapped(case.status_note),
        f"The {panel.title}:",
        pd.DataFrame(columns).to_string(index=False),
        "\n".join(formula),
        _wrapped(case.telltale.text, "Tell-tale: "),
        _wrapped(case.rule, "Rule: "),
        _wrapped(case.affected.versions, "Affected: "),
        _wrapped(case.affected.look, "Look for: "),
        _wrapped(case.affected.workaround, "Workaround: "),
        "\n".join(f"{s.label}: {s.url}" for s in case.sources),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, lead: str = "") -> str:
    return textwrap.fill(lead + text, 78, subsequent_indent=" " * len(lead))
