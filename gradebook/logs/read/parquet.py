"""Parquet, and Arrow tables as data frames.

Imports pyarrow, so it is imported itself only when such a file comes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import EXPANSION, Source, unique

ROWS = 200
"""Rows of a look at what the columns are."""
ROW_GROUP_BYTES = 2**31


def read_parquet(
    source: Source, use: Sequence[str] = ()
) -> tuple[pd.DataFrame, dict[str, str]]:
    """All rows with the columns `use`, and the type of each column's numbers;
    without `use` the first rows with all columns. Raises GradebookError."""
    failures = (pa.ArrowException, OSError, ValueError, KeyError, MemoryError)
    with source.opened() as file:
        try:
            log = pq.ParquetFile(
                file, thrift_string_size_limit=2**24, thrift_container_size_limit=2**20
            )
            schema = log.schema_arrow
            if b"gradebook" in (schema.metadata or {}):
                raise GradebookError(
                    expected="a recording in .arrows files",
                    found="one in Parquet, which earlier versions wrote and"
                    " this one does not read",
                )
            names = [n for n in unique(schema.names) if not use or n in use]
            _refuse_bombs(log.metadata, names, source)
            if use:
                table = log.read(columns=names)
            else:
                first = islice(log.iter_batches(ROWS, columns=names), 1)
                table = pa.Table.from_batches(first, schema)
            frame = to_frame(table)
        except GradebookError:
            raise
        except failures as error:
            text = str(error).splitlines()[0] if str(error) else "no data"
            raise GradebookError(
                expected="a Parquet file", found=shown(text, 160)
            ) from error
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return frame, {name: _number_type(schema.field(name).type) for name in names}


def _number_type(kind: Any) -> str:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _number_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"text {kind.scale}"
    if pa.types.is_integer(kind):
        return "int"
    sizes = {"halffloat": "float16", "float": "float32", "double": "float64"}
    return sizes.get(str(kind), "")


def _refuse_bombs(meta: Any, use: Sequence[str], source: Source) -> None:
    """Raises GradebookError for a file whose used columns are larger than
    the limits allow, before anything is unpacked."""
    sizes = [0]
    for group in map(meta.row_group, range(meta.num_row_groups)):
        columns = map(group.column, range(group.num_columns))
        used = (c for c in columns if c.path_in_schema.split(".")[0] in use)
        sizes.append(sum(max(c.total_uncompressed_size, 0) for c in used))
    most = source.size * EXPANSION
    for what, size, allowed in (
        ("bytes in a row group", max(sizes), ROW_GROUP_BYTES),
        ("bytes when it is unpacked", sum(sizes), source.most_unpacked),
        ("rows", meta.num_rows, min(2**31, max(10_000_000, most))),
    ):
        if size > allowed:
            raise GradebookError(
                expected=f"at most {allowed:,} {what}", found=f"{size:,}"
            )


def to_frame(table: Any) -> pd.DataFrame:
    """An Arrow table as a frame; text, and what is nested, as categories."""
    columns: dict[str, Any] = {}
    for name, column in zip(table.schema.names, table.columns):
        kind = column.type
        inside = kind.value_type if pa.types.is_list(kind) else None
        per_token = inside is not None and pa.types.is_primitive(inside)
        if pa.types.is_nested(kind) and not per_token:
            cells = column.to_pylist()
            column = pa.array([json.dumps(cell, default=str) for cell in cells])
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        columns[name] = column.to_pandas()
    return pd.DataFrame(columns)
