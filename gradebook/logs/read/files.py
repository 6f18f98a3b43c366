"""Files as data frames. A log is data: nothing in it is executed or unpickled.

pyarrow reads CSV and Parquet, Python's json reads JSON. The index of a frame is
the line in the file, from 1; in Parquet it is the row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import EXPANSION, TEXT_BYTES, Source, unique

LOOK = 200
"""So many rows are looked at to see what the columns are."""
DECIMALS = 12
"""Numbers with more decimals are written in full, not rounded."""
BINARY = (b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")
"""How Parquet, zip, gzip and pickle files begin."""


@dataclass(eq=False)
class Rows:
    """The rows of a file.

    frame  the columns that are used; empty in rows that cannot be read
    types  column -> the type of its numbers: a float type, "int", "text 4"
           for text of at most 4 decimals, "text" for longer ones; "" where it
           is not known
    bad    rows of `frame`, from 0, that cannot be read
    """

    frame: pd.DataFrame
    types: dict[str, str] = field(default_factory=dict)
    bad: dict[int, GradebookError] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class File:
    """A file that was looked at.

    names    all its columns
    numbers  those with numbers
    rows     reads all rows with some columns, of which others hold numbers.
             Raises GradebookError
    """

    names: list[str]
    numbers: list[str]
    rows: Callable[[Sequence[str], Sequence[str]], Rows]


def looked_at(source: Source) -> File:
    """A file's columns, and how its rows are read. Raises GradebookError for what
    is too large, empty, or no such file."""
    reader = {"csv": _csv, "json": _json, "parquet": _parquet}.get(source.kind)
    if reader is None:
        raise GradebookError(
            expected="what a recorder wrote",
            found="a damaged file, or one whose first step is cut off",
        )
    return reader(source)


def _empty() -> GradebookError:
    return GradebookError(expected="columns and rows", found="none")


def _of_numbers(frame: pd.DataFrame) -> list[str]:
    """The columns in which most cells that are not empty are numbers."""
    names = []
    for name, column in frame.items():
        words = column.dropna().map(lambda cell: str(cell).strip()).astype(object)
        values = pd.to_numeric(words[words != ""], errors="coerce")
        if values.notna().sum() * 2 > len(values):
            names.append(name)
    return names


def _text(source: Source) -> bytes:
    """The file's text in UTF-8."""
    with source.opened() as file:
        data = file.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise refuse(f"at most {TEXT_BYTES:,} bytes of text; split the log", "more")
    if data.startswith(BINARY):
        raise GradebookError(expected="text", found="a binary file")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GradebookError(expected="text in UTF-8", found="UTF-16")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode()
    except UnicodeDecodeError:  # what is no text becomes a question mark
        data = data.decode("utf-8", errors="replace").encode()
    return data


def _csv(source: Source) -> File:
    import pyarrow as pa
    import pyarrow.csv as arrow

    data = _text(source)
    if not data.strip():
        raise _empty()
    first = data.split(b"\n", 1)[0].decode("utf-8", "replace")
    mark = max("\t,;", key=first.count)
    odd: dict[int, int] = {}  # row -> how many cells it has

    def skip(row: Any) -> str:
        odd[row.number - 2] = row.actual_columns  # counted from the header, 1
        return "skip"

    try:
        text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
        names = unique(next(filter(None, csv.reader(text, delimiter=mark))))
        table = arrow.read_csv(
            io.BytesIO(data + b"\n"),  # one line without an end is no table to it
            read_options=arrow.ReadOptions(
                autogenerate_column_names=True,
                use_threads=False,
                block_size=len(data) + 1,
            ),
            parse_options=arrow.ParseOptions(
                delimiter=mark, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow.ConvertOptions(
                column_types={f"f{i}": pa.string() for i in range(len(names))},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, ValueError, csv.Error, StopIteration) as error:
        if isinstance(error, GradebookError):
            raise
        raise refuse("rows of cells", str(error)) from error
    lines = _lines(data, table.num_rows + len(odd))[1:]
    table = table.slice(1).rename_columns(names)
    if not len(lines):
        raise _empty()
    rows = partial(_of_text, table, lines, odd)
    return File(names, _of_numbers(table.slice(0, LOOK).to_pandas()), rows)


def _of_text(
    table: Any,
    lines: np.ndarray,
    odd: dict[int, int],
    use: Sequence[str],
    numbers: Sequence[str],
) -> Rows:
    """Columns of text, null where a cell is empty, as numbers where all cells
    are some, or as categories. `odd` rows are missing in the table."""
    import pyarrow as pa

    bad = {row: refuse(f"{table.num_columns} cells", n) for row, n in odd.items()}
    types: dict[str, str] = {}
    columns: dict[str, Any] = {}
    for name in use:
        if name in table.column_names:
            column = table[name]
            values = column.dictionary_encode().combine_chunks()
            if name in numbers:
                try:
                    as_numbers = column.cast(pa.float64())
                except pa.ArrowException:
                    pass  # some cell is no number: the text is read cell by cell
                else:
                    types[name] = _written(column)
                    values = values if column.null_count else as_numbers
            columns[name] = values.to_pandas()
    whole = np.delete(np.arange(len(lines)), [*odd])
    frame = pd.DataFrame(columns).set_axis(whole)
    if odd:
        frame = frame.reindex(range(len(lines)))
    return Rows(frame.set_axis(lines), types, bad)


def _written(column: Any) -> str:
    """How numbers are written: "int", "text 4", "text", or "" for no number."""
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return ""
    if not pc.any(pc.match_substring_regex(column, "[eE.]")).as_py():
        return "int"
    if pc.any(pc.match_substring_regex(column, "[eE]")).as_py():
        return "text"
    point = pc.find_substring(column, ".")
    after = pc.subtract(pc.subtract(pc.utf8_length(column), point), 1)
    most = pc.max(pc.if_else(pc.equal(point, -1), 0, after)).as_py()
    return f"text {most}" if most <= DECIMALS else "text"


def _lines(data: bytes, rows: int) -> np.ndarray:
    """The line on which each row begins, from 1. int64 [R]"""
    raw = np.frombuffer(data, "uint8")
    ends = np.flatnonzero(raw == ord("\n"))
    if rows != len(ends) + (not data.endswith(b"\n")):
        # A line end inside quotation marks ends no row, and an empty line is none.
        inside = np.bitwise_xor.accumulate(raw == ord('"'))
        starts = np.append(0, ends[~inside[ends]] + 1)
        starts = starts[starts < len(data)]
        starts = starts[~np.isin(raw[starts], [*b"\r\n"])]
        if len(starts) == rows:
            return np.searchsorted(ends, starts) + 1
    return np.arange(1, rows + 1)


def _json(source: Source) -> File:
    """JSON Lines, or one JSON value: an array of objects, or the table of
    `columns` and `data` as which W&B exports one."""
    data = _text(source)
    table, lines = _one_value(data), enumerate(io.BytesIO(data), 1)
    if table is not None:
        numbered = [*enumerate(table, 1)]
    else:
        numbered = [(line, _parsed(text)) for line, text in lines if text.strip()]
    bad = {
        row: GradebookError(expected="a JSON object", found=shown(value, 40))
        for row, (_, value) in enumerate(numbered)
        if not isinstance(value, dict)
    }
    index = [line for line, _ in numbered]
    objects = [{} if row in bad else value for row, (_, value) in enumerate(numbered)]
    names = [*dict.fromkeys(str(key) for value in objects[:LOOK] for key in value)]
    if not names:
        raise GradebookError(
            expected="one JSON object a line", found="none in the first lines"
        )

    def rows(use: Sequence[str], numbers: Sequence[str]) -> Rows:
        cells = {name: [value.get(name) for value in objects] for name in use}
        columns = {n: pd.Series(c, index, dtype=object) for n, c in cells.items()}
        whole = {
            n: c if c.isna().any() else c.infer_objects() for n, c in columns.items()
        }
        return Rows(pd.DataFrame(whole, index), bad=bad)

    look = pd.DataFrame(objects[:LOOK], columns=names, dtype=object)
    return File(unique(names), _of_numbers(look), rows)


def _parsed(text: bytes) -> Any:
    """The value, or the error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error


def _one_value(data: bytes) -> list[Any] | None:
    """The rows of a file that is one JSON value; None for JSON Lines."""
    start = data[:2048].lstrip()
    if not start.startswith(b"[") and b'"columns"' not in start:
        return None
    value = _parsed(data)
    if isinstance(value, dict):
        names, rows = value.get("columns"), value.get("data")
        if not isinstance(names, list) or not isinstance(rows, list):
            return None
        names = unique([str(name) for name in names])
        return [dict(zip(names, row)) if isinstance(row, list) else row for row in rows]
    if isinstance(value, list) and any(isinstance(row, dict) for row in value[:100]):
        return value
    return None


@contextmanager
def _parquet_file(source: Source) -> Iterator[Any]:
    """The file as pyarrow has it. Whatever it raises becomes a GradebookError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    limits = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 2**20}
    try:
        with source.opened() as file:
            yield pq.ParquetFile(file, **limits)
    except GradebookError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        text = str(error).splitlines()[0] if str(error) else "no data"
        raise GradebookError(
            expected="a Parquet file", found=shown(text, 160)
        ) from error


def _parquet(source: Source) -> File:
    with _parquet_file(source) as log:
        schema, meta = log.schema_arrow, log.metadata
        if b"gradebook" in (schema.metadata or {}):
            raise GradebookError(
                expected="a recording in .arrows files",
                found="one in Parquet, which earlier versions wrote and"
                " this one does not read",
            )
        types = {name: _number_type(schema.field(name).type) for name in schema.names}
        groups = [meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)]
        names = unique(schema.names)
    for what, size, most in (
        ("bytes in a row group", max(groups, default=0), TEXT_BYTES),
        ("bytes when it is unpacked", sum(groups), source.most_unpacked),
        ("rows", meta.num_rows, max(10_000_000, source.size * EXPANSION)),
    ):
        if size > most:
            raise GradebookError(expected=f"at most {most:,} {what}", found=f"{size:,}")
    if not names or not meta.num_rows:
        raise _empty()

    def rows(use: Sequence[str], numbers: Sequence[str]) -> Rows:
        with _parquet_file(source) as log:
            frame = to_frame(log.read(columns=[n for n in names if n in use]))
        return Rows(frame.set_axis(np.arange(1, len(frame) + 1)), types)

    scalar = [n for n in names if types[n] and "list" not in str(schema.field(n).type)]
    return File(names, scalar, rows)


def _number_type(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _number_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"text {kind.scale}"
    if pa.types.is_integer(kind):
        return "int"
    sizes = {"halffloat": "float16", "float": "float32", "double": "float64"}
    return sizes.get(str(kind), "")


def to_frame(table: Any) -> pd.DataFrame:
    """An Arrow table as a frame; text, and what is nested, as categories."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, column in zip(table.schema.names, table.columns):
        kind = column.type
        inside = kind.value_type if pa.types.is_list(kind) else None
        per_token = inside is not None and pa.types.is_primitive(inside)
        if pa.types.is_nested(kind) and not per_token:
            cells = column.to_pylist()
            column = pa.array([json.dumps(cell, default=str) for cell in cells])
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        columns[name] = column.to_pandas()
    return pd.DataFrame(columns)
