"""Pytest file: the smallest failing step of a log as a test to keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gradebook.cases.fields import typed_settings
from gradebook.cases.rows import MOST_ROWS
from gradebook.cases.scenario import load
from gradebook.cases.state import State, start
from gradebook.core.errors import GradebookError
from gradebook.logs.explore import StepRows, step_rows
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.read.sources import Source
from gradebook.output.pytest_file import PytestFile, pytest_file

NO_LINK = "python -m gradebook check"


def failing_step(verdict: Verdict) -> object:
    """The step with the fewest rows of those that name a bug.

    Raises GradebookError where there is none.
    """
    frame = verdict.frame
    off = frame[frame["bug"] != ""] if len(frame) else frame
    if not len(off):
        raise GradebookError(
            key="step", expected="a step that names a suspect", found="none"
        )
    return off.sort_values("rows", kind="stable")["step"].iloc[0]


def state_of(rows: StepRows) -> State:
    """A bug page's state with these rows in it, under their settings.

    Raises GradebookError where no bug is named.
    """
    if not rows.bug:
        raise GradebookError(
            key="bug", expected="a step that names a suspect", found="none"
        )
    return replace(
        start(load(rows.bug)),
        table=rows.table,
        typed=typed_settings(rows.settings),
        row=rows.row,
    )


def test_file(
    paths: Iterable[str | Path | Source],
    verdict: Verdict,
    link: str = NO_LINK,
) -> PytestFile:
    """The smallest failing step as a test file that passes on a correct
    trainer and fails on this one. Raises GradebookError."""
    step = failing_step(verdict)
    return pytest_file(state_of(step_rows(paths, verdict, step, MOST_ROWS)), link)


test_file.__test__ = False  # type: ignore[attr-defined]
