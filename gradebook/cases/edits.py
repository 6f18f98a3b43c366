"""What a learner does to a state: one function an act, State -> State.

An act raises GradebookError where it cannot be carried out: on a row that is not
there, or with text that cannot be read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradebook.cases import paste as pastes
from gradebook.cases.columns import as_text
from gradebook.cases.fields import read_setting
from gradebook.cases.state import State
from gradebook.cases.table import MOST_ROWS, Table
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import check_setting


def set_cell(state: State, row: int, column: str, cell: str | bool) -> State:
    """Another cell, as typed. `column` is a column or a token such as t3."""
    _check_row(state, row)
    if column == "mask" or column not in state.table:
        raise GradebookError(
            key="column",
            expected="one of " + ", ".join(state.table.headers),
            found=column,
        )
    return replace(state, table=state.table.with_cell(row, column, cell))


def set_mask(state: State, row: int, start: int, stop: int, on: bool) -> State:
    """Tokens `start` to `stop` - 1 of a row learn, or do not."""
    _check_row(state, row)
    if not 0 <= start < stop <= state.table.width:
        raise GradebookError(
            key="mask",
            row=row,
            expected=f"tokens from 0 to {state.table.width}",
            found=f"{start} to {stop}",
        )
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
    without rows begins with the block."""
    if state.rows:
        _check_row(state, row)
    else:
        row = 0
    return _under(state, pastes.pasted(state.table, row, column, text))


def replace_rows(state: State, text: str) -> State:
    """A block from a spreadsheet instead of all rows. Its first line may
    name the columns; one column is the rewards."""
    return _under(state, pastes.replaced(state.table, text))


def set_width(state: State, tokens: int) -> State:
    """Another number of tokens a row. Raises GradebookError where a token
    that a row learns from would be cut."""
    return _under(state, state.table.with_width(tokens))


def show_every_column(state: State) -> State:
    """Every column that a batch can have, with cells that change nothing."""
    return _under(state, state.table.with_every_column())


def select(state: State, row: int) -> State:
    """Another selected row, as near as there is one."""
    return replace(state, row=max(0, min(row, state.rows - 1)))


def set_setting(state: State, name: str, typed: Any) -> State:
    """Another setting, as typed: text for a number, the option for a
    choice, True or False for a switch."""
    if name not in state.typed:
        raise GradebookError(
            key="setting",
            expected="one of " + ", ".join(state.typed),
            found=as_text(name),
        )
    check_setting(name, read_setting(name, typed))
    return replace(state, typed={**state.typed, name: typed})


def _under(state: State, table: Table) -> State:
    return select(replace(state, table=table), state.row)


def _check_row(state: State, row: int) -> None:
    if not 0 <= row < state.rows:
        raise refuse(
            f"a row from 0 to {state.rows - 1}" if state.rows else "a batch with rows",
            row,
            "row",
        )
