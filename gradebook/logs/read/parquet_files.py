"""Parquet, a batch at a time with the columns that are needed.

Imports pyarrow, so it is imported itself only when such a file comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
            names = _checked_schema(log, wanted.names, source)
            texts = [n for n in names if _is_text(log.schema_arrow, n)]
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


def _is_text(schema: Any, name: str) -> bool:
    kind = schema.field(name).type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _checked_schema(
    log: Any, wanted: Sequence[str], source: Source
) -> list[str]:
    """The columns to read. Raises GradebookError for an absurd schema, or
    more data than the limits allow, before anything is unpacked."""
    schema, meta = log.schema_arrow, log.metadata
    if meta.num_columns > LIMITS.columns:
        raise GradebookError(
            expected=f"at most {LIMITS.columns} columns",
            found=f"{meta.num_columns:,}",
        )
    names = unique(list(schema.names))
    use = [n for n in names if not wanted or n in wanted]
    _refuse_bombs(meta, use, source)
    return use


def _is_list_of_numbers(kind: Any) -> bool:
    """A number, or a flag, for each token."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    inside = kind.value_type
    return (
        pa.types.is_integer(inside)
        or pa.types.is_floating(inside)
        or pa.types.is_boolean(inside)
    )


def _refuse_bombs(meta: Any, use: list[str], source: Source) -> None:
    total = 0
    for group in range(meta.num_row_groups):
        about = meta.row_group(group)
        size = 0
        for at in range(about.num_columns):
            column = about.column(at)
            if column.path_in_schema.split(".")[0] in use:
                size += max(column.total_uncompressed_size, 0)
        total += size
        if size > LIMITS.row_group_bytes:
            raise GradebookError(
                f"row group {group} is too large when unpacked",
                expected=f"at most {LIMITS.row_group_bytes:,} bytes",
                found=f"{size:,}",
            )
    rows = meta.num_rows
    if rows > 2**31 or rows > max(10_000_000, source.size * LIMITS.expansion):
        raise GradebookError(
            expected="as many rows as the file can hold", found=f"{rows:,}"
        )
    if total > max(2**26, source.size * LIMITS.expansion):
        raise GradebookError(
            "the file unpacks to far more than its size",
            expected=f"at most {LIMITS.expansion} times {source.size:,} bytes",
            found=f"{total:,}",
        )


def to_frame(batch: Any) -> pd.DataFrame:
    """A record batch as a frame; text as categories."""
    table: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns):
        kind = column.type
        if pa.types.is_dictionary(kind):
            _refuse_long(name, column.dictionary)
            table[name] = column.to_pandas()
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            _refuse_long(name, column)
            table[name] = column.dictionary_encode().to_pandas()
        elif pa.types.is_nested(kind) and not _is_list_of_numbers(kind):
            cells = column.to_pylist()
            texts = pa.array([json.dumps(v, default=str) for v in cells])
            _refuse_long(name, texts)
            table[name] = texts.dictionary_encode().to_pandas()
        else:
            table[name] = _plain_column(name, column, kind)
    return pd.DataFrame(table)


def _plain_column(name: str, column: Any, kind: Any) -> Any:
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        if column.null_count:
            column = column.cast(pa.float64(), safe=False)
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(kind) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pd.Series(column.to_pylist(), dtype=object)


def _refuse_long(name: str, texts: Any) -> None:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > LIMITS.cell:
        raise GradebookError(
            key=name,
            expected=f"at most {LIMITS.cell:,} bytes in a cell",
            found=f"{longest:,}",
        )
