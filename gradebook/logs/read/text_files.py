"""CSV, TSV and JSON Lines, read line by line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import BadRow, Limits, Part, Source, unique


def _lines(file: BinaryIO, limits: Limits) -> Iterator[tuple[int, int, str]]:
    """Line number, bytes read so far and text of each line."""
    read = 0
    for number in range(1, 2**62):
        line = file.readline(limits.line + 1)
        if not line:
            return
        read += len(line)
        if len(line) > limits.line:
            raise GradebookError(
                f"line {number} is too long",
                expected=f"at most {limits.line:,} bytes",
            )
        text = line.decode("utf-8", errors="replace")
        if number == 1:
            _refuse_binary(line)
            text = text.removeprefix("\ufeff")
        yield number, read, text


def _refuse_binary(first: bytes) -> None:
    if first.startswith((b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")):
        raise GradebookError(expected="text", found="a binary file")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GradebookError(expected="text in UTF-8", found="UTF-16")


def csv_parts(
    source: Source, wanted: Sequence[str] | None, rows: int, limits: Limits
) -> Iterator[Part]:
    """The file's parts; the mark between cells is the first line's."""
    with source.opened() as file:
        counted = _Counted(_lines(file, limits))
        first = next(counted, None)
        if first is None:
            return
        mark = _delimiter(first)
        csv.field_size_limit(max(csv.field_size_limit(), limits.line))
        names = unique(_names(first, mark), limits)
        use = [i for i, n in enumerate(names) if not wanted or n in wanted]
        reader = csv.reader(counted, delimiter=mark)
        yield from _collected(
            _csv_rows(reader, counted, names, use, limits),
            [names[i] for i in use],
            source,
            counted,
            rows,
        )


def _names(line: str, mark: str) -> list[str]:
    """The cells of a header. Raises GradebookError."""
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error as error:
        raise GradebookError(
            expected="a line of column names", found=shown(str(error))
        ) from error


@dataclass
class _Counted:
    """Lines of text, with the place of the last one."""

    lines: Iterator[tuple[int, int, str]]
    number: int = 0
    read: int = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        self.number, self.read, text = next(self.lines)
        return text


def _delimiter(line: str) -> str:
    counts = {mark: line.count(mark) for mark in ("\t", ",", ";")}
    return max(counts, key=lambda mark: counts[mark])


_Row = tuple[int, list[Any], BadRow | None]


def _csv_rows(
    reader: Iterator[list[str]],
    counted: _Counted,
    names: list[str],
    use: list[int],
    limits: Limits,
) -> Iterator[_Row]:
    """Line, the used cells, and what is wrong with the row."""
    while True:
        line = counted.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad = BadRow(0, "", "a row of cells", shown(str(error)))
            yield line, [None] * len(use), bad
            continue
        if not cells:
            continue
        bad = None
        if len(cells) != len(names):
            bad = BadRow(0, "", f"{len(names)} cells", str(len(cells)))
            cells = cells + [None] * (len(names) - len(cells))
        taken = [cells[i] or None for i in use]
        yield line, *_short(taken, [names[i] for i in use], bad, limits)


def _short(
    cells: list[Any], names: Sequence[str], bad: BadRow | None, limits: Limits
) -> tuple[list[Any], BadRow | None]:
    """The cells, without those that are too long."""
    for at, cell in enumerate(cells):
        if isinstance(cell, str) and len(cell) > limits.cell:
            expected = f"at most {limits.cell:,} characters"
            bad = BadRow(0, names[at], expected, f"{len(cell):,}")
            cells[at] = None
    return cells, bad


def _collected(
    found: Iterator[_Row],
    names: list[str],
    source: Source,
    counted: _Counted,
    rows: int,
) -> Iterator[Part]:
    """Rows as parts."""
    cells: list[list[Any]] = []
    lines: list[int] = []
    bad: list[BadRow] = []
    for line, row, wrong in found:
        if wrong is not None:
            bad.append(
                BadRow(len(cells), wrong.column, wrong.expected, wrong.found)
            )
        cells.append(row)
        lines.append(line)
        if len(cells) >= rows:
            yield _text_part(cells, names, lines, bad, source, counted.read)
            cells, lines, bad = [], [], []
    if cells:
        yield _text_part(cells, names, lines, bad, source, counted.read)


def _text_part(
    cells: list[list[Any]],
    names: list[str],
    lines: list[int],
    bad: list[BadRow],
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
    source: Source, wanted: Sequence[str] | None, rows: int, limits: Limits
) -> Iterator[Part]:
    """The file's parts; without `wanted`, the keys of its first lines. A
    file that is one JSON value is read whole."""
    table = _whole_table(source, limits)
    if table is not None:
        yield from _table_parts(table, wanted, rows, source, limits)
        return
    names = list(wanted) if wanted else _keys(source, limits)
    with source.opened() as file:
        counted = _Counted(_lines(file, limits))
        yield from _collected(
            _json_rows(counted, names, limits), names, source, counted, rows
        )


def _keys(source: Source, limits: Limits) -> list[str]:
    """The keys of the first 100 objects."""
    found: dict[str, None] = {}
    with source.opened() as file:
        counted = _Counted(_lines(file, limits))
        for text in counted:
            row = _object(text)
            if isinstance(row, dict):
                found.update(dict.fromkeys(row))
            if len(found) > limits.columns:
                raise GradebookError(
                    expected=f"at most {limits.columns} keys",
                    found=str(len(found)),
                )
            if counted.number >= 100:
                break
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
    counted: _Counted, names: list[str], limits: Limits
) -> Iterator[_Row]:
    for text in counted:
        if not text.strip():
            continue
        row = _object(text)
        if not isinstance(row, dict):
            bad = BadRow(0, "", "a JSON object", shown(text.strip(), 40))
            yield counted.number, [None] * len(names), bad
            continue
        cells = [_plain(row.get(name)) for name in names]
        yield counted.number, *_short(cells, names, None, limits)


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
    wanted: Sequence[str] | None,
    rows: int,
    source: Source,
    limits: Limits,
) -> Iterator[Part]:
    """The rows of one JSON value; a line is a row, from 1."""
    names = list(wanted or ())
    if not names:
        keys = (row for row in table[:100] if isinstance(row, dict))
        names = list(dict.fromkeys(str(k) for row in keys for k in row))
        unique(names, limits)
    counted = _Counted(iter(()))

    def found() -> Iterator[_Row]:
        for number, row in enumerate(table, 1):
            counted.read = source.size * number // len(table)
            if not isinstance(row, dict):
                bad = BadRow(0, "", "a JSON object", shown(row, 40))
                yield number, [None] * len(names), bad
                continue
            cells = [_plain(row.get(name)) for name in names]
            yield number, *_short(cells, names, None, limits)

    yield from _collected(found(), names, source, counted, rows)
