"""The rows of a scenario file: one table per rollout, all with the same keys.

A value is read as a cell of the batch's table is (gradebook.cases.columns).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

from gradebook.cases.schema import between
from gradebook.cases.table import MOST_ROWS, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse

MOST_TOKENS = 64
NEEDED = ("prompt", "reward")


def checked(rows: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The rows as they are. Raises GradebookError with column and row."""
    for at, row in enumerate(rows):
        for name, value in row.items():
            if name not in COLUMNS or name not in rows[0]:
                columns = [column for column in COLUMNS if column in rows[0]]
                raise refuse("one of " + ", ".join(columns), name, name, at)
            if not isinstance(value, (list, str, int, float)):
                raise refuse("a value of this column", value, name, at)
        for name in (*NEEDED, *rows[0]):
            if name not in row:
                raise GradebookError("Field required", key=name, row=at)
    width = Table.of(rows).width
    if width > MOST_TOKENS:
        raise refuse(f"at most {MOST_TOKENS} tokens", width, "mask")
    return rows


Rows = Annotated[
    tuple[dict[str, Any], ...], between(1, MOST_ROWS), AfterValidator(checked)
]
