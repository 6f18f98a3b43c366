"""Blocks: a text file in pieces of whole lines, and pyarrow's reading of the
well-formed ones.

A block that pyarrow cannot read, or would read in another way than line by
line, gives None: its lines are then read one by one, so that what is wrong
has its line.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import LIMITS

SMALL, LARGE = 2**16, 2**22
"""Bytes of a block: for a look at a file's first rows, and to read it."""

QUOTE, NEWLINE = 34, 10


@dataclass(frozen=True)
class Block:
    """Whole lines of a file.

    first  number of the first line, from 1
    read   bytes of the file up to the block's end
    data   the bytes
    """

    first: int
    read: int
    data: bytes

    def lines(self) -> Iterator[str]:
        """The lines as text, each with its line end."""
        for line in io.BytesIO(self.data):
            yield line.decode("utf-8", errors="replace")


def blocks(file: BinaryIO, size: int, quoted: bool) -> Iterator[Block]:
    """The file's blocks of about `size` bytes. With `quoted`, no block ends
    inside quotation marks. Raises GradebookError for a line that is too
    long."""
    first, read, rest = 1, 0, b""
    while True:
        more = file.read(size)
        data = rest + more
        end = data.rfind(b"\n") + 1 if more else len(data)
        if not end and len(data) > LIMITS.line:
            raise GradebookError(
                f"line {first} is too long",
                expected=f"at most {LIMITS.line:,} bytes",
            )
        if more and quoted and data.count(b'"', 0, end) % 2:
            end = end if len(data) > LIMITS.line else 0
        if end:
            read += end
            yield Block(first, read, data[:end])
            first += data.count(b"\n", 0, end)
        rest = data[end:]
        if not more:
            return


def csv_table(
    block: Block,
    mark: str,
    names: Sequence[str],
    use: Sequence[str],
    numbers: Sequence[str],
) -> pd.DataFrame | None:
    """The block's cells, those of `numbers` as numbers and the others as
    text; None where the lines have to be read one by one."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    if not _is_one_row_a_line(block.data) or len(set(names)) < len(names):
        return None
    kinds = {n: pa.float64() if n in numbers else pa.string() for n in use}
    try:
        table = arrow.read_csv(
            io.BytesIO(block.data),
            read_options=arrow.ReadOptions(
                column_names=list(names), use_threads=False
            ),
            parse_options=arrow.ParseOptions(delimiter=mark),
            convert_options=arrow.ConvertOptions(
                column_types=kinds,
                include_columns=list(use),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    return _frame(table, block, numbers)


def json_table(
    block: Block, use: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame | None:
    """The block's objects, a row each; None as above."""
    import pyarrow as pa
    import pyarrow.json as arrow

    odd = b"\\u" in block.data  # perhaps half a surrogate pair
    if odd or not _is_one_object_a_line(block.data):
        return None
    try:
        block.data.decode()
        table = arrow.read_json(
            io.BytesIO(block.data),
            read_options=arrow.ReadOptions(
                use_threads=False, block_size=len(block.data) + 1
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    if not set(use) <= set(table.column_names):
        return None
    return _frame(table.select(list(use)), block, numbers)


def _is_one_row_a_line(data: bytes) -> bool:
    """No cell holds a line end: every line has an even number of
    quotation marks."""
    if b'"' not in data:
        return True
    plain = np.frombuffer(data, dtype="uint8")
    ends = np.flatnonzero(plain == NEWLINE)
    before = np.searchsorted(np.flatnonzero(plain == QUOTE), ends)
    return not bool((before % 2).any())


def _is_one_object_a_line(data: bytes) -> bool:
    """Every line begins with a brace."""
    return data[:1] == b"{" and data.count(b"\n") == (
        data.count(b"\n{") + data.endswith(b"\n")
    )


def _frame(
    table: Any, block: Block, numbers: Sequence[str]
) -> pd.DataFrame | None:
    """The table as a frame, text as categories; None where a row is not a
    line, or a cell is not what the column wants."""
    lines = block.data.count(b"\n") + (not block.data.endswith(b"\n"))
    if table.num_rows != lines:
        return None
    found: dict[str, Any] = {}
    for name in table.column_names:
        values = _values(table.column(name), name in numbers)
        if values is None:
            return None
        found[name] = values
    return pd.DataFrame(found)


def _values(column: Any, is_number: bool) -> Any:
    """A column's cells, None where they have to be read one by one. What
    is no number becomes the text that reading line by line would give, so
    that labels agree between blocks."""
    import pyarrow as pa

    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if pa.types.is_null(kind):
        return np.full(len(column), None, dtype=object)
    if pa.types.is_boolean(kind) or (is_number and plain):
        return _with_empty_cells(column)
    if is_number:
        return None
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not pa.types.is_string(kind):
        return None
    return column.dictionary_encode().combine_chunks().to_pandas()


def _with_empty_cells(column: Any) -> np.ndarray:
    """Numbers or flags; where some cells are empty, these are None, and NaN
    is the text that stands in the file."""
    if not column.null_count:
        return column.to_numpy()
    empty = column.is_null().to_numpy()
    cells = np.array(column.to_pylist(), dtype=object)
    cells[~empty & (cells != cells)] = "nan"
    return cells
