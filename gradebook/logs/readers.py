"""Readers: files as frames of whole rows, a part at a time.

A log is data: nothing in it is executed or unpickled. CSV, TSV and JSON
Lines are read line by line, Parquet a batch at a time with the columns
that are needed; pyarrow is imported only when a Parquet file comes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from gradebook.errors import GradebookError, shown

ROWS = 131_072
"""Rows of a part."""

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Limits:
    """What is refused, each with a message that names the limit."""

    file_bytes: int = 4 * 2**30
    columns: int = 512
    cell: int = 1_000_000
    line: int = 16_000_000
    row_group_bytes: int = 2 * 2**30
    expansion: int = 2000
    step_rows: int = 1_000_000
    files: int = 100_000


LIMITS = Limits()


@dataclass(frozen=True)
class Source:
    """A file by path, or an upload by name and bytes."""

    name: str
    path: Path | None = None
    data: bytes | None = None

    @property
    def kind(self) -> str:
        """csv, jsonl or parquet, by the name's ending or the first bytes.
        Raises GradebookError for anything else."""
        kind = ENDINGS.get(Path(self.name).suffix.lower(), "")
        if not kind:
            raise GradebookError(
                file=self.name,
                expected="a .parquet, .csv, .tsv or .jsonl file",
                found=shown(Path(self.name).suffix),
            )
        return kind

    @property
    def size(self) -> int:
        """Bytes."""
        if self.data is not None:
            return len(self.data)
        return self.path.stat().st_size if self.path else 0

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The bytes as a file. Raises GradebookError."""
        if self.data is not None:
            yield io.BytesIO(self.data)
            return
        try:
            file = open(str(self.path), "rb")
        except OSError as error:
            raise GradebookError(
                file=self.name, expected="a readable file", found=str(error)
            ) from error
        with file:
            yield file


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read at all. `row` counts from 0 in its part."""

    row: int
    column: str
    expected: str
    found: str


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive rows of one file.

    lines   int64 [R] line in the file, from 1; in Parquet the row, from 1
    bad     rows that cannot be read; their cells are empty
    bytes   how much of the file has been read after this part
    """

    frame: pd.DataFrame
    source: Source
    lines: np.ndarray
    bad: tuple[BadRow, ...] = ()
    bytes: int = 0


def sources(paths: Iterable[str | Path | Source]) -> list[Source]:
    """Files and the logs inside directories, in natural order.

    Raises GradebookError when there is none.
    """
    found: list[Source] = []
    for path in paths:
        if isinstance(path, Source):
            found.append(path)
            continue
        path = Path(path)
        if path.is_dir():
            inside = (p for p in path.iterdir() if p.is_file())
            logs = [p for p in inside if p.suffix.lower() in ENDINGS]
            logs = [p for p in logs if p.suffix.lower() not in (".txt", ".json")]
            logs.sort(key=lambda p: natural(p.name))
            found += [Source(str(p), p) for p in logs]
        elif path.is_file():
            found.append(Source(str(path), path))
        else:
            raise GradebookError(
                file=str(path), expected="a file or a directory", found="none"
            )
    if not found:
        raise GradebookError(
            file=", ".join(str(p) for p in paths),
            expected="a .parquet, .csv, .tsv or .jsonl file",
            found="none",
        )
    if len(found) > LIMITS.files:
        raise GradebookError(
            expected=f"at most {LIMITS.files} files", found=str(len(found))
        )
    return found


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key under which 10.jsonl comes after 9.jsonl."""
    return [
        (0, int(word), "") if word.isdigit() and len(word) < 19 else (1, 0, word)
        for word in re.findall(r"[0-9]+|[^0-9]+", name)
    ]


def number_in(name: str) -> int | None:
    """The last number in a file's name: the step, where a log has none."""
    found = re.findall(r"[0-9]+", Path(name).stem)
    return int(found[-1]) if found and len(found[-1]) < 16 else None


def header(source: Source) -> tuple[list[str], list[str]]:
    """The names of all columns, and of those with numbers."""
    first = next(parts(source, None, rows=200), None)
    if first is None or not len(first.frame.columns):
        raise GradebookError(
            file=source.name, expected="columns and rows", found="none"
        )
    frame = first.frame
    names = [str(c) for c in frame.columns]
    return names, [n for n in names if _is_numbers(frame[n])]


def _is_numbers(column: pd.Series) -> bool:
    if column.dtype.kind in "fiu":
        return True
    if column.dtype.kind == "b":
        return False
    cells = column.dropna()
    words = cells.map(lambda c: str(c).strip())
    some = words[words != ""]
    values = pd.to_numeric(some, errors="coerce")
    return bool(len(some)) and bool((values.notna().mean()) > 0.5)


def parts(
    source: Source,
    wanted: Sequence[str] | None,
    rows: int = ROWS,
    limits: Limits = LIMITS,
) -> Iterator[Part]:
    """The file's rows, `rows` at a time; only the `wanted` columns.

    Raises GradebookError for what is too large or no such file.
    """
    if source.size > limits.file_bytes:
        raise GradebookError(
            file=source.name,
            expected=f"at most {limits.file_bytes:,} bytes",
            found=f"{source.size:,}",
        )
    read: Callable[..., Iterator[Part]] = {
        "csv": _csv_parts,
        "jsonl": _jsonl_parts,
        "parquet": _parquet_parts,
    }[source.kind]
    try:
        yield from read(source, wanted, rows, limits)
    except GradebookError as error:
        raise error.inside(source.name) from error


# Text


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


def _csv_parts(
    source: Source, wanted: Sequence[str] | None, rows: int, limits: Limits
) -> Iterator[Part]:
    with source.opened() as file:
        counted = _Counted(_lines(file, limits))
        first = next(counted, None)
        if first is None:
            return
        mark = _delimiter(first)
        csv.field_size_limit(max(csv.field_size_limit(), limits.line))
        names = _unique(_names(first, mark), limits)
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

    def __iter__(self) -> "_Counted":
        return self

    def __next__(self) -> str:
        self.number, self.read, text = next(self.lines)
        return text


def _delimiter(line: str) -> str:
    counts = {mark: line.count(mark) for mark in ("\t", ",", ";")}
    return max(counts, key=lambda mark: counts[mark])


def _unique(names: list[str], limits: Limits) -> list[str]:
    """Column names. Raises GradebookError for too many, or one twice."""
    names = [name.strip() for name in names]
    if len(names) > limits.columns:
        raise GradebookError(
            expected=f"at most {limits.columns} columns",
            found=str(len(names)),
        )
    for at, name in enumerate(names):
        if name and name in names[:at]:
            raise GradebookError(
                key=name, expected="one column of that name", found="two"
            )
    return names


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


def _jsonl_parts(
    source: Source, wanted: Sequence[str] | None, rows: int, limits: Limits
) -> Iterator[Part]:
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
    """The line's JSON, or the error."""
    try:
        return json.loads(text)
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
    """A value as a cell; what is nested stays only when it is a list."""
    if isinstance(value, dict):
        return shown(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float("nan") if abs(value) > 1e300 else float(value)
    return value


# Parquet


def _parquet_parts(
    source: Source, wanted: Sequence[str] | None, rows: int, limits: Limits
) -> Iterator[Part]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise GradebookError(
            "Parquet files need pyarrow: pip install pyarrow"
        ) from error
    failures = (pa.ArrowException, OSError, ValueError, KeyError, MemoryError)
    with source.opened() as file:
        try:
            log = pq.ParquetFile(
                file, thrift_string_size_limit=2**24,
                thrift_container_size_limit=2**20,
            )
            names = _checked_schema(log, wanted, source, limits)
            texts = [n for n in names if _is_text(log.schema_arrow, n)]
            if texts:
                log = pq.ParquetFile(file, read_dictionary=texts)
            batches = log.iter_batches(batch_size=rows, columns=names)
            row, total = 1, max(log.metadata.num_rows, 1)
            for batch in batches:
                frame = _to_frame(batch, limits)
                lines = np.arange(row, row + len(frame))
                row += len(frame)
                read = int(source.size * (row - 1) / total)
                if len(frame):
                    yield Part(frame, source, lines, (), read)
        except GradebookError:
            raise
        except failures as error:
            text = str(error).splitlines()[0] if str(error) else "no data"
            raise GradebookError(
                expected="a Parquet file", found=shown(text, 160)
            ) from error


def _is_text(schema: Any, name: str) -> bool:
    import pyarrow as pa

    kind = schema.field(name).type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _checked_schema(
    log: Any, wanted: Sequence[str] | None, source: Source, limits: Limits
) -> list[str]:
    """The columns to read. Raises GradebookError for an absurd schema, or
    more data than the limits allow, before anything is unpacked."""
    import pyarrow as pa

    schema, meta = log.schema_arrow, log.metadata
    if meta.num_columns > limits.columns:
        raise GradebookError(
            expected=f"at most {limits.columns} columns",
            found=f"{meta.num_columns:,}",
        )
    names = _unique(list(schema.names), limits)
    nested = {
        f.name
        for f in schema
        if pa.types.is_nested(f.type)
        and not (_is_flag_list(f.type) or _is_messages(f.type))
    }
    use = [n for n in names if (not wanted or n in wanted)]
    if wanted:
        for name in use:
            if name in nested:
                raise GradebookError(
                    key=name,
                    expected="numbers or text",
                    found=str(schema.field(name).type)[:60],
                )
    use = [n for n in use if n not in nested]
    _refuse_bombs(meta, use, source, limits)
    return use


def _is_flag_list(kind: Any) -> bool:
    import pyarrow as pa

    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    inside = kind.value_type
    return pa.types.is_integer(inside) or pa.types.is_boolean(inside)


def _is_messages(kind: Any) -> bool:
    """Lists of texts by name, as a conversation's roles and contents."""
    import pyarrow as pa

    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    inside = kind.value_type
    return pa.types.is_struct(inside) and all(
        pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
        for f in inside
    )


def _refuse_bombs(
    meta: Any, use: list[str], source: Source, limits: Limits
) -> None:
    total = 0
    for group in range(meta.num_row_groups):
        about = meta.row_group(group)
        size = 0
        for at in range(about.num_columns):
            column = about.column(at)
            if column.path_in_schema.split(".")[0] in use:
                size += max(column.total_uncompressed_size, 0)
        total += size
        if size > limits.row_group_bytes:
            raise GradebookError(
                f"row group {group} is too large when unpacked",
                expected=f"at most {limits.row_group_bytes:,} bytes",
                found=f"{size:,}",
            )
    rows = meta.num_rows
    if rows > 2**31 or rows > max(10_000_000, source.size * limits.expansion):
        raise GradebookError(
            expected="as many rows as the file can hold", found=f"{rows:,}"
        )
    if total > max(2**26, source.size * limits.expansion):
        raise GradebookError(
            "the file unpacks to far more than its size",
            expected=f"at most {limits.expansion} times {source.size:,} bytes",
            found=f"{total:,}",
        )


def _to_frame(batch: Any, limits: Limits) -> pd.DataFrame:
    """A record batch as a frame; text as categories."""
    import pyarrow as pa

    table: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns):
        kind = column.type
        if pa.types.is_dictionary(kind):
            _refuse_long(name, column.dictionary, limits)
            table[name] = column.to_pandas()
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            _refuse_long(name, column, limits)
            table[name] = column.dictionary_encode().to_pandas()
        elif _is_messages(kind):
            texts = pa.array([json.dumps(v) for v in column.to_pylist()])
            _refuse_long(name, texts, limits)
            table[name] = texts.dictionary_encode().to_pandas()
        else:
            table[name] = _plain_column(name, column, kind)
    return pd.DataFrame(table)


def _plain_column(name: str, column: Any, kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        if column.null_count:
            column = column.cast(pa.float64(), safe=False)
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(kind) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pd.Series(column.to_pylist(), dtype=object)


def _refuse_long(name: str, texts: Any, limits: Limits) -> None:
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > limits.cell:
        raise GradebookError(
            key=name,
            expected=f"at most {limits.cell:,} bytes in a cell",
            found=f"{longest:,}",
        )
