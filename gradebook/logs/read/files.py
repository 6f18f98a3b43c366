"""Files as data frames. A log is data: nothing in it is executed or unpickled.

pyarrow reads CSV and Parquet, Python's json reads JSON, whose values become the
text that a CSV file would have. The index of a frame is the line in the file,
from 1; in Parquet it is the row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import TEXT_BYTES, Source, unique

PEEK_BYTES, PEEK_ROWS = 2**20, 200
"""How much of a file is looked at to see what its columns are."""
AT_ONCE = 10_000
"""Rows of JSON that are Python's objects at once."""
DECIMALS = 12
"""Numbers with more decimals are written in full, not rounded."""
BINARY = (b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")
"""How Parquet, zip, gzip and pickle files begin."""


@dataclass(eq=False)
class Rows:
    """Some rows of a file.

    frame  the columns that are used: float64, or categories of text; empty
           in rows that cannot be read
    types  column -> the type of its numbers: a float type, "int", "text 4"
           for text of at most 4 decimals, "text" for longer ones
    bad    rows of `frame`, from 0, that cannot be read
    """

    frame: pd.DataFrame
    types: dict[str, str] = field(default_factory=dict)
    bad: dict[int, GradebookError] = field(default_factory=dict)


def header(source: Source) -> tuple[list[str], list[str]]:
    """The names of all columns, and of those with numbers. Raises
    GradebookError."""
    frame = read_rows(source).frame
    if not frame.size:
        raise GradebookError(
            file=source.name, expected="columns and rows", found="none"
        )
    return [*frame], [name for name in frame if _is_numbers(frame[name])]


def _is_numbers(column: pd.Series) -> bool:
    """Most cells that are not empty are numbers."""
    if column.dtype.kind in "fiub":
        return column.dtype.kind != "b"
    words = column.dropna().map(lambda cell: str(cell).strip()).astype(object)
    values = pd.to_numeric(words[words != ""], errors="coerce")
    return bool(values.notna().sum() * 2 > len(values))


def read_rows(
    source: Source, use: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Rows:
    """All rows of a file with the columns `use`, of which `numbers` hold
    numbers; without them a look at the first rows, with all columns. Raises
    GradebookError for what is too large or no such file."""
    try:
        match source.kind:
            case "csv":
                return _csv(source, use, numbers)
            case "json":
                return _json(source, use, numbers)
            case "parquet":
                from gradebook.logs.read.parquet import read_parquet

                return Rows(*read_parquet(source, use))
        raise GradebookError(
            expected="what a recorder wrote",
            found="a damaged file, or one whose first step is cut off",
        )
    except GradebookError as error:
        raise error.inside(source.name) from error


def _text(source: Source, whole: bool, quoted: bool = False) -> bytes:
    """The file's text in UTF-8, or its first whole lines."""
    with source.opened() as file:
        data = file.read(TEXT_BYTES + 1 if whole else PEEK_BYTES)
        if not whole and len(data) == PEEK_BYTES:
            end = data.rfind(b"\n") + 1
            if end and not (quoted and data.count(b'"', 0, end) % 2):
                data = data[:end]
            else:  # the first row is longer than the look
                data += file.read(TEXT_BYTES)
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


def _csv(source: Source, use: Sequence[str], numbers: Sequence[str]) -> Rows:
    import pyarrow as pa
    import pyarrow.csv as arrow

    data = _text(source, bool(use), quoted=True)
    if not data.strip():
        return Rows(pd.DataFrame())
    first = data.split(b"\n", 1)[0].decode("utf-8", "replace")
    mark = max("\t,;", key=first.count)
    odd: dict[int, int] = {}

    def skip(row: Any) -> str:
        odd[row.number - 2] = row.actual_columns  # counted from the header, 1
        return "skip"

    try:
        text = io.StringIO(data[:PEEK_BYTES].decode("utf-8", "replace"))
        names = unique(next(filter(None, csv.reader(text, delimiter=mark))))
        places = {f"f{i}": n for i, n in enumerate(names) if not use or n in use}
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
                column_types=dict.fromkeys(places, pa.string()),
                include_columns=[*places],
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, ValueError, csv.Error, StopIteration) as error:
        if isinstance(error, GradebookError):
            raise
        raise refuse("rows of cells", str(error)) from error
    lines = _lines(data, table.num_rows + len(odd))[1:]
    del data  # the table holds its text once more
    table = table.slice(1).rename_columns([*places.values()])
    rows = _of_text(table, numbers if use else names)
    if odd:
        rows.bad = {at: refuse(f"{len(names)} cells", odd[at]) for at in odd}
        good = rows.frame.set_axis(np.delete(np.arange(len(lines)), [*odd]))
        rows.frame = good.reindex(range(len(lines)))
    rows.frame.index = lines
    return rows


def _of_text(table: Any, numbers: Sequence[str]) -> Rows:
    """Columns of text, null where a cell is empty, as numbers where they are
    some, or as categories."""
    import pyarrow as pa

    rows = Rows(pd.DataFrame(index=range(table.num_rows)))
    for name, column in zip(table.column_names, table.columns):
        if name in numbers:
            try:
                values = column.cast(pa.float64())
            except pa.ArrowException:
                pass  # some cell is no number: the text is read cell by cell
            else:
                rows.types[name] = _written(column)
                if not column.null_count:
                    rows.frame[name] = values.to_numpy()
                    continue
        rows.frame[name] = column.dictionary_encode().combine_chunks().to_pandas()
    return rows


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


def _json(source: Source, use: Sequence[str], numbers: Sequence[str]) -> Rows:
    """JSON Lines, or one JSON value: an array of objects, or the table of
    `columns` and `data` as which W&B exports one."""
    import pyarrow as pa

    data = _text(source, bool(use))
    table = _one_value(source, data)
    values: Iterable[tuple[int, Any]] = (
        enumerate(table, 1)
        if table is not None
        else (
            (line, _parsed(text))
            for line, text in enumerate(io.BytesIO(data), 1)
            if text.strip()
        )
    )
    if not use:
        values = [*islice(values, PEEK_ROWS)]
        keys = {str(key): 0 for _, v in values if isinstance(v, dict) for key in v}
        if not keys:
            raise GradebookError(
                expected="one JSON object a line", found="none in the first lines"
            )
        use = numbers = unique([*keys])
    schema = pa.schema([(name, pa.string()) for name in use])
    rest, tables = iter(values), [schema.empty_table()]
    lines: list[int] = []
    bad: dict[int, GradebookError] = {}
    while some := [*islice(rest, AT_ONCE)]:
        for line, value in some:
            if not isinstance(value, dict):
                wrong = GradebookError(expected="a JSON object", found=shown(value, 40))
                bad[len(lines)] = wrong
            lines.append(line)
        objects = [value if isinstance(value, dict) else {} for _, value in some]
        cells = {name: [_cell(v.get(name)) for v in objects] for name in use}
        tables.append(pa.table(cells, schema))
    rows = _of_text(pa.concat_tables(tables), numbers)
    rows.frame.index, rows.bad = pd.Index(lines), bad
    return rows


def _cell(value: Any) -> str | None:
    """A value as a CSV file has it. Half a surrogate pair, which no text can
    be written with, becomes a question mark."""
    if value is None:
        return None
    if isinstance(value, float | int) and not isinstance(value, bool):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _parsed(text: bytes) -> Any:
    """The value, or the error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error


def _one_value(source: Source, data: bytes) -> list[Any] | None:
    """The rows of a file that is one JSON value; None for JSON Lines."""
    start = data[:2048].lstrip()
    if not start.startswith(b"[") and b'"columns"' not in start:
        return None
    value = _parsed(data if source.size <= len(data) else _text(source, whole=True))
    if isinstance(value, dict):
        names, rows = value.get("columns"), value.get("data")
        if not isinstance(names, list) or not isinstance(rows, list):
            return None
        names = unique([str(name) for name in names])
        return [dict(zip(names, row)) if isinstance(row, list) else row for row in rows]
    if isinstance(value, list) and any(isinstance(row, dict) for row in value[:100]):
        return value
    return None
