"""Challenges as data: what may be edited, what must come out, a solution.

The parts here are read from scenario files; gradebook.analysis.challenges
judges by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainValidator

from gradebook.cases.columns import COLUMNS
from gradebook.cases.conditions import (
    CONDITIONS,
    Condition,
    SettingName,
    check_setting_value,
)
from gradebook.cases.rows import read_cells, read_value
from gradebook.cases.schema import (
    Count,
    Flag,
    Part,
    Text,
    between,
    check_index,
    check_keys,
    each_once,
    one_of,
    part_by,
    read,
    under,
)
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings

Column = Annotated[str, one_of(*COLUMNS)]


@dataclass(frozen=True)
class Edits(Part):
    """What a challenge lets the learner edit; nothing else may change.

    columns   columns whose cells may change; "any" stands for all of them
    rows      the only rows whose cells may change; without it every row
    settings  settings that may change; "any" stands for all of them
    most      how many edits there may be at most: cells that changed,
              settings that changed, rows added and removed; 0 for no limit
    alike     the cells of a prompt's rows change by one and the same number
    add, remove, reorder  rows may be added, removed, put in another order
    """

    columns: tuple[Annotated[str, one_of("any", *COLUMNS)], ...] = ()
    rows: tuple[Count, ...] = ()
    settings: tuple[Annotated[str, one_of("any", *Settings().keys())], ...] = ()
    most: Count = 0
    alike: Flag = False
    add: Flag = False
    remove: Flag = False
    reorder: Flag = False

    def __post_init__(self) -> None:
        some = (self.columns, self.settings, self.add, self.remove)
        if not any((*some, self.reorder)):
            raise GradebookError(
                expected="columns, settings, add, remove or reorder",
                found="none of them",
            )


# A solution


@dataclass(frozen=True)
class Cell(Part):
    """A change of a solution: one row's value, as a row gives it."""

    row: Count
    column: Column
    value: Any

    def __post_init__(self) -> None:
        try:
            value = read_value(self.column, self.value)
        except GradebookError as error:
            raise under(error, "value") from None
        object.__setattr__(self, "value", value)

    def changed(self, table: Table) -> Table:
        """The table with the cell. Raises GradebookError with its key."""
        check_index("row", self.row, len(table), "rows")
        if self.column not in table.columns:
            columns = ", ".join(table.columns)
            raise refuse(f"one of {columns}", self.column, "column")
        new = table.with_cell(self.row, self.column, self.value)
        for error in new.problems():
            raise error.at(key="value", row=None)
        return new


@dataclass(frozen=True)
class Setting(Part):
    """A change of a solution: one setting."""

    setting: SettingName
    value: Any

    def __post_init__(self) -> None:
        check_setting_value(self.setting, self.value, "value")


@dataclass(frozen=True)
class AddRow(Part):
    """A change of a solution: a row at the end."""

    add_row: dict[str, Any]

    def __post_init__(self) -> None:
        try:
            check_keys(self.add_row, COLUMNS)
            object.__setattr__(self, "add_row", read_cells(self.add_row))
        except GradebookError as error:
            raise under(error, "add_row") from None

    def changed(self, table: Table) -> Table:
        """The table with the row. Raises GradebookError with its key."""
        try:
            return table.joined(Table.of([self.add_row]))
        except GradebookError as error:
            raise error.at(key="add_row") from None


@dataclass(frozen=True)
class RemoveRow(Part):
    """A change of a solution: a row taken out; those below move up."""

    remove_row: Count

    def changed(self, table: Table) -> Table:
        """The table without the row. Raises GradebookError with its key."""
        check_index("remove_row", self.remove_row, len(table), "rows")
        if len(table) == 1:
            raise refuse("a row to be left", 0, "remove_row")
        return table.take(r for r in range(len(table)) if r != self.remove_row)


@dataclass(frozen=True)
class Order(Part):
    """A change of a solution: the rows in another order, each by its number
    before."""

    order: Annotated[tuple[Count, ...], between(1, 1000), each_once]

    def changed(self, table: Table) -> Table:
        """The table in this order. Raises GradebookError with its key."""
        if sorted(self.order) != [*range(len(table))]:
            numbers = f"each of 0 to {len(table) - 1} once"
            raise refuse(numbers, self.order, "order")
        return table.take(self.order)


CHANGES: Mapping[str, type] = {
    "row": Cell,
    "setting": Setting,
    "add_row": AddRow,
    "remove_row": RemoveRow,
    "order": Order,
}
"""The changes of a solution, by the key that tells them apart."""


def _change(value: Any) -> Any:
    if isinstance(value, tuple(CHANGES.values())):
        return value
    if not isinstance(value, dict):
        raise refuse("a table", value)
    for key, part in CHANGES.items():
        if key in value:
            return read(part, value)
    raise GradebookError(
        expected="one of " + ", ".join(CHANGES),
        found=", ".join(value) or "nothing",
    )


Change = Annotated[Cell | Setting | AddRow | RemoveRow | Order, PlainValidator(_change)]


@dataclass(frozen=True)
class Challenge(Part):
    """Something to try on the batch.

    edits     what may be edited; without it anything
    solved    conditions that must all hold
    solution  changes that, in order, are one way to pass it
    insight   one sentence shown when it is solved
    """

    title: Text
    goal: Text
    solved: Annotated[
        tuple[Annotated[Condition, part_by("kind", CONDITIONS)], ...],
        between(1),
    ]
    solution: Annotated[tuple[Change, ...], between(1)]
    edits: Edits | None = None
    hint: Text = ""
    insight: Text = ""
