"""The learner's draft of a scenario: its state, and the states before.

A draft lives in the session, so it outlives page switches, and no edit is
ever lost: a bad cell stays as typed until it is mended or undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import State, start
from gradebook.core.lazy_pandas import pd
from gradebook.ui.parts import words

HISTORY = 200


@dataclass
class Draft:
    """The states of one scenario in one session.

    good   the comparison of the last state that could be computed
    own    the comparison of the scenario's own batch under these bugs
    done   the last state that was looked at; `faults` is what was wrong
    drawn  the last state that the page was drawn with
    notes  what was wrong with the last pasted block
    """

    scenario: Scenario
    states: list[State]
    at: int = 0
    estimator: str = ""
    seed: int = -1
    good: Comparison | None = None
    own: Comparison | None = None
    done: State | None = None
    drawn: State | None = None
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def state(self) -> State:
        """What stands on the page now."""
        return self.states[self.at]

    @property
    def table(self) -> pd.DataFrame:
        """The batch as a table. Not to be changed in place."""
        return self.state.table

    @property
    def row(self) -> int:
        """The selected row."""
        return self.state.row

    def named(self, part: str) -> str:
        """The name of a widget that shows a part of this draft."""
        return f"{part}-{self.scenario.name}"

    def edit(self, **changes: Any) -> None:
        """The next state; one that changes the batch can be undone."""
        new = replace(self.state, **changes)
        if new.same_batch(self.state):
            self.states[self.at] = new
            return
        if new.bugs != self.state.bugs:
            self.own = None
        first, *rest = [*self.states[: self.at + 1], new]
        self.states = [first, *rest[1 - HISTORY :]]
        self.notes = []
        self.at = len(self.states) - 1

    def become(self, state: State) -> None:
        """Another state of the same scenario, as one more edit."""
        names = (f.name for f in fields(State))
        self.edit(**{name: getattr(state, name) for name in names})

    def select(self, row: int) -> None:
        """Another row is selected, as near as there is one."""
        row = max(0, min(row, self.state.rows - 1))
        if row != self.row:
            self.edit(row=row)

    def go(self, at: int) -> None:
        """The state number `at` of the history."""
        before = self.state.bugs
        self.at = max(0, min(at, len(self.states) - 1))
        if before != self.state.bugs:
            self.own = None

    def wrong(self) -> list[str]:
        """Every cell and setting that cannot be read, in words."""
        return [words.place(error) for error in self.state.problems()]

    @property
    def edited(self) -> bool:
        """The state is not the scenario's own."""
        return not self.state.same_batch(self.origin)

    @cached_property
    def origin(self) -> State:
        """The scenario's own state."""
        return start(self.scenario)


def of(scenario: Scenario) -> Draft:
    """The session's draft of the scenario, made at the first visit."""
    drafts = st.session_state.setdefault("drafts", {})
    if scenario.name not in drafts:
        drafts[scenario.name] = Draft(scenario, [start(scenario)])
    return drafts[scenario.name]


def reset(draft: Draft) -> None:
    """Back to the scenario's own state, as one more edit."""
    draft.become(draft.origin)
    draft.seed = -1
