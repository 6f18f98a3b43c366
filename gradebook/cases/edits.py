"""What a learner does to a case: one function an act, State -> State, which raises
GradebookError if it cannot be carried out."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradebook.cases.schema import check_index
from gradebook.cases.state import State
from gradebook.cases.table import LISTS, WIDEST, Table
from gradebook.core.columns import COLUMNS, as_text, flags, number, parts
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.formatting import counted
from gradebook.core.settings import read_setting


def set_cell(state: State, row: int, column: str, cell: str | bool) -> State:
    """Changes a cell. The value is as typed; `column` is a column or a token (t3). A
    reward belongs to a rollout: pieces of it that had the same one change with it."""
    _check_row(state, row)
    choice(column, state.table.headers, "column")
    rows = _pieces(state.table, row) if column == "reward" else [row]
    cells = {(row, column): cell for row in rows}
    return replace(state, table=state.table.with_cells(cells))


def _pieces(table: Table, row: int) -> list[int]:
    """The row, and other pieces of its rollout with the same reward."""
    if "rollout" not in table.columns:
        return [row]
    names = ("prompt", "step", "rollout", "reward")
    columns = [table[name] for name in names if name in table.columns]
    labels = list(zip(*columns))
    return [row, *(r for r, x in enumerate(labels) if x == labels[row] and r != row)]


def set_mask(state: State, row: int, start: int, stop: int, on: bool) -> State:
    """Unmasks or masks the tokens `start` to `stop` - 1 of a row."""
    _check_row(state, row)
    if not 0 <= start < stop <= state.table.width:
        tokens = f"tokens from 0 to {state.table.width}"
        raise refuse(tokens, f"{start} to {stop}", "mask", row)
    cells = {(row, f"t{t + 1}"): on for t in range(start, stop)}
    return replace(state, table=state.table.with_cells(cells))


def set_tokens(
    state: State, row: int, start: int, stop: int, column: str, value: str
) -> State:
    """Tokens `start` to `stop` - 1 of a row have another number in a column of lists.
    If the case drags several columns together by this one, the others move as far as
    the first of these tokens does."""
    _check_row(state, row)
    lists = [name for name in state.table.columns if name in LISTS]
    choice(column, lists, "column")
    width = len(parts(state.table[column][row]))
    if not 0 <= start < stop <= width:
        raise refuse(f"tokens from 0 to {width}", f"{start} to {stop}", column, row)
    cells = {}
    try:
        far = number(value) - number(parts(state.table[column][row])[start])
    except GradebookError as error:
        raise error.at(key=column, row=row) from None
    drag = state.scenario.drag
    for name in drag if column == drag[0] else (column,):
        typed = parts(state.table[name][row])
        for token in range(start, stop):
            moved = as_text(round(number(typed[token]) + far, DIGITS))
            typed[token] = value.strip() if name == column else moved
        cells[row, name] = " ".join(typed)
    return replace(state, table=state.table.with_cells(cells))


DIGITS = 12
"""Decimals of a number that moves along: enough to show it, too few to show the digits
of a binary fraction."""


def add_row(state: State, row: int) -> State:
    """Adds a copy of `row` below it and selects the copy."""
    _check_row(state, row)
    order = [*range(row + 1), *range(row, state.rows)]
    return replace(state, table=state.table.take(order), row=row + 1)


def remove_row(state: State, row: int) -> State:
    """The batch without `row`. The selected row stays selected. If it is the removed
    one, the row below it is selected."""
    _check_row(state, row)
    left = state.table.take(r for r in range(state.rows) if r != row)
    selected = state.row - (state.row > row)
    return select(replace(state, table=left), selected)


def move_row(state: State, row: int, to: int) -> State:
    """Moves `row` to position `to`. The selection moves with it."""
    _check_row(state, row)
    _check_row(state, to)
    order = [r for r in range(state.rows) if r != row]
    order.insert(to, row)
    return replace(state, table=state.table.take(order), row=order.index(state.row))


def paste(state: State, row: int, column: str, text: str) -> State:
    """Writes a block from a spreadsheet over the cells from `row` and `column` on. Rows
    are added at the end if the block needs them."""
    _check_row(state, row)
    headers, block = state.table.headers, _block(text)
    first = choice("t1" if column == "mask" else column, headers, "paste")
    headers = headers[headers.index(first) :]
    block = [_apart(line, headers) for line in block]
    widest = max(map(len, block))
    if widest > len(headers):
        most = f"at most {counted(len(headers), 'cell')} in a line"
        raise refuse(f"{most}, as the table has from {first} on", widest, "paste")
    return _laid(state, max(state.rows, row + len(block)), row, headers, block)


def replace_rows(state: State, text: str) -> State:
    """Replaces all rows by a block from a spreadsheet. Its first line may name the
    columns, as logs call them; one column is the rewards. In the other columns a row
    keeps its cells. A mask is one cell, or one for each token; with it, or with lists,
    the table gets as many tokens as the longest."""
    block, headers = [line for line in _block(text) if line], state.table.headers
    names = _named(block[0])
    if "reward" in names:
        block = block[1:]
    else:
        names = headers[: len(block[0])] if len(block[0]) > 1 else ("reward",)
        block = [_apart(line, headers) for line in block] if len(names) > 1 else block
        names = headers[: len(block[0])] if len(names) > 1 else names
    if {"mask", *LISTS} & {*names} and state.table.width:
        state, names, block = _as_wide(state, names, block)
        headers = state.table.headers
    if {*names} - {*headers} or len({*names}) < len(names):
        columns = "each of these columns at most once: " + ", ".join(headers)
        raise GradebookError(key="paste", expected=columns, found=", ".join(names))
    for row, line in enumerate(block):
        if len(line) != len(names):
            raise refuse(counted(len(names), "cell"), len(line), "paste", row)
    return _laid(state, len(block), 0, names, block)


def _named(line: Sequence[str]) -> tuple[str, ...]:
    """The columns that a first line names; logs have other names for them."""
    names = [cell.strip().lower() for cell in line]
    return tuple(ALIASES.get(name, name) for name in names)


def _as_wide(
    state: State, names: Sequence[str], block: list[list[str]]
) -> tuple[State, tuple[str, ...], list[list[str]]]:
    """The table with as many tokens as the longest mask or list of the block, and the
    block with a cell for each token of a mask, masked past a row's end."""
    rows = [dict(zip(names, line)) for line in block]
    lists = _token_lists(rows, names)
    width = max((len(cells) for row in lists for cells in row.values()), default=1)
    if not 1 <= width <= WIDEST:
        raise refuse(f"1 to {WIDEST} tokens in a row", width, "mask")
    for row, of_tokens in zip(rows, lists):
        row |= _filled(of_tokens, width)
    tokens = [f"t{t + 1}" for t in range(width)]
    wide = (*(name for name in names if name != "mask"), *tokens)
    state = replace(state, table=state.table.resized(width))
    return state, wide, [[row.get(name, "") for name in wide] for row in rows]


def _token_lists(
    rows: Sequence[dict[str, str]], names: Sequence[str]
) -> list[dict[str, list[Any]]]:
    """The flags of each row's mask and the parts of its lists, of those that the block
    has. Raises GradebookError with the row for a cell that is no mask or list."""
    read = {name: flags if name == "mask" else parts for name in ("mask", *LISTS)}
    there = [name for name in read if name in names]
    lists: list[dict[str, list[Any]]] = []
    for place, row in enumerate(rows):
        try:
            lists.append({name: read[name](row.get(name, "")) for name in there})
        except GradebookError as error:
            raise error.at(key="mask", row=place) from None
    return lists


def _filled(lists: Mapping[str, list[Any]], width: int) -> dict[str, str]:
    """A row's cells: a flag for each token, off past the row's end, and its lists,
    which are filled up with -1. A row without a mask has all its tokens on."""
    mask = lists.get("mask", [True] * max(map(len, lists.values())))
    mask = [*mask, *[False] * (width - len(mask))]
    cells = {f"t{t + 1}": "01"[on] for t, on in enumerate(mask)}
    for name in lists.keys() - {"mask"}:
        filled = [*lists[name], *["-1"] * (width - len(lists[name]))]
        cells[name] = " ".join(filled)
    return cells


def _apart(line: list[str], headers: Sequence[str]) -> list[str]:
    """The cells of a line, of which a whole mask is taken apart into its tokens."""
    cells: list[str] = []
    for cell in line:
        header = headers[len(cells)] if len(cells) < len(headers) else ""
        whole = header == "t1" and len(parts(cell) or "") + len(cell.strip()) > 2
        cells += ["01"[on] for on in flags(cell)] if whole else [cell]
    return cells


def _laid(
    state: State, rows: int, row: int, headers: Sequence[str], block: list[list[str]]
) -> State:
    cells = {
        (row + down, header): cell.strip()
        for down, line in enumerate(block)
        for header, cell in zip(headers, line)
    }
    table = state.table.extended(rows).with_cells(cells)
    return select(replace(state, table=table), state.row)


def _block(text: str) -> list[list[str]]:
    """The lines of a block, cell by cell, without empty lines around them."""
    if not text.strip():
        raise GradebookError(key="paste", expected="a block of cells", found="nothing")
    text = text.strip("\r\n")
    try:
        return list(csv.reader(io.StringIO(text), delimiter=_delimiter(text)))
    except csv.Error as error:
        raise refuse("a block of cells", str(error), "paste") from None


def _delimiter(text: str) -> str:
    """What is between the cells: tabs, unless a first line names columns between
    semicolons or commas, as a CSV file does."""
    first = text.splitlines()[0]
    for mark in (";", ","):
        names = _named(first.split(mark))
        if "\t" not in first and len(names) > 1 and {*names} <= {*COLUMNS}:
            return mark
    return "\t"


ALIASES = {
    alias: name for name, column in reversed(COLUMNS.items()) for alias in column.names
}
"""What logs call a column: the column's name; of several, the first of the table."""


def set_width(state: State, tokens: int) -> State:
    """Sets the number of tokens per row. It never drops a token from which a row
    learns."""
    least = state.table.used_width
    if not state.table.width or not least <= tokens <= WIDEST:
        expected = f"{least} to {WIDEST} tokens, in a table with a mask"
        raise refuse(expected, tokens, "width")
    return replace(state, table=state.table.resized(tokens))


def show_every_column(state: State) -> State:
    return replace(state, table=state.table.with_every_column())


def select(state: State, row: int, token: int | None = None) -> State:
    """Selects a row, and a token of it, or the nearest ones that exist. Without a
    token, the token in question."""
    row = max(0, min(row, state.rows - 1))
    if token is None:
        token = state.scenario.token
    token = max(0, min(token, state.table.width - 1))
    return replace(state, row=row, token=token)


def set_setting(state: State, name: str, typed: Any) -> State:
    """Changes a setting. The value is as typed: text, an option, or True or False."""
    value = read_setting(choice(name, state.settings, "setting"), typed)
    return replace(state, settings=replace(state.settings, **{name: value}))


def _check_row(state: State, row: int) -> None:
    check_index("row", row, state.rows, "rows")


TYPED = (set_cell, set_tokens, set_setting)
"""Acts with typed text; the argument before the text is its place."""
MOVING = (add_row, remove_row, move_row, paste, replace_rows)
"""Acts after which a row's number may mean another row."""
PASTING = (paste, replace_rows)
"""Acts that bring rows from elsewhere."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "column": (str,),
    "name": (str,),
    "text": (str,),
    "value": (str, bool),
    "token": (int, type(None)),
}
"""The types of what an edit holds besides whole numbers."""
ACTS: Mapping[str, tuple[Callable[..., State] | None, list[str]]] = {
    "cell": (set_cell, ["row", "column", "value"]),
    "tokens": (set_tokens, ["row", "start", "stop", "column", "value"]),
    "mask": (set_mask, ["row", "start", "stop", "value"]),
    "add": (add_row, ["row"]),
    "remove": (remove_row, ["row"]),
    "move": (move_row, ["row", "to"]),
    "paste": (paste, ["row", "column", "text"]),
    "replace": (replace_rows, ["text"]),
    "select": (None, ["row", "token"]),
    "go": (None, ["at"]),
    "undo": (None, []),
    "redo": (None, []),
    "reset": (None, []),
    "commit": (None, []),
    "keep_group_size": (None, []),
    "setting": (set_setting, ["name", "value"]),
}
"""What a browser may do, and the keys of the edit that are given to the act, in the
order of its arguments; without a function it is a method of the draft."""
