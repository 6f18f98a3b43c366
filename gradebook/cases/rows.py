"""The rows of a scenario file: one table a rollout, all with the same keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import PlainValidator

from gradebook.cases.columns import COLUMNS
from gradebook.cases.schema import (
    NOTHING,
    Bit,
    Count,
    Flag,
    Label,
    Number,
    between,
    check_keys,
    read,
    under,
)
from gradebook.cases.table import MOST_ROWS
from gradebook.core.errors import GradebookError, refuse

MOST_TOKENS = 64

KINDS: Mapping[str, Any] = {
    "label": Label,
    "number": Number,
    "whole": Count,
    "flag": Flag,
    "tokens": Annotated[list[Bit], between(1, MOST_TOKENS)],
    "list": Annotated[list[Number], between(1, MOST_TOKENS)],
}
"""The type of a value by the kind of its column."""
PER_TOKEN = ("tokens", "list")
"""The kinds with one value a token."""


def read_value(column: str, value: Any) -> Any:
    """A value of the column. Raises GradebookError."""
    return read(KINDS[COLUMNS[column].kind], value)


def _rows(value: Any) -> tuple[dict[str, Any], ...]:
    """One table a row, every row with the same keys and widths."""
    if not isinstance(value, list):
        raise refuse("a list of rows", value)
    if not 1 <= len(value) <= MOST_ROWS:
        raise refuse(f"1 to {MOST_ROWS} rows", len(value))
    rows: list[dict[str, Any]] = []
    for row, cells in enumerate(value):
        try:
            rows.append(read_row(cells, rows))
        except GradebookError as error:
            raise error.at(row=row) from None
    return tuple(rows)


Rows = Annotated[tuple[dict[str, Any], ...], PlainValidator(_rows)]


def read_row(cells: Any, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One row, with the keys, kinds and widths of the first row `before`.

    Raises GradebookError with the column.
    """
    if not isinstance(cells, dict):
        raise refuse("a table", cells)
    check_keys(cells, COLUMNS)
    given = {*before[0]} if before else {*cells, "prompt", "reward"}
    names = [name for name in COLUMNS if name in given]
    for name in cells:
        if name not in names:
            raise refuse(f"the keys of row 0, {', '.join(names)}", name, name)
    found = read_cells({n: cells.get(n, NOTHING) for n in names})
    _check_like(found, before[0] if before else found)
    return found


def read_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the columns. Raises GradebookError with the column."""
    found = {}
    for name, cell in cells.items():
        try:
            found[name] = read_value(name, cell)
        except GradebookError as error:
            raise under(error, name) from None
    return found


def _check_like(row: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Raises where a label is of another type than in the first row, or a
    list of another length than the row's first list there."""
    wide = [name for name in row if COLUMNS[name].kind in PER_TOKEN]
    for name in row:
        kind = COLUMNS[name].kind
        if kind == "label" and type(row[name]) is not type(first[name]):
            as_text = isinstance(first[name], str)
            wanted = "text" if as_text else "a number"
            raise refuse(f"{wanted}, as in row 0", row[name], name)
        if kind in PER_TOKEN and len(row[name]) != len(first[wide[0]]):
            raise refuse(
                f"{len(first[wide[0]])} values, as {wide[0]} has in row 0",
                len(row[name]),
                name,
            )
