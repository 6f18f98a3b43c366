"""The bugs in a terminal: a list, and one explained."""

import textwrap
from collections.abc import Iterable

from gradebook.analysis.comparison import Comparison, compare
from gradebook.analysis.formula import worked
from gradebook.analysis.token_formula import worked_token
from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario, bug, load
from gradebook.cases.status import Status
from gradebook.core.formatting import signed
from gradebook.core.lazy_pandas import pd
from gradebook.output.panels import Panel, telling, token_panel


def bug_list() -> str:
    """Every bug: its name and title, and for each trainer the state of its report."""
    paragraphs = []
    for name in BUGS:
        record = bug(name)
        head = f"{name}: {record.title} ({record.standing})"
        paragraphs.append("\n".join([head, *_reports(record.status, "  ")]))
    return "\n\n".join(paragraphs)


def explain(name: str) -> str:
    """One bug: its claim, its tell-tale on the report's own batch as both
    engines compute it, whom it affects and the workaround.

    Raises GradebookError for a name that is not in BUGS.
    """
    record, case = bug(name), load(name)
    comparison = compare(record, case.batch())
    if case.lines == "row":
        panel = telling(comparison)
        places = [(row, 0) for row in range(len(case.rows))]
        formulas = worked(comparison, case.focus)
        focus = f"Row {case.focus}"
    else:
        panel, places = token_panel(comparison, case.lines)
        formulas = worked_token(comparison, case.focus, case.token)
        focus = f"Row {case.focus}, token {case.token}"
    formula = []
    for engine, lines in zip(case.engine_names, formulas):
        formula.append(f"{focus}, {engine}:")
        formula += ["  " + "".join(part.text for part in line) for line in lines]
    parts = [
        f"{record.title} ({record.standing})",
        _wrapped(case.claim),
        f"The {panel.title}:",
        _table(case, comparison, panel, places),
        "\n".join(formula),
        _wrapped(case.telltale.text, "Tell-tale: "),
        _wrapped(case.rule, "Rule: "),
        "\n".join(_reports(case.status, "Status: ")),
        _wrapped(case.affected.look, "Look for: "),
        _wrapped(case.affected.workaround, "Workaround: "),
        "\n".join(f"{source.label}: {source.url}" for source in case.sources),
    ]
    return "\n\n".join(filter(None, parts))


def _table(
    case: Scenario, comparison: Comparison, panel: Panel, places: list[tuple[int, int]]
) -> str:
    """A line for each row or token of `places`, with both engines' numbers."""
    rewards = comparison.batch.reward.tolist()
    rows = [row for row, _ in places]
    columns: dict[str, Iterable[object]] = {
        "row": rows,
        "prompt": [case.rows["prompt"][row] for row in rows],
        "reward": [f"{rewards[row]:g}" for row in rows],
    }
    if case.lines != "row":
        columns["token"] = [token for _, token in places]
    correct, faulty = case.engine_names
    columns[correct] = map(signed, panel.correct)
    columns[faulty] = map(signed, panel.faulty)
    return pd.DataFrame(columns).to_string(index=False)


def _reports(status: Iterable[Status], lead: str) -> list[str]:
    """The state of each report, in lines that begin with the lead."""
    return [
        _wrapped(f"{report.trainer} ({report.report}): {report.sentence}", lead)
        for report in status
    ]


def _wrapped(text: str, lead: str = "") -> str:
    # A terminal has 80 columns if nobody widened it.
    return textwrap.fill(lead + text, 78, subsequent_indent=" " * len(lead))
