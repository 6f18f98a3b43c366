"""A step of a log on a bug's page, to be edited there."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError
from gradebook.logs.pytest_file import state_of
from gradebook.logs.verdict.explore import StepRows, step_rows
from gradebook.ui import keys
from gradebook.ui.checks.checking import Checking
from gradebook.ui.parts import drafts, predict
from gradebook.ui.parts.shell import bug_files


def rows_of(checking: Checking, step: object) -> StepRows:
    """The step's rows, read once. Raises GradebookError."""
    assert checking.verdict is not None
    if step not in checking.rows:
        found = step_rows(checking.files, checking.verdict, step)
        checking.rows[step] = found
    return checking.rows[step]


def open_step(checking: Checking, step: object, name: str) -> None:
    """Goes to the page of the bug `name`, with the step's rows in the
    learner's own draft. The page says what it shows."""
    try:
        rows = rows_of(checking, step)
    except GradebookError as error:
        checking.error = str(error)
        return
    draft = drafts.own_of(load(name))
    draft.become(state_of(replace(rows, bug=name)))
    said = f"These rows are step {step} of {checking.title}."
    draft.notes = [f"{said} {rows.note}".strip()]
    keys.CASES.get()[name] = name
    keys.OPENED.put(said)
    if predict.covered(name):
        predict.answer(name, predict.SKIPPED)
    st.switch_page(bug_files()[name])
