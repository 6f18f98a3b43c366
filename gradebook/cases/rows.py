"""The rows of a scenario file: one table per rollout, all with the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    PlainValidator,
    TypeAdapter,
    create_model,
)

from gradebook.cases.schema import Bit, Count, Flag, Label, Number, between, read
from gradebook.cases.table import MOST_ROWS
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import refuse

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


def read_value(column: str, value: Any) -> Any:
    """A value of the column. Raises GradebookError."""
    return read(KINDS[COLUMNS[column].kind], value)


NEEDED = ("prompt", "reward")
ROW: TypeAdapter[Any] = TypeAdapter(
    create_model(
        "Row",
        __config__=ConfigDict(extra="forbid"),
        **{
            name: (KINDS[column.kind], ... if name in NEEDED else None)
            for name, column in COLUMNS.items()
        },  # type: ignore[call-overload]
    )
)
"""Checks one row, which keeps only the columns that it names."""


def _cells(value: Any) -> dict[str, Any]:
    return ROW.validate_python(value).model_dump(exclude_unset=True)


def _alike(rows: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The rows. Raises GradebookError where a row has other columns than row
    0, labels of another type or lists of another length."""
    for at, row in enumerate(rows):
        for name in {**rows[0], **row}:
            here, there = _shape(row.get(name)), _shape(rows[0].get(name))
            if here != there:
                raise refuse(f"{there}, as in row 0", row.get(name), name, at)
    return rows


def _shape(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} values"
    kinds = {str: "text", bool: "true or false", type(None): "no value"}
    return kinds.get(type(value), "a number")


Cells = Annotated[dict[str, Any], PlainValidator(_cells)]
Rows = Annotated[tuple[Cells, ...], between(1, MOST_ROWS), AfterValidator(_alike)]
