"""What a learner does to a state: one function an act, State -> State.

An act raises GradebookError where it cannot be carried out: on a row that is not
there, or with text that cannot be read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradebook.cases.state import State, read_setting
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.formatting import counted
from gradebook.core.settings import check_setting


def set_cell(state: State, row: int, column: str, cell: str | bool) -> State:
    """Another cell, as typed. `column` is a column or a token such as t3."""
    _check_row(state, row)
    choice(column, state.table.headers, "column")
    return replace(state, table=state.table.with_cell(row, column, cell))


def set_mask(state: State, row: int, start: int, stop: int, on: bool) -> State:
    """Tokens `start` to `stop` - 1 of a row learn, or do not."""
    _check_row(state, row)
    if not 0 <= start < stop <= state.table.width:
        tokens = f"tokens from 0 to {state.table.width}"
        raise refuse(tokens, f"{start} to {stop}", "mask", row)
    cells = {(row, f"t{t + 1}"): on for t in range(start, stop)}
    return replace(state, table=state.table.with_cells(cells))


def add_row(state: State, row: int) -> State:
    """A copy of `row` below it, selected; a plain row where there is none
    yet. Raises GradebookError at the largest table."""
    if state.rows >= MOST_ROWS:
        raise refuse(f"at most {MOST_ROWS} rows", state.rows + 1, "table")
    if not state.rows:
        return replace(state, table=state.table.extended(1), row=0)
    _check_row(state, row)
    order = [*range(row + 1), *range(row, state.rows)]
    return replace(state, table=state.table.take(order), row=row + 1)


def remove_row(state: State, row: int) -> State:
    """The batch without `row`. The selected row stays selected; where it is
    the one that leaves, the row below it takes its place."""
    _check_row(state, row)
    left = state.table.take(r for r in range(state.rows) if r != row)
    selected = state.row - (state.row > row)
    return select(replace(state, table=left), selected)


def move_row(state: State, row: int, to: int) -> State:
    """`row` at position `to`. The selection moves along."""
    _check_row(state, row)
    _check_row(state, to)
    order = [r for r in range(state.rows) if r != row]
    order.insert(to, row)
    selected = order.index(state.row) if state.row < state.rows else 0
    return replace(state, table=state.table.take(order), row=selected)


def paste(state: State, row: int, column: str, text: str) -> State:
    """A block from a spreadsheet, laid over the cells from `row` and
    `column` on. It adds rows at the end where it needs them; a batch
    without rows begins with the block. A line with fewer cells leaves the
    others as they are."""
    if state.rows:
        _check_row(state, row)
    row = min(row, state.rows)
    block, headers = _block(text), state.table.headers
    first = choice("t1" if column == "mask" else column, headers, "paste")
    return _laid(state, row, headers[headers.index(first) :], block, state.rows)


def replace_rows(state: State, text: str) -> State:
    """A block from a spreadsheet instead of all rows. Its first line may
    name the columns; one column is the rewards. What the block does not give
    keeps the cell of that row."""
    block, headers = [line for line in _block(text) if line], state.table.headers
    names = tuple(cell.strip().lower() for cell in block[0])
    if "reward" in names:
        block = block[1:]
    else:
        names = headers[: len(block[0])] if len(block[0]) > 1 else ("reward",)
    if {*names} - {*headers} or len({*names}) < len(names):
        columns = "each of these columns at most once: " + ", ".join(headers)
        raise GradebookError(key="paste", expected=columns, found=", ".join(names))
    for row, line in enumerate(block):
        if len(line) != len(names):
            raise refuse(counted(len(names), "cell"), len(line), "paste", row)
    return _laid(state, 0, names, block, 0)


def _laid(
    state: State, row: int, headers: Sequence[str], block: list[list[str]], least: int
) -> State:
    """The block over the cells from `row` on, in a table of `least` rows or
    more."""
    rows = max(least, row + len(block))
    if rows > MOST_ROWS:
        raise refuse(f"at most {MOST_ROWS} rows", rows, "paste")
    widest = max(map(len, block), default=0)
    if widest > len(headers):
        most = f"at most {counted(len(headers), 'cell')} in a line"
        raise refuse(f"{most}, as the table has from {headers[0]} on", widest, "paste")
    cells = {
        (row + down, header): cell.strip()
        for down, line in enumerate(block)
        for header, cell in zip(headers, line)
    }
    return _under(state, state.table.extended(rows).with_cells(cells))


def _block(text: str) -> list[list[str]]:
    """The lines of a block, cell by cell, without empty lines around them.
    Cells stand between tabs; one that holds a tab, a line break or a quote
    stands in quotes. Raises GradebookError where there is none."""
    try:
        lines = list(csv.reader(io.StringIO(text.strip("\r\n")), delimiter="\t"))
    except csv.Error as error:
        raise refuse("a block of cells", str(error), "paste") from None
    if not text.strip():
        raise GradebookError(key="paste", expected="a block of cells", found="nothing")
    return lines


def set_width(state: State, tokens: int) -> State:
    """Another number of tokens a row. Raises GradebookError where a token
    that a row learns from would be cut, and for a width that no table has."""
    table = state.table
    if not table.width or not 1 <= tokens <= WIDEST:
        expected = f"1 to {WIDEST} tokens, in a table with a mask"
        raise refuse(expected, tokens, "width")
    for token in range(tokens + 1, table.width + 1):
        if True in table[f"t{token}"]:
            raise refuse("no token in it", "a token", f"t{token}")
    return _under(state, table.resized(tokens))


def show_every_column(state: State) -> State:
    """Every column that a batch can have, with cells that change nothing."""
    return _under(state, state.table.with_every_column())


def select(state: State, row: int) -> State:
    """Another selected row, as near as there is one."""
    return replace(state, row=max(0, min(row, state.rows - 1)))


def set_setting(state: State, name: str, typed: Any) -> State:
    """Another setting, as typed: text for a number, the option for a
    choice, True or False for a switch."""
    choice(name, state.typed, "setting")
    check_setting(name, read_setting(name, typed))
    return replace(state, typed={**state.typed, name: typed})


def _under(state: State, table: Table) -> State:
    return select(replace(state, table=table), state.row)


def _check_row(state: State, row: int) -> None:
    if not 0 <= row < state.rows:
        last = state.rows - 1
        rows = f"a row from 0 to {last}" if state.rows else "a batch with rows"
        raise refuse(rows, row, "row")
