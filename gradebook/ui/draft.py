"""What the learner changed: one draft per scenario, kept in the session.

A draft outlives page switches, and holds cells and settings as they were
typed, so that a bad value is never lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import streamlit as st

from gradebook import table as cells
from gradebook.batch import Batch
from gradebook.compare import Comparison
from gradebook.errors import GradebookError
from gradebook.scenario import Scenario
from gradebook.settings import CHOICES, FLAGS, MAY_BE_NONE, Settings
from gradebook.trainer import NORMALIZATIONS, eos_by_width
from gradebook.ui import words

WHOLE = ("group_size", "max_tokens", "accumulation", "min_group_size")


@dataclass
class Draft:
    """A scenario under the learner's hands."""

    scenario: Scenario
    table: pd.DataFrame
    typed: dict[str, Any]
    row: int
    revision: int = 0
    seed: int = -1
    estimator: str = ""
    detector: bool = False
    normalization: str = NORMALIZATIONS[-1]
    evaluation: bool = False
    training_guard: bool = False
    good: Comparison | None = None
    notes: list[str] = field(default_factory=list)

    def key(self, part: str) -> str:
        """A widget's key: new after each change made from outside it."""
        return f"{part}-{self.scenario.name}-{self.revision}"

    def renewed(self) -> None:
        """Widgets take their values from the draft again."""
        self.revision += 1

    def settings(self) -> Settings:
        """The settings as typed. Raises GradebookError naming one."""
        return read_settings(self.typed, self.scenario.settings)

    def batch(self) -> Batch:
        """The table as a batch. Raises GradebookError with its place."""
        batch = cells.to_batch(self.table, self.settings())
        if self.detector:
            batch = replace(batch, eos=eos_by_width(batch))
        return batch

    def wrong(self) -> list[str]:
        """Every cell and setting that cannot be read, in words."""
        said = [words.place(error) for error in cells.problems(self.table)]
        for name, text in self.typed.items():
            try:
                read_settings({name: text}, self.scenario.settings)
            except GradebookError as error:
                said.append(words.place(error))
        return said

    @property
    def edited(self) -> bool:
        """The table or a setting is not the scenario's."""
        table = self.scenario.table()
        typed = typed_settings(self.scenario.settings)
        same = self.table.equals(table) and self.typed == typed
        return not same or self.detector != self.scenario.eos_by_width


def of(scenario: Scenario) -> Draft:
    """The session's draft of the scenario, made at the first visit."""
    drafts = st.session_state.setdefault("drafts", {})
    if scenario.name not in drafts:
        drafts[scenario.name] = fresh(scenario)
    return drafts[scenario.name]


def reset(scenario: Scenario) -> None:
    """Back to the scenario's own table and settings."""
    old = of(scenario)
    new = fresh(scenario)
    new.revision = old.revision + 1
    st.session_state["drafts"][scenario.name] = new


def fresh(scenario: Scenario) -> Draft:
    """A draft that says what the scenario says."""
    return Draft(
        scenario=scenario,
        table=scenario.table(),
        typed=typed_settings(scenario.settings),
        row=scenario.focus,
        detector=scenario.eos_by_width,
    )


def typed_settings(settings: Settings) -> dict[str, Any]:
    """Settings as a person types them: numbers as text, none as ''."""
    typed: dict[str, Any] = {}
    for name in settings.keys():
        value = settings[name]
        if name in CHOICES or name in FLAGS:
            typed[name] = value
        elif isinstance(value, float):
            typed[name] = f"{value:g}" if float(f"{value:g}") == value else (
                repr(value)
            )
        else:
            typed[name] = cells.as_text(value)
    return typed


def read_settings(typed: dict[str, Any], base: Settings) -> Settings:
    """Typed settings laid over `base`. Raises GradebookError naming one."""
    return replace(base, **{n: read_setting(n, v) for n, v in typed.items()})


def read_setting(name: str, value: Any) -> Any:
    """One typed setting's value. Raises GradebookError naming it."""
    if name in CHOICES or name in FLAGS:
        return value
    if name in MAY_BE_NONE and not str(value).strip():
        return None
    try:
        return cells.whole(value) if name in WHOLE else cells.number(value)
    except GradebookError as error:
        raise GradebookError(
            key=name, expected=error.expected, found=error.found
        ) from None
