"""The learner's draft of a scenario: its state, and the states before.

A draft lives in the session, so it outlives page switches, and no edit is
ever lost: a bad cell stays as typed until it is mended or undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pandas as pd
import streamlit as st

from gradebook.compare import Comparison
from gradebook.scenario import Scenario
from gradebook.state import State, start
from gradebook.ui import words

HISTORY = 200


@dataclass
class Draft:
    """The states of one scenario in one session.

    good   the comparison of the last state that could be computed
    own    the comparison of the scenario's own batch under these bugs
    done   the last state that was looked at; `faults` is what was wrong
    notes  what was wrong with the last pasted block

    Counters stand in the keys of widgets. A browser sends all of its
    widgets' values with each message, also those that the server has
    changed meanwhile; with another key, such a value belongs to nobody and
    is not taken for an edit. (Nor is one that is what its widget showed.)

    revision  changes made from outside the grid
    outside   changes made from outside the selected row's widgets
    pointed   rows selected from outside the row's number, and from outside
              the map's two
    moves     changes made from outside the history's slider
    """

    scenario: Scenario
    states: list[State]
    at: int = 0
    revision: int = 0
    outside: int = 0
    pointed: dict[str, int] = field(
        default_factory=lambda: {"number": 0, "map": 0}
    )
    moves: int = 0
    estimator: str = ""
    seed: int = -1
    good: Comparison | None = None
    own: Comparison | None = None
    done: State | None = None
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

    def key(self, part: str) -> str:
        """The grid's key: new after each change made from outside it."""
        return f"{part}-{self.scenario.name}-{self.revision}"

    def place(self, part: str, *counts: int) -> str:
        """A widget's key, with counters or the row that it is about."""
        at = "-".join(map(str, (self.outside, *counts)))
        return f"{part}-{self.scenario.name}-at-{at}"

    def edit(self, **changes: Any) -> None:
        """The next state; one that changes the batch can be undone."""
        new = replace(self.state, **changes)
        if new.same_batch(self.state):
            self.states[self.at] = new
            return
        if new.bugs != self.state.bugs:
            self.own = None
        self.states = [*self.states[: self.at + 1], new][-HISTORY:]
        self.at = len(self.states) - 1
        self.moves += 1

    def become(self, state: State) -> None:
        """Another state of the same scenario, as one more edit."""
        names = (f.name for f in fields(State))
        self.edit(**{name: getattr(state, name) for name in names})
        self.renewed()

    def select(self, row: int, by: str = "") -> None:
        """Another row is selected, as near as there is one."""
        last = len(self.table) - 1
        row = max(0, min(row, last))
        if row != self.row:
            for name in self.pointed:
                self.pointed[name] += name != by
        self.edit(row=row)

    def go(self, at: int, by_slider: bool = False) -> None:
        """The state number `at` of the history."""
        before = self.state.bugs
        self.at = max(0, min(at, len(self.states) - 1))
        if before != self.state.bugs:
            self.own = None
        self.moves += not by_slider
        self.renewed()

    def renewed(self) -> None:
        """The grid and the row's widgets take the state's cells again."""
        self.revision += 1
        self.outside += 1

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
    draft.notes = []
