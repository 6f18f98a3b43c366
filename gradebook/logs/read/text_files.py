"""CSV and TSV by pyarrow; JSON Lines by pyarrow where a block is well formed,
else line by line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.blocks import (
    LARGE,
    SMALL,
    Block,
    blocks,
    csv_table,
    json_table,
    row_lines,
)
from gradebook.logs.read.sources import (
    LIMITS,
    Part,
    Source,
    Wanted,
    unique,
)

_Row = tuple[int, list[Any], GradebookError | None]
"""Line, the used cells, and what is wrong with the row."""


def _refuse_binary(first: bytes) -> None:
    if first.startswith((b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")):
        raise GradebookError(expected="text", found="a binary file")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GradebookError(expected="text in UTF-8", found="UTF-16")


def _blocks(source: Source, wanted: Wanted, quoted: bool) -> Iterator[Block]:
    """The file's blocks, without a byte order mark."""
    with source.opened() as file:
        size = LARGE if wanted.names else SMALL
        for block in blocks(file, size, quoted):
            if block.first == 1:
                _refuse_binary(block.data)
                data = block.data.removeprefix(b"\xef\xbb\xbf")
                block = Block(1, block.read, data)
            yield block


def _by_line(
    found: Iterable[_Row], names: Sequence[str], source: Source, read: int
) -> Iterator[Part]:
    """Rows that were read one by one, as one part, if there are any."""
    rows = list(found)
    if not rows:
        return
    lines, cells, wrong = zip(*rows)
    for row, error in enumerate(wrong):
        if error is not None:
            error.row = row
    frame = pd.DataFrame(list(cells), columns=list(names), dtype=object)
    bad = tuple(error for error in wrong if error is not None)
    yield Part(frame, source, np.array(lines), bad, read)


def csv_parts(source: Source, wanted: Wanted) -> Iterator[Part]:
    """The file's parts; the mark between cells is the first line's."""
    csv.field_size_limit(max(csv.field_size_limit(), LIMITS.line))
    names: list[str] | None = None
    for block in _blocks(source, wanted, quoted=True):
        if names is None:
            mark = _delimiter(block.data.split(b"\n", 1)[0].decode("latin-1"))
            found, block = _header(block, mark)
            names = unique(found)
            use = [n for n in names if not wanted.names or n in wanted.names]
        if not block.data:
            continue
        try:
            frame, odd = csv_table(block, mark, names, use, wanted.numbers)
        except ValueError as error:
            raise refuse("rows of cells", str(error)) from error
        if len(frame):
            lines = row_lines(block, mark, len(frame))
            bad = (
                refuse(f"{len(names)} cells", count).at(row=row)
                for row, count in odd.items()
            )
            yield Part(frame, source, lines, tuple(bad), block.read)


def _header(block: Block, mark: str) -> tuple[list[str], Block]:
    """The names in the first row, and the block after it. Raises
    GradebookError."""
    reader = csv.reader(block.lines(), delimiter=mark)
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise refuse("a line of column names", str(error)) from error
    if not names:
        raise GradebookError(expected="a line of column names", found="an empty line")
    rest = block.data.split(b"\n", reader.line_num)
    data = rest[-1] if len(rest) > reader.line_num else b""
    return names, Block(1 + reader.line_num, block.read, data)


def _delimiter(line: str) -> str:
    counts = {mark: line.count(mark) for mark in ("\t", ",", ";")}
    return max(counts, key=lambda mark: counts[mark])


def jsonl_parts(source: Source, wanted: Wanted) -> Iterator[Part]:
    """The file's parts; without wanted names, the keys of its first rows.
    A file that is one JSON value is read whole."""
    table = _whole_table(source)
    if table is not None:
        names = list(wanted.names) or _keys(table)
        rows = _json_rows(enumerate(table, 1), names)
        yield from _by_line(rows, names, source, source.size)
        return
    names = list(wanted.names)
    for block in _blocks(source, wanted, quoted=False):
        names = names or _keys(map(_object, block.lines()))
        frame = None
        if wanted.names:
            frame = json_table(block, names, wanted.numbers)
        if frame is None:
            texts = enumerate(block.lines(), block.first)
            found = ((at, _object(text)) for at, text in texts if text.strip())
            rows = _json_rows(found, names)
            yield from _by_line(rows, names, source, block.read)
        else:
            lines = np.arange(block.first, block.first + len(frame))
            yield Part(frame, source, lines, (), block.read)


def _keys(rows: Iterable[Any]) -> list[str]:
    """The keys of the first 100 objects."""
    first = (row for row in islice(rows, 100) if isinstance(row, dict))
    found = list(dict.fromkeys(str(key) for row in first for key in row))
    if len(found) > LIMITS.columns:
        raise refuse(f"at most {LIMITS.columns} keys", len(found))
    if not found:
        raise GradebookError(
            expected="one JSON object a line", found="none in 100 lines"
        )
    return found


def _object(text: str) -> Any:
    """The line's JSON, or the error. Half a surrogate pair, which no text
    can be written with, becomes a question mark."""
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():
            whole = json.dumps(value, ensure_ascii=False)
            value = json.loads(whole.encode("utf-8", "replace"))
        return value
    except (ValueError, RecursionError) as error:
        return error


def _json_rows(
    found: Iterable[tuple[int, Any]], names: Sequence[str]
) -> Iterator[_Row]:
    for line, row in found:
        if isinstance(row, dict):
            yield line, [_plain(row.get(name)) for name in names], None
        else:
            wrong = GradebookError(expected="a JSON object", found=shown(row, 40))
            yield line, [None] * len(names), wrong


def _plain(value: Any) -> Any:
    """A value as a cell; a mapping as text."""
    if isinstance(value, dict):
        return json.dumps(value, default=str)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float("nan") if abs(value) > 1e300 else float(value)
    return value


WHOLE = 2**28
"""Bytes of the largest file that is read as one JSON value."""


def _whole_table(source: Source) -> list[Any] | None:
    """The rows of a file that is one JSON value: an array of objects, or a
    table of columns and data, as experiment trackers export it; None for
    JSON Lines."""
    with source.opened() as file:
        start = file.read(2048).lstrip(b"\xef\xbb\xbf \t\r\n")
        is_array = start.startswith(b"[") and not start.startswith(b"[]")
        is_table = start.startswith(b"{") and b'"columns"' in start
        if not (is_array or is_table) or source.size > WHOLE:
            return None
        file.seek(0)
        try:
            value = _object(file.read().decode("utf-8-sig", "replace"))
        except MemoryError:
            return None
        if isinstance(value, Exception):
            return None
    if isinstance(value, dict):
        names, data = value.get("columns"), value.get("data")
        if not isinstance(names, list) or not isinstance(data, list):
            return None
        names = unique([str(n) for n in names])
        return [dict(zip(names, row)) if isinstance(row, list) else row for row in data]
    some = any(isinstance(row, dict) for row in value[:100])
    return value if some else None
