"""A table as the `t` of a link: its differences from the case's own table,
as JSON, packed by zlib and base64url.

    {"n": rows, "k": [columns], "c": {header: cells}}

with cells as {"row": cell}, as a list, or for flags as "0110". What is not there
is the case's, whose last row stands for the rows past its end.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

from gradebook.cases.columns import TOKEN, as_cell, column_of
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse, shown

MOST_UNPACKED = 200_000


# Writing


def pack(table: Table, own: Table) -> str:
    """The table's differences from `own` as text, '' for none."""
    if table == own:
        return ""
    differences: dict[str, Any] = {}
    if len(table) != len(own):
        differences["n"] = len(table)
    if table.headers != own.headers:
        differences["k"] = [
            table.width if name == "mask" else name for name in table.columns
        ]
    base = _base(own, table.headers, len(table))
    changed = {
        header: _written(header, table[header], base[header])
        for header in table.headers
        if list(table[header]) != base[header]
    }
    if changed:
        differences["c"] = changed
    packed = base64.urlsafe_b64encode(zlib.compress(_json(differences), 6))
    return packed.decode().rstrip("=")


def _base(own: Table, headers: Sequence[str], rows: int) -> dict[str, list[Any]]:
    """The case's cells on another number of rows and columns."""
    at = [min(row, len(own) - 1) for row in range(rows)]
    base: dict[str, list[Any]] = {}
    for header in headers:
        absent = (False if _is_flag(header) else "",) * len(own)
        cells = own.get(header, absent)
        base[header] = [cells[row] for row in at]
    return base


def _is_flag(header: str) -> bool:
    return COLUMNS[column_of(header)].kind in ("flag", "tokens")


def _written(header: str, cells: Sequence[Any], base: list[Any]) -> Any:
    """A column in its shortest form."""
    few = {str(row): cell for row, cell in enumerate(cells) if cell != base[row]}
    every: Any = list(cells)
    if _is_flag(header):
        every = "".join("01"[cell] for cell in cells)
    return min(every, few, key=lambda form: len(_json(form)))


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


# Reading


def unpack(text: str, own: Table) -> tuple[Table, list[GradebookError]]:
    """The table that `text` describes, and each of its cells that cannot be
    read, for which the case's stands. Raises GradebookError for the first
    other thing that makes no sense, with its place in the table as key."""
    value = _unpacked(text)
    if not isinstance(value, dict):
        raise refuse("a packed table", value)
    for key in set(value) - {"n", "k", "c"}:
        raise GradebookError(expected="made of n, k and c", found=f"more: {shown(key)}")
    rows = value.get("n", len(own))
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise refuse(f"0 to {MOST_ROWS} rows", rows, ".n")
    headers = _headers(value["k"]) if "k" in value else own.headers
    cells = _base(own, headers, rows)
    changes = value.get("c", {})
    if not isinstance(changes, dict):
        raise refuse("cells by column", changes, ".c")
    width = sum(column_of(header) != header for header in headers)
    refused = []
    for header, written in changes.items():
        if header not in cells:
            raise refuse("cells of a column of this table", header, ".c")
        for row, cell in _cells(header, written, rows).items():
            try:
                as_cell(header, cell, width)
                cells[header][row] = cell
            except GradebookError as error:
                refused.append(error.at(key=f".c.{header}.{row}"))
    try:
        return Table.of_columns(cells), refused
    except GradebookError as error:
        raise error.at(key=f".c.{error.key}.{error.row}") from None


def _unpacked(text: str) -> Any:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise _damaged(f"no base64url: {shown(text)}")
    try:
        written = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        stream = zlib.decompressobj()
        content = stream.decompress(written, MOST_UNPACKED + 1)
    except (binascii.Error, zlib.error):
        raise _damaged("damaged") from None
    if len(content) > MOST_UNPACKED:
        raise _damaged(f"larger than {MOST_UNPACKED} bytes when unpacked")
    if not stream.eof or stream.unused_data:
        raise _damaged("cut off" if not stream.eof else "followed by more")
    try:
        value = json.loads(content.decode(), object_pairs_hook=_once)
        _json(value).decode()  # no half of a surrogate pair, however written
        return value
    except (ValueError, RecursionError):
        raise _damaged("no JSON that can be read") from None


def _damaged(found: str) -> GradebookError:
    return GradebookError(expected="a table packed by Gradebook", found=found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError where a key comes twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _headers(written: Any) -> list[str]:
    """Headers from `k`."""
    headers: list[str] = []
    for part in written if isinstance(written, list) else [None]:
        if type(part) is int and 0 < part <= WIDEST:
            headers += [f"t{t + 1}" for t in range(part)]
        elif isinstance(part, str) and _is_header(part):
            headers.append(part)
        else:
            raise refuse("columns of a batch", written, ".k")
    if {"prompt", "reward"} - {*headers} or len({*headers}) < len(headers):
        raise refuse("prompt, reward, and each once", written, ".k")
    return headers


def _is_header(name: str) -> bool:
    if TOKEN.fullmatch(name):
        return len(name) < 5 and int(name[1:]) <= WIDEST
    return name in COLUMNS and name != "mask"


def _cells(header: str, written: Any, rows: int) -> dict[int, Any]:
    """A column's cells by row, as written."""
    place, flags = f".c.{header}", _is_flag(header)
    if flags and isinstance(written, str):
        if len(written) != rows or set(written) - {"0", "1"}:
            raise refuse(f"{rows} times 0 or 1", written, place)
        return {row: bit == "1" for row, bit in enumerate(written)}
    if isinstance(written, list) and len(written) == rows:
        written = {str(row): cell for row, cell in enumerate(written)}
    if not isinstance(written, dict):
        raise refuse(f"{rows} cells, or cells by row", written, place)
    kinds = (str, bool, type(None)) if flags else (str, type(None))
    for row, cell in written.items():
        if not re.fullmatch("[0-9]{1,4}", row) or int(row) >= rows:
            raise refuse(f"cells of rows below {rows}", row, place)
        if not isinstance(cell, kinds):
            expected = "true, false or text" if flags else "text"
            raise refuse(expected, cell, f"{place}.{row}")
    return {int(row): cell for row, cell in written.items()}
