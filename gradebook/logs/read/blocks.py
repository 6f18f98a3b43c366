"""Blocks: a text file in pieces of whole lines, and pyarrow's reading of
them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.sources import LIMITS

SMALL, LARGE = 2**16, 2**22
"""Bytes of a block: for a look at a file's first rows, and to read it."""


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

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))

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
) -> tuple[pd.DataFrame, dict[int, int]]:
    """The block's rows, and for each row that has too few or too many cells
    how many; such a row is empty in the table. Where `numbers` has a column
    with a cell that is no number, all cells are text. Empty lines are no
    rows."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    odd: dict[int, int] = {}

    def skip(row: Any) -> str:
        odd[row.number - 1] = row.actual_columns
        return "skip"

    def read(numbers: Sequence[str]) -> Any:
        number, text = pa.float64(), pa.string()
        at = {str(names.index(n)): n for n in use}
        odd.clear()
        return arrow.read_csv(
            io.BytesIO(data),
            read_options=arrow.ReadOptions(
                column_names=[str(i) for i in range(len(names))],
                use_threads=False,
                block_size=len(data) + 1,
            ),
            parse_options=arrow.ParseOptions(
                delimiter=mark,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=arrow.ConvertOptions(
                column_types={
                    i: number if n in numbers else text for i, n in at.items()
                },
                include_columns=list(at),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    data = block.data
    if not data.isascii():  # a byte that is no text becomes a question mark
        data = data.decode("utf-8", errors="replace").encode()
    try:
        table = read(numbers)
    except pa.ArrowException:
        table = read(())
    columns = [_values(c, c.type == pa.float64()) for c in table.columns]
    frame = pd.DataFrame(dict(zip(use, columns)))
    if odd:
        every = np.arange(table.num_rows + len(odd))
        frame = frame.set_axis(np.setdiff1d(every, [*odd])).reindex(every)
    return frame, odd


def row_lines(block: Block, mark: str, rows: int) -> np.ndarray:
    """The line on which each of the block's rows begins. int64 [R]"""
    if rows != block.line_count:  # a cell holds a line end, or a line is empty
        reader, line, found = csv.reader(block.lines(), delimiter=mark), 0, []
        with suppress(csv.Error):
            for cells in reader:
                if cells:
                    found.append(block.first + line)
                line = reader.line_num
        if len(found) == rows:
            return np.array(found)
    return np.arange(block.first, block.first + rows)


def json_table(
    block: Block, use: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame | None:
    """The block's objects, a row each; None where pyarrow cannot read them,
    or would read them in another way than line by line: what is wrong has
    its line then."""
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
    if table.num_rows != block.line_count:
        return None
    found = {n: _values(table.column(n), n in numbers) for n in use}
    if any(values is None for values in found.values()):
        return None
    return pd.DataFrame(found)


def _is_one_object_a_line(data: bytes) -> bool:
    """Every line begins with a brace."""
    return data[:1] == b"{" and data.count(b"\n") == (
        data.count(b"\n{") + data.endswith(b"\n")
    )


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
