"""Readers: files as frames of whole rows, a part at a time.

A log is data: nothing in it is executed or unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import (
    LIMITS,
    Part,
    Source,
    Wanted,
)
from gradebook.logs.read.text_files import csv_parts, jsonl_parts


def header(source: Source) -> tuple[list[str], list[str]]:
    """The names of all columns, and of those with numbers."""
    first = next(parts(source, Wanted()), None)
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


def parts(source: Source, wanted: Wanted) -> Iterator[Part]:
    """The file's rows, some at a time; only the `wanted` columns.

    Raises GradebookError for what is too large or no such file.
    """
    if source.size > LIMITS.file_bytes:
        raise GradebookError(
            file=source.name,
            expected=f"at most {LIMITS.file_bytes:,} bytes",
            found=f"{source.size:,}",
        )
    try:
        yield from _reader(source.kind)(source, wanted)
    except GradebookError as error:
        raise error.inside(source.name) from error


def _reader(kind: str) -> Callable[..., Iterator[Part]]:
    if kind == "csv":
        return csv_parts
    if kind == "jsonl":
        return jsonl_parts
    try:
        from gradebook.logs.read.parquet_files import parquet_parts
    except ImportError as error:
        raise GradebookError(
            "Parquet files need pyarrow: pip install pyarrow"
        ) from error
    return parquet_parts
