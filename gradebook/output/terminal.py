"""The bugs in a terminal: a list, and one explained."""

import textwrap
from collections.abc import Iterable

from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import worked
from gradebook.analysis.token_formula import worked_token
from gradebook.bugs import BUGS
from gradebook.cases.scenario import bug, load
from gradebook.core.formatting import signed
from gradebook.core.lazy_pandas import pd
from gradebook.output.panels import telling, token_panel


def bug_list() -> str:
    """Every bug: its name and title, and for each trainer the state of its report."""
    return "\n\n".join(
        f"{name}: {bug(name).title} ({bug(name).standing})\n"
        + "\n".join(
            _wrapped(f"{report.trainer} ({report.report}): {report.sentence}", "  ")
            for report in bug(name).status
        )
        for name in BUGS
    )


def explain(name: str) -> str:
    """One bug: its claim, its tell-tale on the report's own batch as both
    engines compute it, whom it affects and the workaround.

    Raises GradebookError for a name that is not in BUGS.
    """
    record, case = bug(name), load(name)
    comparison = compare(record, case.batch())
    by_token = case.lines != "row"
    if by_token:
        panel, places = token_panel(comparison, case.lines)
        sides = worked_token(comparison, case.focus, case.token)
    else:
        panel = telling(comparison)
        places = [(row, 0) for row in range(len(case.rows))]
        sides = worked(comparison, case.focus)
    right, wrong = case.engine_names
    rewards = [f"{value:g}" for value in comparison.batch.reward.tolist()]
    columns: dict[str, Iterable[object]] = {
        "row": [row for row, _ in places],
        "prompt": [case.rows["prompt"][row] for row, _ in places],
        "reward": [rewards[row] for row, _ in places],
        **({"token": [token for _, token in places]} if by_token else {}),
        right: map(signed, panel.correct),
        wrong: map(signed, panel.faulty),
    }
    formula, token = [], f", token {case.token}" if by_token else ""
    for engine, lines in zip(case.engine_names, sides):
        formula.append(f"Row {case.focus}{token}, {engine}:")
        formula += ["  " + "".join(part.text for part in line) for line in lines]
    parts = [
        f"{record.title} ({record.standing})",
        _wrapped(case.claim),
        f"The {panel.title}:",
        pd.DataFrame(columns).to_string(index=False),
        "\n".join(formula),
        _wrapped(case.telltale.text, "Tell-tale: "),
        _wrapped(case.rule, "Rule: "),
        "\n".join(
            _wrapped(
                f"{report.trainer} ({report.report}): {report.sentence}", "Status: "
            )
            for report in case.status
        ),
        _wrapped(case.affected.look, "Look for: "),
        _wrapped(case.affected.workaround, "Workaround: "),
        "\n".join(f"{s.label}: {s.url}" for s in case.sources),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, lead: str = "") -> str:
    return textwrap.fill(lead + text, 78, subsequent_indent=" " * len(lead))
