"""Everything a learner can change on a page, as one value.

A state is never changed, only replaced: undo is going back to an older one,
and a link is a state written down. A state on a page is a valid batch: an edit
that makes none is refused (gradebook.cases.draft).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gradebook.cases.fields import FIELDS, SETTINGS, read_settings
from gradebook.cases.scenario import Scenario
from gradebook.cases.table import Table
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings


@dataclass(frozen=True, eq=False)
class State:
    """A case as the learner has changed it, cells and settings as typed.

    table  the batch (gradebook.cases.table)
    typed  every setting: text for numbers, '' for none
    row    the selected row
    bugs   what the faulty engine has; on a bug's page that bug
    """

    scenario: Scenario
    table: Table
    typed: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    bugs: tuple[str, ...] = ()

    @property
    def bug(self) -> str:
        """The one bug of the faulty engine. Raises GradebookError where
        there is none, or more."""
        if len(self.bugs) != 1:
            raise GradebookError(
                key="bugs",
                expected="exactly one bug",
                found=" and ".join(self.bugs) or "none",
            )
        return self.bugs[0]

    @property
    def engine_names(self) -> tuple[str, str]:
        """What the engines are called, correct and faulty.

        EOS found by the padded width may flag a row that has ended. Both
        engines believe the flags then, so their names say no more than that.
        """
        if self.get("eos_by_width"):
            return "correct by the flags", "faulty by the flags"
        correct, faulty = self.scenario.engine_names
        return correct, faulty

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.table)

    def get(self, name: str) -> Any:
        """The value of a field (gradebook.cases.fields) by its name."""
        if FIELDS[name].setting:
            return self.typed.get(name, FIELDS[name].default(self.scenario))
        return getattr(self, name)

    def settings(self) -> Settings:
        """The settings as typed. Raises GradebookError naming one."""
        return read_settings(self.typed, self.scenario.settings)

    def batch(self) -> Batch:
        """The table as a batch. Raises GradebookError with its place."""
        return self.table.batch(self.settings())

    def same_batch(self, other: State) -> bool:
        """Equal but for the selected row."""
        return (
            self.scenario.name == other.scenario.name
            and dict(self.typed) == dict(other.typed)
            and self.bugs == other.bugs
            and self.table == other.table
        )

    def same(self, other: State) -> bool:
        """Equal in everything."""
        return self.row == other.row and self.same_batch(other)


@lru_cache(maxsize=256)
def start(scenario: Scenario) -> State:
    """The state that says what the scenario says."""
    found = {
        name: field.default(scenario)
        for name, field in FIELDS.items()
        if not field.setting
    }
    typed = {name: FIELDS[name].default(scenario) for name in SETTINGS}
    return State(scenario, Table.of(scenario.rows), typed, **found)
