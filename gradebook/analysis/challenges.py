"""Challenges: what a learner tries on a batch, and whether it is solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gradebook.analysis.attempt import Attempt, overstepped
from gradebook.analysis.comparison import Comparison
from gradebook.analysis.conditions import missing
from gradebook.cases import edits
from gradebook.cases.challenge import Challenge, Change, RemoveRow, Setting
from gradebook.cases.fields import typed_setting
from gradebook.cases.state import State


class Verdict(NamedTuple):
    """Whether a challenge is solved; if not, what is still missing."""

    solved: bool
    missing: str


def judge(
    challenge: Challenge, now: State, comparison: Comparison | None = None
) -> Verdict:
    """Whether `now` solves the challenge of its scenario.

    `comparison` is both engines on `now`; without it they are run. Raises
    GradebookError where the state cannot be read or run.
    """
    attempt = Attempt(now, comparison)
    if not attempt.batch.rows:
        return Verdict(False, "There are no rows.")
    if challenge.edits is not None:
        beyond = overstepped(challenge.edits, attempt.changes)
        if beyond:
            return Verdict(False, beyond)
    for condition in challenge.solved:
        sentence = missing(condition, attempt)
        if sentence:
            return Verdict(False, sentence)
    return Verdict(True, "")


def apply_solution(state: State, changes: Sequence[Change]) -> State:
    """The state after the changes, in order. Raises GradebookError for a
    row that is not there."""
    for change in changes:
        if isinstance(change, Setting):
            typed = typed_setting(change.setting, change.value)
            state = edits.set_setting(state, change.setting, typed)
        elif isinstance(change, RemoveRow):
            state = edits.remove_row(state, change.remove_row)
        else:
            state = replace(state, table=change.changed(state.table))
    return state
