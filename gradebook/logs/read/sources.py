"""Files to read, and what is refused of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from gradebook.core.errors import GradebookError, refuse, shown

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
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
EXPANSION = 200
"""A file unpacks to at most so many times its size."""
UPLOADED = 2**30
"""Bytes to which an upload unpacks at most."""
PASTED = 20_000_000
"""Characters of a pasted table."""


@dataclass(frozen=True)
class Source:
    """A file by path, or an upload by name and bytes."""

    name: str
    path: Path | None = None
    data: bytes | None = None

    @property
    def kind(self) -> str:
        """csv, json, parquet or recording, by the name's ending. Raises
        GradebookError for anything else."""
        kind = ENDINGS.get(_ending(self.name), "")
        if not kind:
            suffix = shown(Path(self.name).suffix)
            raise GradebookError(file=self.name, expected=LOGS, found=suffix)
        return kind

    @property
    def size(self) -> int:
        """Bytes."""
        if self.data is not None:
            return len(self.data)
        return self.path.stat().st_size if self.path else 0

    @property
    def most_unpacked(self) -> int:
        """Bytes to which the file may unpack."""
        most = max(2**26, self.size * EXPANSION)
        return most if self.data is None else min(most, UPLOADED)

    def read(self) -> bytes:
        """The file's bytes, unpacked. Raises GradebookError for a file that
        cannot be read, is damaged, or has more bytes than the limits allow."""
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
            raise refuse(kind, str(error)).inside(self.name) from error
        if len(data) > most:
            raise refuse(f"at most {most:,} bytes; split the log", "more")
        return bytes(data)

    def opened(self) -> BinaryIO:
        """The bytes as a file, as they are."""
        return open(str(self.path), "rb") if self.data is None else BytesIO(self.data)


def _ending(name: str) -> str:
    """The ending that tells the format: .csv of run.csv.gz."""
    path = Path(name)
    if path.suffix.lower() in PACKED:
        path = path.with_suffix("")
    return path.suffix.lower()


def pasted(text: str) -> Source:
    """Text copied from a spreadsheet, a CSV file or JSON Lines, as a source.
    Raises GradebookError for no text, or too much."""
    text = text.strip("\ufeff\r\n ")
    if not text:
        raise GradebookError(expected="a table with a header", found="nothing")
    if len(text) > PASTED:
        raise GradebookError(
            expected=f"at most {PASTED:,} characters", found=f"{len(text):,}"
        )
    ending = "jsonl" if text.startswith("{") else "csv"
    return Source(f"pasted.{ending}", data=text.encode("utf-8", errors="replace"))


def sources(paths: Iterable[str | Path | Source]) -> list[Source]:
    """Files and the logs inside directories, in natural order; [] for a directory
    without any. Raises GradebookError for a path that does not exist."""
    files: list[Source] = []
    for path in paths:
        if isinstance(path, Source):
            files.append(path)
        elif Path(path).is_dir():
            logs = [p for p in Path(path).iterdir() if _ending(p.name) in OF_LOGS]
            logs = sorted(filter(Path.is_file, logs), key=lambda p: natural(p.name))
            files += [Source(str(p), p) for p in logs]
        elif Path(path).is_file():
            files.append(Source(str(path), Path(path)))
        else:
            raise GradebookError(
                file=str(path), expected="a file or a directory", found="none"
            )
    return files


def natural(name: str) -> list[str | int]:
    """A key under which 10.jsonl comes after 9.jsonl: text, number, text, .."""
    parts = re.split("([0-9]+)", name)
    return [
        int(part) if part.isascii() and part.isdecimal() else part for part in parts
    ]


def number_in(name: str) -> int | None:
    """The last number in a file's name: the step, where a log has none."""
    numbers = re.findall(r"[0-9]+", Path(name).stem)
    return int(numbers[-1]) if numbers and len(numbers[-1]) < 16 else None
