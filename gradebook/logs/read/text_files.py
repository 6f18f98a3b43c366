"""CSV, TSV and JSON Lines: well-formed blocks by pyarrow, others line by
line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.blocks import (
    LARGE,
    SMALL,
    Block,
    blocks,
    csv_table,
    json_table,
)
from gradebook.logs.read.sources import (
    Limits,
    Part,
    Source,
    Wanted,
    unique,
)


def _refuse_binary(first: bytes) -> None:
    if first.startswith((b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")):
        raise GradebookError(expected="text", found="a binary file")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GradebookError(expected="text in UTF-8", found="UTF-16")


def _blocks(
    source: Source, rows: int, limits: Limits, quoted: bool
) -> Iterator[Block]:
    """The file's blocks, without a byte order mark."""
    with source.opened() as file:
        size = SMALL if rows <= 1000 else LARGE
        for block in blocks(file, limits, size, quoted):
            if block.first == 1:
                _refuse_binary(block.data)
                data = block.data.removeprefix(b"\xef\xbb\xbf")
                block = Block(1, block.read, data)
            yield block


def csv_parts(
    source: Source, wanted: Wanted, rows: int, limits: Limits
) -> Iterator[Part]:
    """The file's parts; the mark between cells is the first line's."""
    csv.field_size_limit(max(csv.field_size_limit(), limits.line))
    names: list[str] | None = None
    for block in _blocks(source, rows, limits, quoted=True):
        if names is None:
            mark = _delimiter(block.data.split(b"\n", 1)[0].decode("latin-1"))
            found, block = _header(block, mark)
            names = unique(found, limits)
            use = [n for n in names if not wanted.names or n in wanted.names]
            at = [names.index(n) for n in use]
        if not block.data:
            continue
        frame = csv_table(block, mark, names, use, wanted.numbers, limits)
        if frame is None:
            cells = _csv_rows(block, mark, names, at, limits)
            yield from _collected(cells, use, source, block.read, rows)
        else:
            yield from _cut(frame, block, source, rows)


def _header(block: Block, mark: str) -> tuple[list[str], Block]:
    """The names in the first row, and the block after it. Raises
    GradebookError."""
    reader = csv.reader(block.lines(), delimiter=mark)
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise GradebookError(
            expected="a line of column names", found=shown(str(error))
        ) from error
    rest = block.data.split(b"\n", reader.line_num)
    data = rest[-1] if len(rest) > reader.line_num else b""
    return names, Block(1 + reader.line_num, block.read, data)


def _cut(
    frame: pd.DataFrame, block: Block, source: Source, rows: int
) -> Iterator[Part]:
    """A block that was read whole, in parts."""
    lines = np.arange(block.first, block.first + len(frame))
    for first in range(0, len(frame), rows):
        part = frame.iloc[first : first + rows].reset_index(drop=True)
        own = lines[first : first + rows]
        yield Part(part, source, own, (), block.read)


def _delimiter(line: str) -> str:
    counts = {mark: line.count(mark) for mark in ("\t", ",", ";")}
    return max(counts, key=lambda mark: counts[mark])


_Row = tuple[int, list[Any], GradebookError | None]


def _csv_rows(
    block: Block,
    mark: str,
    names: list[str],
    use: list[int],
    limits: Limits,
) -> Iterator[_Row]:
    """Line, the used cells, and what is wrong with the row."""
    reader = csv.reader(block.lines(), delimiter=mark)
    while True:
        line = block.first + reader.line_num
        try:
            cells: list[Any] = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            wrong = GradebookError(
                expected="a row of cells", found=shown(str(error))
            )
            yield line, [None] * len(use), wrong
            continue
        if not cells:
            continue
        bad = None
        if len(cells) != len(names):
            bad = GradebookError(
                expected=f"{len(names)} cells", found=str(len(cells))
            )
            cells = cells + [None] * (len(names) - len(cells))
        taken = [cells[i] or None for i in use]
        yield line, *_short(taken, [names[i] for i in use], bad, limits)


def _short(
    cells: list[Any],
    names: Sequence[str],
    bad: GradebookError | None,
    limits: Limits,
) -> tuple[list[Any], GradebookError | None]:
    """The cells, without those that are too long."""
    for at, cell in enumerate(cells):
        if isinstance(cell, str) and len(cell) > limits.cell:
            expected = f"at most {limits.cell:,} characters"
            bad = GradebookError(
                key=names[at], expected=expected, found=f"{len(cell):,}"
            )
            cells[at] = None
    return cells, bad


def _collected(
    found: Iterable[_Row],
    names: list[str],
    source: Source,
    read: int | Callable[[int], int],
    rows: int,
) -> Iterator[Part]:
    """Rows as parts; `read` is how far the file is read, or makes that from
    a line."""
    cells: list[list[Any]] = []
    lines: list[int] = []
    bad: list[GradebookError] = []

    def part() -> Part:
        far = read if isinstance(read, int) else read(lines[-1])
        return _text_part(cells, names, lines, bad, source, far)

    for line, row, wrong in found:
        if wrong is not None:
            wrong.row = len(cells)
            bad.append(wrong)
        cells.append(row)
        lines.append(line)
        if len(cells) >= rows:
            yield part()
            cells, lines, bad = [], [], []
    if cells:
        yield part()


def _text_part(
    cells: list[list[Any]],
    names: list[str],
    lines: list[int],
    bad: list[GradebookError],
    source: Source,
    read: int,
) -> Part:
    columns = zip(*cells)
    table = {
        name: pd.Series(list(column), dtype=object)
        for name, column in zip(names, columns)
    }
    frame = pd.DataFrame(table, columns=names)
    return Part(frame, source, np.array(lines), tuple(bad), read)


def jsonl_parts(
    source: Source, wanted: Wanted, rows: int, limits: Limits
) -> Iterator[Part]:
    """The file's parts; without wanted names, the keys of its first lines.
    A file that is one JSON value is read whole."""
    table = _whole_table(source, limits)
    if table is not None:
        yield from _table_parts(table, wanted, rows, source, limits)
        return
    names = list(wanted.names) or _keys(source, limits)
    for block in _blocks(source, rows, limits, quoted=False):
        frame = None
        if wanted.names:
            frame = json_table(block, names, wanted.numbers, limits)
        if frame is None:
            cells = _json_rows(block, names, limits)
            yield from _collected(cells, names, source, block.read, rows)
        else:
            yield from _cut(frame, block, source, rows)


def _keys(source: Source, limits: Limits) -> list[str]:
    """The keys of the first 100 objects."""
    found: dict[str, None] = {}
    first = next(_blocks(source, 1, limits, quoted=False), None)
    for text in islice(first.lines(), 100) if first else ():
        row = _object(text)
        if isinstance(row, dict):
            found.update(dict.fromkeys(row))
        if len(found) > limits.columns:
            raise GradebookError(
                expected=f"at most {limits.columns} keys",
                found=str(len(found)),
            )
    if not found:
        raise GradebookError(
            expected="one JSON object a line", found="none in 100 lines"
        )
    return list(found)


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
    block: Block, names: list[str], limits: Limits
) -> Iterator[_Row]:
    for number, text in enumerate(block.lines(), block.first):
        if not text.strip():
            continue
        row = _object(text)
        if not isinstance(row, dict):
            bad = _no_object(text.strip())
            yield number, [None] * len(names), bad
            continue
        cells = [_plain(row.get(name)) for name in names]
        yield number, *_short(cells, names, None, limits)


def _no_object(found: object) -> GradebookError:
    return GradebookError(expected="a JSON object", found=shown(found, 40))


def _plain(value: Any) -> Any:
    """A value as a cell; a mapping as text."""
    if isinstance(value, dict):
        return json.dumps(value, default=str)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float("nan") if abs(value) > 1e300 else float(value)
    return value


WHOLE = 2**28
"""Bytes of the largest file that is read as one JSON value."""


def _whole_table(source: Source, limits: Limits) -> list[Any] | None:
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
        names = unique([str(n) for n in names], limits)
        return [
            dict(zip(names, row)) if isinstance(row, list) else row
            for row in data
        ]
    some = any(isinstance(row, dict) for row in value[:100])
    return value if some else None


def _table_parts(
    table: list[Any],
    wanted: Wanted,
    rows: int,
    source: Source,
    limits: Limits,
) -> Iterator[Part]:
    """The rows of one JSON value; a line is a row, from 1."""
    names = list(wanted.names)
    if not names:
        keys = (row for row in table[:100] if isinstance(row, dict))
        names = list(dict.fromkeys(str(k) for row in keys for k in row))
        unique(names, limits)

    def found() -> Iterator[_Row]:
        for number, row in enumerate(table, 1):
            if not isinstance(row, dict):
                bad = _no_object(row)
                yield number, [None] * len(names), bad
                continue
            cells = [_plain(row.get(name)) for name in names]
            yield number, *_short(cells, names, None, limits)

    def read(line: int) -> int:
        return source.size * line // len(table)

    yield from _collected(found(), names, source, read, rows)
