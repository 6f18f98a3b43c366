"""Files as data frames. A log is data: nothing in it is executed or unpickled.

pyarrow reads CSV and Parquet, Python's json reads JSON. The index of a frame is
the line in the file, from 1; in Parquet it is the row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import TEXT_BYTES, Source, unique

PEEK_BYTES, PEEK_ROWS = 2**20, 200
"""How much of a file is looked at to see what its columns are."""
DECIMALS = 12
"""Numbers with more decimals are written in full, not rounded."""


@dataclass(eq=False)
class Rows:
    """Some rows of a file.

    frame  the columns that are used, NaN in rows that cannot be read
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
    if not len(frame.columns) or not len(frame):
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
                return _json(source, use)
            case "parquet":
                from gradebook.logs.read.parquet import read_parquet

                return Rows(*read_parquet(source, use))
        raise GradebookError(
            expected="what a recorder wrote",
            found="a damaged file, or one whose first step is cut off",
        )
    except GradebookError as error:
        raise error.inside(source.name) from error


def _text(source: Source, use: Sequence[str], quoted: bool) -> bytes:
    """The file's text in UTF-8; without `use`, its first whole lines."""
    with source.opened() as file:
        data = file.read(PEEK_BYTES if not use else TEXT_BYTES + 1)
        end = data.rfind(b"\n") + 1
        if not use and len(data) == PEEK_BYTES:
            if end and not (quoted and data.count(b'"', 0, end) % 2):
                data = data[:end]
            else:  # the first row is longer than the look
                data += file.read(TEXT_BYTES)
    if len(data) > TEXT_BYTES:
        raise refuse(f"at most {TEXT_BYTES:,} bytes of text; split the log", "more")
    if data.startswith((b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"\x80\x04")):
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

    data = _text(source, use, quoted=True)
    if not data.strip():
        return Rows(pd.DataFrame())
    first = data.split(b"\n", 1)[0]
    mark = max("\t,;", key=lambda mark: first.count(mark.encode()))
    reader = csv.reader(
        io.StringIO(data[:PEEK_BYTES].decode("utf-8", "replace")), delimiter=mark
    )
    try:
        names = unique(next(reader, []))
    except csv.Error as error:
        raise refuse("a line of column names", str(error)) from error
    if not names:
        raise GradebookError(expected="a line of column names", found="an empty line")
    for _ in range(reader.line_num):
        data = data[data.find(b"\n") + 1 or len(data) :]
    odd: dict[int, int] = {}

    def skip(row: Any) -> str:
        odd[row.number - 1] = row.actual_columns
        return "skip"

    places = {str(at): name for at, name in enumerate(names) if not use or name in use}
    try:
        table = arrow.read_csv(
            io.BytesIO(data or b"\n"),
            read_options=arrow.ReadOptions(
                column_names=[str(at) for at in range(len(names))],
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
    except (pa.ArrowException, ValueError) as error:
        raise refuse("rows of cells", str(error)) from error
    rows = Rows(pd.DataFrame(index=range(table.num_rows)))
    for name, column in zip(places.values(), table.columns):
        if use and name not in numbers:
            rows.frame[name] = _labels(column)
        else:
            rows.frame[name] = _cells(name, column, rows.types)
    if odd:
        every = np.arange(table.num_rows + len(odd))
        rows.frame.index = np.setdiff1d(every, [*odd])
        rows.frame = rows.frame.reindex(every)
        for row, count in odd.items():
            rows.bad[row] = refuse(f"{len(names)} cells", count)
    rows.frame.index = reader.line_num + _lines(data, len(rows.frame))
    return rows


def _labels(column: Any) -> Any:
    return column.dictionary_encode().combine_chunks().to_pandas()


def _cells(name: str, column: Any, types: dict[str, str]) -> Any:
    """A column of text as numbers, where all its cells are some, else as
    labels. An empty cell is None, and a NaN that stands in the file "nan"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        values = column.cast(pa.float64())
    except pa.ArrowException:
        return _labels(column)
    if column.null_count == len(column):
        return np.full(len(column), None, dtype=object)
    point = pc.find_substring(column, ".")
    after = pc.subtract(pc.subtract(pc.utf8_length(column), point), 1)
    most = pc.max(pc.if_else(pc.equal(point, -1), 0, after)).as_py()
    whole = not pc.any(pc.match_substring_regex(column, "[eE.]")).as_py()
    plain = not pc.any(pc.match_substring_regex(column, "[eE]")).as_py()
    types[name] = _text_type(most if plain else DECIMALS + 1, whole)
    if not column.null_count:
        return values.to_numpy()
    cells = np.array(values.to_pylist(), dtype=object)
    cells[values.is_valid().to_numpy() & (cells != cells)] = "nan"
    return cells


def _text_type(decimals: int, whole: bool) -> str:
    if whole:
        return "int"
    return f"text {decimals}" if decimals <= DECIMALS else "text"


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


def _json(source: Source, use: Sequence[str]) -> Rows:
    """JSON Lines, or one JSON value: an array of objects, or the table of
    `columns` and `data` as which W&B exports one."""
    data = _text(source, use, quoted=False)
    table = _whole_table(source, data)
    text = enumerate(io.BytesIO(data), 1)
    objects: Iterator[tuple[int, Any]] = (
        ((line, _object(words.decode())) for line, words in text if words.strip())
        if table is None
        else enumerate(table, 1)
    )
    first = list(islice(objects, PEEK_ROWS))
    names = list(use) or _keys(row for _, row in first)
    cells: dict[str, list[Any]] = {name: [] for name in names}
    lines: list[int] = []
    bad: dict[int, GradebookError] = {}
    for line, row in chain(first, objects if use else ()):
        if not isinstance(row, dict):
            wrong = GradebookError(expected="a JSON object", found=shown(row, 40))
            bad[len(lines)], row = wrong, {}
        lines.append(line)
        for name in names:
            cells[name].append(_plain(row.get(name)))
    rows = Rows(pd.DataFrame(index=lines), bad=bad)
    for name, values in cells.items():
        kinds = set(map(type, values))
        if kinds and kinds <= {int, float}:
            rows.frame[name] = np.array(values)
            rows.types[name] = _type_of(np.array(values))
        elif kinds == {bool}:
            rows.frame[name] = values
        else:
            nan = ("nan" if isinstance(v, float) and v != v else v for v in values)
            rows.frame[name] = pd.Series(nan, lines, dtype=object)
    return rows


def _type_of(values: np.ndarray) -> str:
    """The type of numbers that stood in a text, by how they are written."""
    most = 0
    for value in np.unique(values).tolist() if values.dtype.kind == "f" else ():
        if np.isfinite(value):
            text = repr(value).removesuffix(".0")
            most = max(most, len(text.partition(".")[2]), 99 * ("e" in text))
        if most > DECIMALS:
            break
    return _text_type(most, values.dtype.kind == "i")


def _object(text: str) -> Any:
    """The JSON, or the error. Half a surrogate pair, which no text can be
    written with, becomes a question mark."""
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():
            whole = json.dumps(value, ensure_ascii=False)
            value = json.loads(whole.encode("utf-8", "replace"))
        return value
    except (ValueError, RecursionError) as error:
        return error


def _whole_table(source: Source, data: bytes) -> list[Any] | None:
    """The rows of a file that is one JSON value; None for JSON Lines."""
    start = data[:2048].lstrip()
    if start.startswith(b"{"):
        if b'"columns"' not in start:
            return None
    elif not start.startswith(b"["):
        return None
    if len(data) == PEEK_BYTES or source.size > len(data):
        data = _text(source, ("all",), quoted=False)
    value = _object(data.decode())
    if isinstance(value, dict):
        names, table = value.get("columns"), value.get("data")
        if not isinstance(names, list) or not isinstance(table, list):
            return None
        names = unique([str(name) for name in names])
        return [dict(zip(names, r)) if isinstance(r, list) else r for r in table]
    if not isinstance(value, list):
        return None
    return value if any(isinstance(row, dict) for row in value[:100]) else None


def _keys(rows: Iterable[Any]) -> list[str]:
    names = dict.fromkeys(str(k) for row in rows if isinstance(row, dict) for k in row)
    if not names:
        raise GradebookError(
            expected="one JSON object a line", found="none in the first lines"
        )
    return unique([*names])


def _plain(value: Any) -> Any:
    """A value as a cell; a mapping as text."""
    if isinstance(value, dict):
        return json.dumps(value, default=str)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float("nan") if abs(value) > 1e300 else float(value)
    return value
