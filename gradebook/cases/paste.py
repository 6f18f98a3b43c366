"""Blocks of cells as a spreadsheet copies them, put into a table.

Cells stand between tabs; a cell that holds a tab, a line break or a quote
stands in quotes. Nothing that is pasted is refused for what it says: a cell
that cannot be read stays as typed and is named by the table.
"""

from __future__ import annotations

import csv
import io

from gradebook.cases.table import MOST_ROWS, Table
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.formatting import counted


def pasted(table: Table, row: int, header: str, text: str) -> Table:
    """The table with a block laid over it, whose first cell goes to `row`
    and `header`. Rows past the end are added; a line with fewer cells
    leaves the others as they are.

    Raises GradebookError where the block is wider than the table from there
    on, or makes it too long.
    """
    block = _block(text)
    first = "t1" if header == "mask" else header
    if first not in table.headers:
        raise GradebookError(
            key="paste",
            expected="one of " + ", ".join(table.headers),
            found=header,
        )
    headers = table.headers[table.headers.index(first) :]
    widest = max(len(line) for line in block)
    if widest > len(headers):
        raise GradebookError(
            key="paste",
            expected=f"at most {counted(len(headers), 'cell')} in a line,"
            f" as the table has from {first} on",
            found=str(widest),
        )
    _check_rows(row + len(block))
    return table.extended(max(len(table), row + len(block))).with_cells(
        {
            (row + down, name): cell.strip()
            for down, line in enumerate(block)
            for name, cell in zip(headers, line)
        }
    )


def replaced(table: Table, text: str) -> Table:
    """The table with its rows replaced by a block.

    Cells stand in the table's order or under a first line of headers; a
    block of one column is the rewards. What the block does not give keeps
    the table's cell of that row. Raises GradebookError with the line where
    the block has no such shape.
    """
    block = [line for line in _block(text) if line]
    names = [cell.strip().lower() for cell in block[0]]
    if "reward" in names:
        block = block[1:]
    else:
        widest = max(len(line) for line in block)
        names = list(table.headers[:widest]) if widest > 1 else ["reward"]
    unknown = set(names) - set(table.headers)
    if unknown or len(set(names)) < len(names):
        raise GradebookError(
            key="paste",
            expected="each of these columns at most once: " + ", ".join(table.headers),
            found=", ".join(names),
        )
    _check_rows(len(block))
    for row, line in enumerate(block):
        if len(line) != len(names):
            raise refuse(counted(len(names), "cell"), len(line), "paste", row=row)
    return table.extended(len(block)).with_cells(
        {
            (row, name): cell.strip()
            for row, line in enumerate(block)
            for name, cell in zip(names, line)
        }
    )


def _block(text: str) -> list[list[str]]:
    """The lines of a block, cell by cell, without empty lines around them.
    Raises GradebookError where there is none."""
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter="\t"))
    except csv.Error as error:
        raise GradebookError(
            key="paste", expected="a block of cells", found=str(error)
        ) from None
    filled = [at for at, line in enumerate(lines) if any(map(str.strip, line))]
    if not filled:
        raise GradebookError(key="paste", expected="a block of cells", found="nothing")
    return lines[filled[0] : filled[-1] + 1]


def _check_rows(count: int) -> None:
    if count > MOST_ROWS:
        raise refuse(f"at most {MOST_ROWS} rows", count, "paste")
