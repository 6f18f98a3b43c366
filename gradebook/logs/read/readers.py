"""Readers: files as frames of whole rows, a part at a time.

A log is data: nothing in it is executed or unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import LIMITS, Part, Source, Wanted
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
    """Most cells that are not empty are numbers."""
    if column.dtype.kind in "fiub":
        return column.dtype.kind != "b"
    words = column.dropna().map(lambda c: str(c).strip())
    values = pd.to_numeric(words[words != ""], errors="coerce")
    return bool(values.notna().sum() * 2 > len(values))


def parts(source: Source, wanted: Wanted) -> Iterator[Part]:
    """The file's rows, some at a time; only the `wanted` columns.

    Raises GradebookError for what is too large or no such file.
    """
    try:
        if source.size > LIMITS.file_bytes:
            raise GradebookError(
                expected=f"at most {LIMITS.file_bytes:,} bytes",
                found=f"{source.size:,}",
            )
        if source.kind == "recording":
            raise GradebookError(
                expected="what a recorder wrote",
                found="a damaged file, or one whose first step is cut off",
            )
        if source.kind == "parquet":
            from gradebook.logs.read.parquet_files import parquet_parts

            yield from parquet_parts(source, wanted)
        else:
            read = csv_parts if source.kind == "csv" else jsonl_parts
            yield from read(source, wanted)
    except GradebookError as error:
        raise error.inside(source.name) from error
