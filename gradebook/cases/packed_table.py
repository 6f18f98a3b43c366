"""A table as the `t` of a link: its differences from the case's own table,
as JSON, packed by zlib and base64url.

    {"n": rows, "k": [columns], "c": {header: cells}}

with cells as {"row": cell}, as a list, or for flags as "0110"; null is an
empty flag. What is not there is the case's, whose last row stands for the
rows past its end.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from gradebook.cases.columns import COLUMNS, TOKEN, column_of
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.errors import GradebookError, shown

MOST_UNPACKED = 200_000

Wrong = Callable[[str, str, str], None]
"""Takes what was expected, what was found, and where in the table."""


# Writing


def pack(table: Table, own: Table) -> str:
    """The table's differences from `own` as text, '' for none."""
    found = differences(table, own)
    return packed(found) if found else ""


def differences(table: Table, own: Table) -> dict[str, Any]:
    """The table's differences from `own`, {} for none."""
    if table == own:
        return {}
    found: dict[str, Any] = {}
    if len(table) != len(own):
        found["n"] = len(table)
    if table.headers != own.headers:
        names: list[Any] = list(table.columns)
        if "mask" in names:
            names[names.index("mask")] = table.width
        found["k"] = names
    base = _base(own, table.headers, len(table))
    changed = {
        header: _written(header, table[header], base[header])
        for header in table.headers
        if list(table[header]) != base[header]
    }
    return found | ({"c": changed} if changed else {})


def _base(
    own: Table, headers: Sequence[str], rows: int
) -> dict[str, list[Any]]:
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
    flags = _is_flag(header)
    said = [None if flags and cell == "" else cell for cell in cells]
    few = {str(r): c for r, c in enumerate(said) if cells[r] != base[r]}
    every: Any = said
    if flags and all(isinstance(c, bool) for c in cells):
        every = "".join("01"[c] for c in cells)
    return min(every, few, key=lambda form: len(_json(form)))


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def packed(value: Any) -> str:
    """A value of JSON as text for a link."""
    found = base64.urlsafe_b64encode(zlib.compress(_json(value), 6))
    return found.decode().rstrip("=")


# Reading


def unpack(text: str, own: Table, wrong: Wrong) -> Table:
    """The table that `text` describes; `own` where it cannot be read at
    all. Never raises: what makes no sense is told to `wrong`."""
    try:
        value = unpacked(text)
    except GradebookError as error:
        wrong(error.expected, error.found, "")
        return own
    return laid_over(value, own, wrong)


def laid_over(value: Any, own: Table, wrong: Wrong) -> Table:
    """The table that differs from `own` in this. Never raises, as
    `unpack`."""
    if not isinstance(value, dict):
        wrong("a packed table", shown(value), "")
        return own
    for key in set(value) - {"n", "k", "c"}:
        wrong("made of n, k and c", f"more: {shown(key)}", "")
    rows = value.get("n", len(own))
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        wrong(f"0 to {MOST_ROWS} rows", shown(rows), ".n")
        rows = len(own)
    headers = _headers(value.get("k"), wrong) or own.headers
    cells = _base(own, headers, rows)
    changes = value.get("c", {})
    if not isinstance(changes, dict):
        wrong("cells by column", shown(changes), ".c")
        changes = {}
    for header, written in changes.items():
        if header in cells:
            cells[header] = _cells(header, written, cells[header], wrong)
        else:
            wrong("cells of a column of this table", shown(header), ".c")
    return Table.of_columns(cells)


def unpacked(text: str) -> Any:
    """The value that `packed` wrote. Raises GradebookError with what was
    expected."""
    expected = "a table packed by Gradebook"

    def refuse(found: str) -> GradebookError:
        return GradebookError(expected=expected, found=found)

    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise refuse(f"no base64url: {shown(text)}")
    try:
        written = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        stream = zlib.decompressobj()
        content = stream.decompress(written, MOST_UNPACKED + 1)
    except (binascii.Error, zlib.error):
        raise refuse("damaged") from None
    if len(content) > MOST_UNPACKED:
        raise refuse(f"larger than {MOST_UNPACKED} bytes when unpacked")
    if not stream.eof or stream.unused_data:
        raise refuse("cut off" if not stream.eof else "followed by more")
    try:
        value = json.loads(content.decode(), object_pairs_hook=_once)
        _json(value).decode()  # no half of a surrogate pair, however written
        return value
    except (ValueError, RecursionError):
        raise refuse("no JSON that can be read") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError where a key comes twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _headers(written: Any, wrong: Wrong) -> list[str]:
    """Headers from `k`; [] for none or for unusable ones."""
    if written is None:
        return []
    headers: list[str] = []
    for part in written if isinstance(written, list) else [None]:
        if type(part) is int and 0 < part <= WIDEST:
            headers += [f"t{t + 1}" for t in range(part)]
        elif isinstance(part, str) and _is_header(part):
            headers.append(part)
        else:
            wrong("columns of a batch", shown(written), ".k")
            return []
    missing = {"prompt", "reward"} - set(headers)
    if missing or len(set(headers)) < len(headers):
        wrong("prompt, reward, and each once", shown(written), ".k")
        return []
    return headers


def _is_header(name: str) -> bool:
    if TOKEN.fullmatch(name):
        return len(name) < 5 and int(name[1:]) <= WIDEST
    return name in COLUMNS and name != "mask"


def _cells(
    header: str, written: Any, base: list[Any], wrong: Wrong
) -> list[Any]:
    """A column's cells, with the base's where one makes no sense."""
    place, rows = f".c.{header}", len(base)
    flags = _is_flag(header)
    if flags and isinstance(written, str):
        if len(written) == rows and not set(written) - {"0", "1"}:
            return [bit == "1" for bit in written]
        wrong(f"{rows} times 0 or 1", shown(written), place)
        return base
    if isinstance(written, list) and len(written) == rows:
        written = {str(row): cell for row, cell in enumerate(written)}
    if not isinstance(written, dict):
        wrong(f"{rows} cells, or cells by row", shown(written), place)
        return base
    cells = list(base)
    for row, cell in written.items():
        known = cell is None or isinstance(cell, (str, bool))
        if not re.fullmatch("[0-9]{1,4}", row) or int(row) >= rows:
            wrong(f"cells of rows below {rows}", shown(row), place)
        elif not known or (isinstance(cell, bool) and not flags):
            expected = "true, false or text" if flags else "text"
            wrong(expected, shown(cell), f"{place}.{row}")
        else:
            cells[int(row)] = cell
    return cells
