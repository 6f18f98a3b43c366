"""Parquet, a batch at a time with the columns that are needed.

Imports pyarrow, so it is imported itself only when such a file comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import (
    LIMITS,
    ROWS,
    Part,
    Source,
    Wanted,
    unique,
)

FIRST = 200
"""Rows of a part where the columns are looked at."""


def parquet_parts(source: Source, wanted: Wanted) -> Iterator[Part]:
    """The file's parts. Raises GradebookError."""
    failures = (pa.ArrowException, OSError, ValueError, KeyError, MemoryError)
    with source.opened() as file:
        try:
            log = pq.ParquetFile(
                file,
                thrift_string_size_limit=2**24,
                thrift_container_size_limit=2**20,
            )
            if b"gradebook" in (log.schema_arrow.metadata or {}):
                raise GradebookError(
                    expected="a recording in .arrows files",
                    found="one in Parquet, which earlier versions wrote and"
                    " this one does not read",
                )
            names = unique(list(log.schema_arrow.names))
            names = [n for n in names if not wanted.names or n in wanted.names]
            _refuse_bombs(log.metadata, names, source)
            kinds = {n: log.schema_arrow.field(n).type for n in names}
            texts = [n for n, kind in kinds.items() if _is_text(kind)]
            if texts:
                log = pq.ParquetFile(file, read_dictionary=texts)
            size = ROWS if wanted.names else FIRST
            batches = log.iter_batches(batch_size=size, columns=names)
            row, total = 1, max(log.metadata.num_rows, 1)
            for batch in batches:
                frame = to_frame(batch)
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


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_list_of_numbers(kind: Any) -> bool:
    """A number, or a flag, for each token."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    inside = kind.value_type
    return pa.types.is_primitive(inside) and not pa.types.is_temporal(inside)


def _refuse_bombs(meta: Any, use: Sequence[str], source: Source) -> None:
    """Raises GradebookError for a file whose used columns are larger than
    the limits allow, before anything is unpacked."""
    sizes = [0]
    for group in map(meta.row_group, range(meta.num_row_groups)):
        columns = map(group.column, range(group.num_columns))
        sizes.append(
            sum(
                max(column.total_uncompressed_size, 0)
                for column in columns
                if column.path_in_schema.split(".")[0] in use
            )
        )
    most = source.size * LIMITS.expansion
    for what, found, allowed in (
        ("bytes in a row group", max(sizes), LIMITS.row_group_bytes),
        ("bytes when it is unpacked", sum(sizes), max(2**26, most)),
        ("rows", meta.num_rows, min(2**31, max(10_000_000, most))),
    ):
        if found > allowed:
            raise GradebookError(
                expected=f"at most {allowed:,} {what}", found=f"{found:,}"
            )


def to_frame(batch: Any) -> pd.DataFrame:
    """A record batch as a frame; text, and what is nested, as categories."""
    table: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns):
        kind = column.type
        if pa.types.is_nested(kind) and not _is_list_of_numbers(kind):
            cells = column.to_pylist()
            column = pa.array([json.dumps(v, default=str) for v in cells])
        if _is_text(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        table[name] = column.to_pandas()
    return pd.DataFrame(table)
