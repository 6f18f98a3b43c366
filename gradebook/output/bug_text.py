"""The bugs as text, for a terminal: a list, and one bug explained."""

from __future__ import annotations

import textwrap

from torch import Tensor

from gradebook.analysis.comparison import Comparison, compare
from gradebook.analysis.formula import worked
from gradebook.cases.record import BUGS, bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import signed

WIDTH = 78


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
    record = bug(name)
    case = load(name)
    comparison = compare(record, case.batch())
    formula = []
    for engine, lines in zip(case.engine_names, worked(comparison, case.focus)):
        formula.append(f"Row {case.focus}, {engine}:")
        formula += ["  " + "".join(part.text for part in line) for line in lines]
    parts = [
        f"{record.title} ({record.standing})",
        _wrapped(case.claim),
        _wrapped(case.status_note),
        _table(case, comparison),
        "\n".join(formula),
        _wrapped(case.telltale.text, "Tell-tale: "),
        _wrapped(case.rule, "Rule: "),
        _wrapped(case.affected.versions, "Affected: "),
        _wrapped(case.affected.look, "Look for: "),
        _wrapped(case.affected.workaround, "Workaround: "),
        "\n".join(f"{s.label}: {s.url}" for s in case.sources),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(case: Scenario, comparison: Comparison) -> str:
    """Row, prompt, reward and both engines' advantages, and the gradients
    where the advantages agree."""
    batch, (right, wrong) = comparison.batch, case.engine_names
    columns = {
        "row": [str(row) for row in range(batch.rows)],
        "prompt": [str(row["prompt"]) for row in case.rows],
        "reward": [f"{value:g}" for value in batch.reward.tolist()],
        right: _numbers(comparison.correct.advantage),
        wrong: _numbers(comparison.faulty.advantage),
    }
    if not bool(comparison.differs("advantage").any()):
        for name, trace in (
            (right, comparison.correct),
            (wrong, comparison.faulty),
        ):
            if trace.gradient is not None:
                columns[f"gradient, {name}"] = _numbers(trace.gradient.sum(-1))
    widths = [max(len(name), *map(len, cells)) for name, cells in columns.items()]
    lines = [list(columns), *zip(*columns.values())]
    return "\n".join(
        "  ".join(cell.rjust(w) for cell, w in zip(line, widths)) for line in lines
    )


def _numbers(values: Tensor) -> list[str]:
    return [signed(value) for value in values.tolist()]


def _wrapped(text: str, lead: str = "") -> str:
    return textwrap.fill(lead + text, WIDTH, subsequent_indent=" " * len(lead))
