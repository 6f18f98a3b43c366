"""Challenges as data: what may be edited, what must come out, a solution.

The tables here are read from scenario files; gradebook.analysis.challenges
judges by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from gradebook.cases.schema import (
    Count,
    Flag,
    Number,
    Part,
    Text,
    between,
    check_index,
    checked,
    each_once,
    one_of,
    read,
)
from gradebook.cases.table import Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings, check_setting

Column = Annotated[str, one_of(*COLUMNS)]
SettingName = Annotated[str, one_of(*Settings().keys())]


@dataclass(frozen=True)
class Edits(Part):
    """What a challenge lets the learner edit; nothing else may change.

    columns   columns whose cells may change; "any" stands for all of them
    rows      the only rows whose cells may change; without it every row
    settings  settings that may change; "any" stands for all of them
    most      how many edits there may be at most: cells that changed,
              settings that changed, rows added and removed; 0 for no limit
    add, remove, reorder  rows may be added, removed, put in another order
    """

    columns: tuple[Annotated[str, one_of("any", *COLUMNS)], ...] = ()
    rows: tuple[Count, ...] = ()
    settings: tuple[Annotated[str, one_of("any", *Settings().keys())], ...] = ()
    most: Count = 0
    add: Flag = False
    remove: Flag = False
    reorder: Flag = False


# Conditions

OF_ENGINES = (
    "correct",
    "faulty",
    "correct size",
    "faulty size",
    "correct shift",
    "faulty shift",
    "ratio",
)
"""Advantages of a row: in each engine, without the sign, how far they moved
from the case as it came, and the faulty one divided by the correct one."""
OF_ROWS = ("reward", "tokens", "eos", "kept_steps", "pieces")
"""A row's value in a column, a flag as 1 or 0; the rows of its rollout."""
OF_BATCH = ("rows", "correct trains", "loss ratio")
"""The number of rows, of rows that the correct engine trains, and the faulty
loss divided by the correct one."""

Rows = Annotated[tuple[Count, ...], between(1)] | Literal["all", "best", "whole"]
"""Numbers of rows, or all, the best of each prompt, or those of prompts in
which every row counts."""


@dataclass(frozen=True, kw_only=True)
class Bounds(Part):
    """A number of some rows, or of every one of them, is at least `least`, at
    most `most`, or one of `among`. Rows without the number are left out."""

    kind: Literal["bounds"]
    of: Annotated[str, one_of(*OF_ENGINES, *OF_ROWS, *OF_BATCH)]
    some: Rows | None = None
    every: Rows | None = None
    least: Number | None = None
    most: Number | None = None
    among: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if (self.some is None) == (self.every is None):
            both = "neither" if self.some is None else "both"
            raise GradebookError(expected="either some or every", found=both)


@dataclass(frozen=True, kw_only=True)
class Agree(Part):
    """Both engines give the same advantages, loss and gradient. With
    `within`, advantages at most that far apart are enough."""

    kind: Literal["agree"]
    within: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Differ(Part):
    """Some rows have another advantage, or gradient, in the faulty engine."""

    kind: Literal["differ"]
    of: Literal["advantage", "gradient"] = "advantage"
    some: Rows = "all"


@dataclass(frozen=True, kw_only=True)
class Equal(Part):
    """The values of a column are equal within each prompt, each rollout or
    the batch. With `equal = false`, they differ within one of them."""

    kind: Literal["equal"]
    column: Literal["reward", "tokens", "text"]
    within: Literal["prompt", "rollout", "batch"] = "prompt"
    rows: Rows = "all"
    equal: Flag = True


@dataclass(frozen=True, kw_only=True)
class Crash(Part):
    """The faulty engine stops with an error; the correct one runs."""

    kind: Literal["crash"]


Condition = Annotated[
    Bounds | Agree | Differ | Equal | Crash, Field(discriminator="kind")
]


# A solution


@dataclass(frozen=True)
class Cell(Part):
    """A change of a solution: one row's value, as a row gives it."""

    row: Count
    column: Column
    value: Any

    def changed(self, table: Table) -> Table:
        """The table with the cell. Raises GradebookError with its key."""
        check_index("row", self.row, len(table), "rows")
        if self.column not in table.columns:
            columns = ", ".join(table.columns)
            raise refuse(f"one of {columns}", self.column, "column")
        return table.with_cell(self.row, self.column, self.value)


@dataclass(frozen=True)
class Setting(Part):
    """A change of a solution: one setting."""

    setting: SettingName
    value: Any

    def __post_init__(self) -> None:
        check_setting(self.setting, self.value)


@dataclass(frozen=True)
class AddRow(Part):
    """A change of a solution: a row at the end."""

    add_row: dict[str, Any]

    def changed(self, table: Table) -> Table:
        """The table with the row. Raises GradebookError with its key."""
        return table.joined(Table.of(checked((self.add_row,))))


@dataclass(frozen=True)
class RemoveRow(Part):
    """A change of a solution: a row taken out; those below move up."""

    remove_row: Count

    def changed(self, table: Table) -> Table:
        """The table without the row. Raises GradebookError with its key."""
        check_index("remove_row", self.remove_row, len(table), "rows")
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


CHANGES = {
    "row": Cell,
    "setting": Setting,
    "add_row": AddRow,
    "remove_row": RemoveRow,
    "order": Order,
}
"""The changes of a solution, by the key that tells them apart."""


def _change(value: Any) -> Any:
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    for key, change in CHANGES.items():
        if key in keys:
            return read(change, value)
    raise refuse("a table with one of " + ", ".join(CHANGES), value)


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
    solved: Annotated[tuple[Condition, ...], between(1)]
    solution: Annotated[tuple[Change, ...], between(1)]
    insight: Text
    edits: Edits | None = None
    hint: Text = ""
