"""Cells: how a table writes the values of a batch's columns, and reads them.

A cell is what a person typed: text for labels, numbers and lists, True or
False for flags, a tuple of flags for a response mask.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse, shown

Cell = str | bool | tuple[bool, ...]

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TOKEN = re.compile(r"t[1-9][0-9]*")
"""The header of one token of the response mask: t1, t2, .."""


def plain_cell(name: str, row: Mapping[str, Cell], number: int, width: int) -> Cell:
    """The cell that changes nothing: what the batch takes where the column is
    missing. `row` has the row's other cells, `number` is the row's, and `width`
    the number of tokens."""
    ones = " ".join(["-1"] * max(width, 1))
    match name:
        case "rollout":
            return str(number)
        case "text":
            return row["prompt"]
        case "steps":
            kept = row.get("kept_steps", "1")
            return "1" if kept == "0" else kept
        case "kept_steps":
            return row.get("steps", "1")
        case "mask":
            return (True,) * max(width, 1)
        case "logp":
            return ones
        case "ref_logp":
            return row.get("logp") or ones
    return COLUMNS[name].default


def column_of(header: str) -> str:
    """The column under a header: 'mask' for t1, t2, .."""
    return "mask" if TOKEN.fullmatch(header) else header


def titled(header: str) -> str:
    """A header's title on the screen; a token's header is its title."""
    column = COLUMNS.get(header)
    return column.title if column else header


# Cells


def as_text(value: Any) -> str:
    """A value as text: 2.0 as '2', a list as numbers separated by spaces,
    None and NaN as ''."""
    if isinstance(value, (list, tuple)):
        return " ".join(as_text(v) for v in value)
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        whole = value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else repr(float(value))
    return "" if value is None else str(value)


def as_cell(header: str, value: Any, width: int) -> Cell:
    """A value as a cell under the header: a column or a token such as t3.
    Raises GradebookError where it cannot be read (see `read`)."""
    name = column_of(header)
    kind = COLUMNS[name].kind
    if kind == "tokens" and name == header:
        cell: Cell = tuple(_flag(f"t{t + 1}", mark) for t, mark in enumerate(value))
    elif kind in ("flag", "tokens"):
        return _flag(header, value)
    else:
        cell = as_text(value)
    read(name, cell, width)
    return cell


def _flag(header: str, cell: Any) -> bool:
    return _at(header, flag, cell)


def _at(header: str, reader: Callable[[Any], Any], cell: Any) -> Any:
    try:
        return reader(cell)
    except GradebookError as error:
        raise error.at(key=header) from None


# Reading


def read(column: str, cell: Cell, width: int) -> Any:
    """The value of a cell: label str, number float, whole int, flag bool,
    tokens tuple of bool, list tuple of float.

    A list has `width` numbers where the width is not 0. Raises GradebookError
    naming the column.
    """
    if isinstance(cell, tuple):
        if len(cell) != width:
            raise refuse(f"{width} flags, one a token", len(cell), column)
        return cell
    if COLUMNS[column].kind == "list":
        typed = parts(cell)
        if width and len(typed) != width:
            numbers = f"{width} numbers separated by spaces, one a token"
            raise refuse(numbers, len(typed), column)
        return tuple(_at(column, number, part) for part in typed)
    return _at(column, READERS[COLUMNS[column].kind], cell)


def number(cell: Any) -> float:
    """A finite number from a cell. Raises GradebookError saying why not."""
    text = as_text(cell).strip().replace("\u2212", "-")
    if not text:
        raise GradebookError(expected="a number", found="an empty cell")
    if not NUMBER.fullmatch(text):
        expected = "a number"
        if "," in text:
            expected = "a number with a decimal point"
        raise refuse(expected, as_text(cell))
    value = float(text)
    if not math.isfinite(value):
        raise refuse("a number below 1.8e308", as_text(cell))
    return value


def whole(cell: Any) -> int:
    """A whole number of 0 or more. Raises GradebookError saying why not."""
    value = number(cell)
    if value != int(value) or not 0 <= value < 2**31:
        raise refuse("a whole number of 0 or more", as_text(cell))
    return int(value)


def flag(cell: Any) -> bool:
    """True or False from a cell. Raises GradebookError saying why not."""
    if isinstance(cell, bool):
        return cell
    text = as_text(cell).strip().lower()
    if text in ("true", "1", "1.0", "yes"):
        return True
    if text in ("false", "0", "0.0", "no"):
        return False
    cell_text = shown(as_text(cell)) if text else "an empty cell"
    raise GradebookError(expected="true or false", found=cell_text)


def _label(cell: Any) -> str:
    text = as_text(cell).strip()
    if not text:
        raise GradebookError(expected="text", found="an empty cell")
    return text


def parts(cell: Cell) -> list[str]:
    """The numbers of a list's cell, as typed."""
    return str(cell).replace(";", " ").split()


READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"label": _label, "number": number, "whole": whole, "flag": flag}
)
"""How a cell of each kind with one value is read."""
