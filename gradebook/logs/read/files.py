"""Files as data frames, and what is refused of them. Nothing in a log is executed or
unpickled. A frame's index is the line in the file, from 1; in Parquet it is the row.
"""

from __future__ import annotations

import io
import json
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read import log_columns as cells
from gradebook.logs.read.broken import NAMED, Broken
from gradebook.logs.read.curves import as_curves
from gradebook.logs.read.formats import (
    OF_GROUPS,
    Format,
    format_of,
    of_folder,
    rows_of_groups,
    with_parts,
)
from gradebook.logs.read.log_columns import Columns, kind_of

ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    ".parquet": "parquet",
    ".arrows": "recording",
}
PACKED = {".gz": "gzip", ".zst": "zstd"}
"""Endings of compressed files, and how they are unpacked."""
OF_LOGS = set(ENDINGS) - {".txt", ".json"}
"""What is taken for a log inside a folder, unasked."""
LOGS = "a .parquet, .csv, .tsv or .jsonl file"
TEXT_BYTES = 2**31 - 2
"""The largest text that pyarrow reads at once."""
EXPANSION, LEAST_UNPACKED = 200, 2**26
"""A file unpacks to at most so many times its size, or to so many bytes."""
UPLOADED = 2**30
"""Bytes to which an upload unpacks at most."""
LOOK = 200
"""So many rows are looked at to see what the columns are."""
SOME_ROWS = 256
"""So many rows of a Parquet file are decoded at a time."""
MOST_COLUMNS = 512
BINARY: Mapping[bytes, str] = {
    b"PAR1": "a binary file (Parquet)",
    b"PK\x03\x04": "a binary file (zip)",
    b"\x1f\x8b": "a binary file (gzip)",
    b"\x80\x04": "a binary file (pickle)",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
"""How files begin that are no text in UTF-8, and what they are."""
NO_TABLES: Mapping[str, str] = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp"), "a picture"),
    ".pdf": "a PDF",
    **dict.fromkeys(
        (".pkl", ".pickle", ".pt", ".pth"),
        "a pickle, which can run code when it is opened",
    ),
}
"""Endings of files that people try, and what these are."""
MOST_FILES = 100_000
"""So many files of a folder are looked at."""
PEEKED = 2**20
"""Bytes of a file's first line that are read to see its fields."""

Choose = Callable[[dict[str, str], Format | None, cells.First], Columns]
"""From each column's name and what its cells are, a trainer's format, and each column's
first cells to what is read."""
SHOWN, WIDE = 3, 40
"""So many first cells of a column are kept to be shown, of so many characters."""


@dataclass(frozen=True)
class LogFile:
    """A file by path, or an upload by name and bytes."""

    name: str
    path: Path | None = None
    data: bytes | None = None

    @property
    def kind(self) -> str:
        """csv, json, parquet or recording, by the ending. Raises GradebookError for
        any other."""
        if (ending := _ending(self.name)) not in ENDINGS:
            found = NO_TABLES.get(ending, shown(Path(self.name).suffix))
            raise GradebookError(file=self.name, expected=LOGS, found=found)
        return ENDINGS[ending]

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path else len(self.data or b"")

    @property
    def most_unpacked(self) -> int:
        most = max(LEAST_UNPACKED, self.size * EXPANSION)
        return most if self.data is None else min(most, UPLOADED)

    def opened(self) -> BinaryIO:
        return open(self.path, "rb") if self.path else io.BytesIO(self.data or b"")

    def text(self) -> bytes:
        """The file's text, unpacked, in UTF-8; what is no text becomes a question mark.
        Raises GradebookError if there is none, or too much."""
        import pyarrow as pa

        packed = PACKED.get(Path(self.name).suffix.lower())
        most = min(self.most_unpacked, TEXT_BYTES) if packed else TEXT_BYTES
        data = bytearray()
        try:
            with self.opened() as file:
                stream = pa.CompressedInputStream(file, packed) if packed else file
                while (block := stream.read(2**20)) and len(data) <= most:
                    data += block
        except (pa.ArrowException, OSError) as error:
            kind = f"a {packed} file" if packed else "a readable file"
            raise refuse(kind, str(error)) from error
        if len(data) > most:
            raise refuse(f"at most {most:,} bytes; split the log", "more")
        for begins, kind in BINARY.items():
            if data.startswith(begins):
                raise GradebookError(expected="a table as text in UTF-8", found=kind)
        return data.decode("utf-8-sig", errors="replace").encode()


def _ending(name: str) -> str:
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


Paths = str | Path | LogFile | Iterable[str | Path | LogFile]
"""A file, a directory or an upload, or several of them."""


def each_path(paths: Paths) -> list[str | Path | LogFile]:
    """The paths; one path, which is no list, as a list."""
    return [paths] if isinstance(paths, str | Path | LogFile) else list(paths)


def sources(paths: Paths) -> list[LogFile]:
    """Files and the logs inside directories, in natural order; [] for a directory
    without any. Raises GradebookError for a path that does not exist, and for a file or
    a folder in a directory that cannot be read."""
    files: list[LogFile] = []
    for path in each_path(paths):
        if isinstance(path, LogFile):
            files.append(path)
            continue
        try:
            files += _sources_at(path)
        except OSError as error:
            kind = "a file or a folder that can be read"
            place = str(error.filename or path)
            raise GradebookError(
                file=place, expected=kind, found=str(error.strerror)
            ) from error
    return files


def _sources_at(path: str | Path) -> list[LogFile]:
    place = Path(path)
    if place.is_dir():
        return [LogFile(str(inside), inside) for inside in _inside(place)]
    if place.is_file():
        return [LogFile(str(path), place)]
    raise GradebookError(file=str(path), expected="a file or a directory", found="none")


def _inside(folder: Path) -> list[Path]:
    """The logs of a folder and of those in it: a recording, or what a trainer wrote,
    or every table; curves only if there is nothing else."""
    files = _all_inside(folder)
    logs = [p for p in files if _ending(p.name) in OF_LOGS]
    recorded = [p for p in files if _ending(p.name) == ".arrows"]
    if recorded:
        return [p for p in logs if p.parent == recorded[0].parent]
    if of_trainer := of_folder(files):
        return of_trainer
    tables = [p for p in logs if not _holds_curves(p)]
    return tables or logs or [p for p in files if _holds_curves(p)]


def _all_inside(folder: Path) -> list[Path]:
    """The files of a folder and of the folders in it, in natural order. Hidden folders,
    and links to folders, are left out."""
    files, waiting = list[Path](), [folder]
    while waiting and len(files) < MOST_FILES:
        inside = sorted(waiting.pop(0).iterdir(), key=lambda p: natural(p.name))
        seen = [p for p in inside if not p.name.startswith(".") and not p.is_symlink()]
        waiting += [p for p in seen if p.is_dir()]
        files += [p for p in inside if p.is_file()]
    return sorted(files, key=lambda p: [natural(part) for part in p.parts])


def _holds_curves(path: Path) -> bool:
    """The file is JSON, and its first record is of curves over steps."""
    if ENDINGS.get(path.suffix.lower()) != "json":
        return False
    with path.open("rb") as file:
        start = file.read(PEEKED)
    first = _parsed(start.split(b"\n", 1)[0])
    whole = first if isinstance(first, dict) else _parsed(start)
    records = _records(whole)
    record = records[0] if records else None
    return isinstance(record, dict) and bool(as_curves([*flat(record)]))


def natural(name: str) -> list[str | int]:
    """A key under which 10.jsonl comes after 9.jsonl: text, number, text, .."""
    parts: list[str | int] = [*re.split("([0-9]+)", name)]
    parts[1::2] = map(int, parts[1::2])
    return parts


def read_rows(source: LogFile, choose: Choose) -> tuple[pd.DataFrame, Broken]:
    """The columns of a file that `choose` takes, and the errors of lines that cannot
    be read; their rows are empty. Raises GradebookError for a file without any row."""
    if source.kind == "recording":
        damage = "a damaged file, or one whose first step is cut off"
        raise GradebookError(expected="what a recorder wrote", found=damage)
    readers = {"csv": _csv, "json": _json, "parquet": _parquet}
    frame, bad = readers[source.kind](source, choose)
    if frame.empty:
        raise GradebookError(expected="columns and rows", found="none")
    return frame, bad


def few_columns(count: int) -> None:
    """Raises GradebookError for more than MOST_COLUMNS."""
    if count > MOST_COLUMNS:
        raise refuse(f"at most {MOST_COLUMNS} columns", count)


def unique(names: Sequence[object]) -> list[str]:
    """Column names. Raises GradebookError for too many, or one twice."""
    few_columns(len(names))
    columns = pd.Index([*map(str, names)])
    for name in columns[columns.duplicated() & (columns != "")]:
        raise GradebookError(key=name, expected="one column of that name", found="two")
    return columns.tolist()


STEP_IN_NAME = re.compile(
    r"(?:^|[^a-z])(?:global_?step|step|iteration|iter|update)s?[_=-]?([0-9]+)", re.I
)


def step_in(name: str) -> int | None:
    """The step in a file's name, as in "step_7", or in the name of a folder around it.
    Without one, the last number in the file's name, if there is one."""
    path = Path(name)
    for part in (path.stem, *reversed(path.parts[-5:-1])):
        if match := STEP_IN_NAME.search(part):
            return int(match[1][-15:])
    digits = re.findall(r"[0-9]+", path.stem)
    return int(digits[-1][-15:]) if digits else None


def names_step(name: str) -> bool:
    """A file's name, or that of a folder that it is in, has the word for its step."""
    path = Path(name)
    return any(map(STEP_IN_NAME.search, (path.stem, *path.parts[-5:-1])))


def _kinds(frame: pd.DataFrame, typed: bool) -> dict[str, str]:
    """What the cells of each column are."""
    return {name: kind_of([*column], typed) for name, column in frame.items()}


def _first(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Each column's first cells, to be shown."""
    return {
        name: tuple(str(cell)[:WIDE] for cell in column[:SHOWN])
        for name, column in frame.items()
    }


def _csv(source: LogFile, choose: Choose) -> tuple[pd.DataFrame, Broken]:
    import pyarrow as pa
    import pyarrow.csv as arrow

    data = source.text()
    if not data.strip():
        raise GradebookError(expected="columns and rows", found="none")
    first = data.lstrip(b"\r\n").split(b"\n", 1)[0]
    mark = max("\t,;", key=first.decode("utf-8", "replace").count)
    outside = _first_row(data).split(b'"')[::2]  # quotation marks
    few_columns(1 + sum(part.count(mark.encode()) for part in outside))
    odd, cells = array("q"), array("q")  # the row, from 0, and how many cells it has

    def skip(row: Any) -> str:
        odd.append(row.number - 2)  # the header is row 1
        cells.append(row.actual_columns)
        return "skip"

    try:
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
                column_types={f"f{i}": pa.string() for i in range(MOST_COLUMNS)},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        raise refuse("rows of cells", str(error)) from error
    names = unique([str(column[0].as_py() or "").strip() for column in table.columns])
    table = table.slice(1).rename_columns(names)
    lines = _lines(data, table.num_rows + len(odd) + 1)[1:]
    look = table.slice(0, LOOK).to_pandas()
    columns = choose(_kinds(look, typed=False), format_of(names), _first(look))
    frame = to_frame(table.select(columns.used)).set_axis(np.delete(lines, odd))
    bad = Broken(len(lines))
    if odd:
        rows, expected = np.array(odd), GradebookError(expected=f"{len(names)} cells")
        cells_at = dict(zip(odd[:NAMED], cells))
        bad.note(rows, lambda row: expected.at(found=str(cells_at[row])), expected)
        frame = frame.reindex(lines)
    return frame, bad


def _first_row(data: bytes) -> bytes:
    """Up to the first line end outside quotation marks, behind empty lines."""
    start = end = len(data) - len(data.lstrip(b"\r\n"))
    quotes = 0
    while (line_end := data.find(b"\n", end)) >= 0:
        quotes += data.count(b'"', end, line_end)
        if quotes % 2 == 0:
            return data[start:line_end]
        end = line_end + 1
    return data[start:]


def _lines(data: bytes, rows: int) -> np.ndarray:
    """The line on which each row begins, from 1. int64 [R]"""
    raw = np.frombuffer(data, "uint8")
    ends = np.flatnonzero(raw == ord("\n"))
    # A line end inside quotation marks ends no row, and an empty line is none.
    inside = np.bitwise_xor.accumulate(raw == ord('"'))
    starts = np.append(0, ends[~inside[ends]] + 1)
    starts = starts[starts < len(data)]
    starts = starts[~np.isin(raw[starts], [*b"\r\n"])]
    whole = len(starts) == rows
    return np.searchsorted(ends, starts) + 1 if whole else np.arange(1, rows + 1)


def _json(source: LogFile, choose: Choose) -> tuple[pd.DataFrame, Broken]:
    """JSON Lines, an array of objects, a table of `columns` and `data`, as W&B's, or
    the history in a trainer's state."""
    lines = _json_lines(source.text())
    places, values = [*lines], [*lines.values()]
    nothing: dict[str, Any] = {}  # one, for all lines that are no object
    objects = [value if isinstance(value, dict) else nothing for value in values]
    names = _names_of(objects)
    if not names:
        raise GradebookError(expected="one JSON object a line", found="none at first")
    format = format_of(names)
    unpacked = format.unpacked(objects) if format else rows_of_groups(objects)
    if format is None and unpacked:
        format = OF_GROUPS
    if format is not None:
        objects = [dict(row) for _, row in unpacked]
        places = [places[n] for n, _ in unpacked]
        values = [values[n] for n, _ in unpacked]
    elif as_curves([*flat(objects[0])]):
        objects = [flat(row) for row in objects]
    else:
        objects = with_parts(objects)
    names, bad = unique(_names_of(objects)), Broken(len(objects))
    expected = GradebookError(expected="a JSON object")
    bad.note(
        np.flatnonzero([not isinstance(value, dict) for value in values]),
        lambda row: expected.at(found=shown(values[row], 40)),
        expected,
    )
    look = pd.DataFrame(objects[:LOOK], columns=names, dtype=object)
    used = choose(_kinds(look, typed=True), format, _first(look)).used
    return pd.DataFrame(objects, places, used, dtype=object), bad


def _json_lines(data: bytes) -> dict[int, Any]:
    """The values by number from 1: the records of one JSON value, or the lines of JSON
    Lines that are not empty. Raises GradebookError unless most are objects."""
    records = _records(_parsed(data))
    if records is not None:
        lines = dict(enumerate(records, 1))
        _mostly_objects(lines, [type(row) is dict for row in records])
        return lines
    stripped = enumerate(map(bytes.strip, data.split(b"\n")), 1)
    texts = {line: text for line, text in stripped if text}
    _mostly_objects(texts, [text[:1] == b"{" for text in texts.values()])
    return {line: _parsed(text) for line, text in texts.items()}


def _names_of(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names in the first objects, each once, in their order."""
    return [*dict.fromkeys(chain.from_iterable(objects[:LOOK]))]


def _records(value: Any) -> list[Any] | None:
    """The records of a JSON value: an array, a table, or a trainer's state; None for
    any other."""
    if isinstance(value, dict) and isinstance(value.get("columns"), list):
        names, table = unique(value["columns"]), value.get("data")
        rows = table if isinstance(table, list) else []
        return [dict(zip(names, r)) if isinstance(r, list) else r for r in rows]
    if isinstance(value, dict) and isinstance(value.get("log_history"), list):
        return list(value["log_history"])
    return value if isinstance(value, list) else None


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the numbers of an inner record beside its own, because verl's
    file logger nests them in `data`."""
    numbers: dict[str, Any] = {}
    for name, value in record.items():
        inside = value if isinstance(value, dict) else {name: value}
        numbers |= {key: cell for key, cell in inside.items() if key not in numbers}
    return numbers


def _mostly_objects(lines: Iterable[int], are_objects: Sequence[bool]) -> None:
    """Raises GradebookError if most lines hold no object: it is no log, and to look at
    each of a million such lines takes half a minute."""
    no_objects = [line for line, is_one in zip(lines, are_objects) if not is_one]
    if 2 * len(no_objects) > len(are_objects):
        found = f"{len(no_objects):,} others, the first on line {no_objects[0]}"
        raise GradebookError(expected="one JSON object a line", found=found)


def _parsed(text: bytes) -> Any:
    """The value, or what is wrong with the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unread(repr(error))


class Unread(str):
    """The reason why a text is no JSON. Its `repr` is the text itself."""

    __slots__ = ()
    __repr__ = str.__str__


def _parquet(source: LogFile, choose: Choose) -> tuple[pd.DataFrame, Broken]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    limits = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 2**20}
    try:
        with source.opened() as file:
            schema = pq.ParquetFile(file, **limits).schema_arrow
            texts = [
                field.name
                for field in schema
                if field.type in (pa.string(), pa.binary())
            ]
            log = pq.ParquetFile(file, read_dictionary=texts, **limits)
            schema, meta = log.schema_arrow, log.metadata
            names = unique(schema.names)
            groups = map(meta.row_group, range(meta.num_row_groups))
            size = max(sum(g.total_byte_size for g in groups), 8 * meta.num_rows)
            if size > (most := source.most_unpacked):
                raise refuse(f"at most {most:,} bytes when it is unpacked", size)
            types = {field.name: str(field.type) for field in schema}
            kinds = {name: _kind_of_type(held) for name, held in types.items()}
            first = {name: (held[:WIDE],) for name, held in types.items()}
            columns = choose(kinds, format_of(names), first)
            frame = to_frame(
                _decoded(log, [n for n in names if n in columns.used], most)
            )
    except (GradebookError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise refuse("a Parquet file", str(error)) from error
    pa.default_memory_pool().release_unused()
    return frame.set_axis(range(1, len(frame) + 1)), Broken(len(frame))


NUMERIC = "u?int[0-9]+|halffloat|float|double|decimal.*"
KINDS_OF_TYPES: Mapping[str, str] = {
    NUMERIC: cells.NUMBER,
    "bool": cells.FLAG,
    r".*list<\w+: (?:" + NUMERIC + "|bool)>.*": cells.LIST,
    ".*(?:list|struct|map)<.*": cells.RECORD,
    "null": cells.EMPTY_COLUMN,
    ".*": cells.DIGITS,  # text, which is read as numbers if a person says so
}
"""Arrow's type, as a pattern -> what the cells are."""


def _kind_of_type(name: str) -> str:
    patterns = KINDS_OF_TYPES.items()
    return next(kind for pattern, kind in patterns if re.fullmatch(pattern, name))


def _decoded(log: Any, names: list[str], most: int) -> Any:
    """These columns as an Arrow table: text as the file's own dictionary, so that a
    text that many rows name is there once. Raises GradebookError if lists and
    records, which have no dictionary, take more than `most` bytes."""
    import pyarrow as pa

    fields = [log.schema_arrow.field(name) for name in names]
    nested = pa.schema([f for f in fields if pa.types.is_nested(f.type)])
    table = log.read(columns=[name for name in names if name not in nested.names])
    batches, size = [], 0
    if nested.names:
        for batch in log.iter_batches(SOME_ROWS, columns=nested.names):
            size += batch.nbytes
            if size > most:
                raise refuse(f"at most {most:,} bytes when it is decoded", "more")
            batches.append(batch)
    for name, column in zip(nested.names, pa.Table.from_batches(batches, nested)):
        table = table.append_column(name, column)
    return table.select(names)


def to_frame(table: Any) -> pd.DataFrame:
    """An Arrow table as a frame; text as categories."""
    options = {"strings_to_categorical": True, "ignore_metadata": True}
    frame: pd.DataFrame = table.to_pandas(**options)
    return frame
