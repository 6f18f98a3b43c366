"""Files to read, what is refused of them, and what a reader gives."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrows": "recording",
}
PACKED = {".gz": "gzip", ".zst": "zstd"}
"""Endings of compressed files, and how they are unpacked."""

OF_LOGS = set(ENDINGS) - {".txt", ".json"}
"""What is taken for a log inside a folder, unasked."""

ROWS = 131_072
"""About so many rows are held at once, in whole steps."""


@dataclass(frozen=True)
class Limits:
    """What is refused, each with a message that names the limit."""

    file_bytes: int = 4 * 2**30
    columns: int = 512
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
        """csv, jsonl, parquet or recording, by the name's ending. Raises
        GradebookError for anything else."""
        kind = ENDINGS.get(_ending(self.name), "")
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
        packed = PACKED.get(Path(self.name).suffix.lower())
        with self._bytes() as file:
            if packed is None:
                yield file
                return
            with _unpacked(file, packed, self) as unpacked:
                yield unpacked

    @contextmanager
    def _bytes(self) -> Iterator[BinaryIO]:
        if self.data is not None:
            yield io.BytesIO(self.data)
            return
        try:
            file = open(str(self.path), "rb")  # noqa: SIM115, closed below
        except OSError as error:
            raise GradebookError(
                file=self.name, expected="a readable file", found=str(error)
            ) from error
        with file:
            yield file


def _ending(name: str) -> str:
    """The ending that tells the format: .csv of run.csv.gz."""
    path = Path(name)
    if path.suffix.lower() in PACKED:
        path = path.with_suffix("")
    return path.suffix.lower()


@contextmanager
def _unpacked(file: BinaryIO, packed: str, source: Source) -> Iterator[BinaryIO]:
    """A compressed file, unpacked on disk as far as the limits allow.
    Raises GradebookError for what is larger, or damaged."""
    import pyarrow as pa

    most = min(max(2**26, source.size * LIMITS.expansion), LIMITS.file_bytes)
    with tempfile.TemporaryFile() as out:
        try:
            with pa.CompressedInputStream(file, packed) as stream:
                while block := stream.read(2**20):
                    if out.tell() + len(block) > most:
                        raise GradebookError(
                            "the file unpacks to far more than its size",
                            file=source.name,
                            expected=f"at most {most:,} bytes",
                            found="more",
                        )
                    out.write(block)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, GradebookError):
                raise
            raise GradebookError(
                file=source.name,
                expected=f"a {packed} file",
                found=shown(str(error), 120),
            ) from error
        out.seek(0)
        yield out


@dataclass(frozen=True)
class Wanted:
    """The columns to read: their names, and those of them that hold
    numbers. Without names, a look at all columns, in small parts."""

    names: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive rows of one file.

    lines   int64 [R] line in the file, from 1; in Parquet the row, from 1
    bad     rows that cannot be read, `row` counted from 0 in the part; their
            cells are empty
    bytes   how much of the file has been read after this part
    """

    frame: pd.DataFrame
    source: Source
    lines: np.ndarray
    bad: tuple[GradebookError, ...] = ()
    bytes: int = 0


def sources(paths: Iterable[str | Path | Source]) -> list[Source]:
    """Files and the logs inside directories, in natural order.

    Raises GradebookError when there is none.
    """
    given = list(paths)
    found = listed(given)
    if not found:
        raise GradebookError(
            file=", ".join(str(p) for p in given),
            expected="a .parquet, .csv, .tsv or .jsonl file",
            found="none",
        )
    if len(found) > LIMITS.files:
        raise refuse(f"at most {LIMITS.files} files", len(found))
    return found


def listed(paths: Iterable[str | Path | Source]) -> list[Source]:
    """The same, where there may be none. Raises GradebookError for a path
    that does not exist."""
    found: list[Source] = []
    for path in paths:
        if isinstance(path, Source):
            found.append(path)
        elif Path(path).is_dir():
            found += inside(Path(path))
        elif Path(path).is_file():
            found.append(Source(str(path), Path(path)))
        else:
            raise GradebookError(
                file=str(path), expected="a file or a directory", found="none"
            )
    return found


def inside(folder: Path) -> list[Source]:
    """The logs in a folder, in natural order."""
    files = (p for p in folder.iterdir() if _ending(p.name) in OF_LOGS and p.is_file())
    logs = sorted(files, key=lambda p: natural(p.name))
    return [Source(str(p), p) for p in logs]


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key under which 10.jsonl comes after 9.jsonl."""
    words = re.findall(r"[0-9]+|[^0-9]+", name)
    return [
        (0, int(w), "") if w.isdigit() and len(w) < 19 else (1, 0, w) for w in words
    ]


def number_in(name: str) -> int | None:
    """The last number in a file's name: the step, where a log has none."""
    found = re.findall(r"[0-9]+", Path(name).stem)
    return int(found[-1]) if found and len(found[-1]) < 16 else None


def unique(names: list[str]) -> list[str]:
    """Column names. Raises GradebookError for too many, or one twice."""
    names = [name.strip() for name in names]
    if len(names) > LIMITS.columns:
        raise refuse(f"at most {LIMITS.columns} columns", len(names))
    for at, name in enumerate(names):
        if name and name in names[:at]:
            raise GradebookError(
                key=name, expected="one column of that name", found="two"
            )
    return names
