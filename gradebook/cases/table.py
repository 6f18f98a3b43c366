"""The editable batch: an immutable table of cells as people type them.

Every cell can be read: one that cannot is refused where it enters the table.
Every edit makes a new table that shares the columns it did not touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.core.batch import Batch
from gradebook.core.columns import (
    COLUMNS,
    Cell,
    as_text,
    column_of,
    is_flag,
    of_kind,
    parts,
    read,
)
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 1000
WIDEST = 256
"""Rows of a table, and tokens of a row, at most."""
LISTS = of_kind("list")


@dataclass(frozen=True)
class Table:
    """Columns of cells by their headers: the names of a batch's columns, the
    response mask token by token as t1 .. tT."""

    cells: Mapping[str, tuple[Cell, ...]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table of rows that have a batch's names: prompt, reward, mask,
        .. A flag that a row does not name is true."""
        columns: dict[str, Sequence[Any]] = {
            name: [
                row.get(name, True if column.kind == "flag" else None) for row in rows
            ]
            for name, column in COLUMNS.items()
            if any(name in row for row in rows)
        }
        masks = columns.pop("mask", [])
        for row, mask in enumerate(masks):
            _check_width(mask, len(masks[0]), row)
        tokens = {f"t{t + 1}": flags for t, flags in enumerate(zip(*masks))}
        return cls.of_columns(columns | tokens)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> Table:
        """A table of columns by their headers.

        Raises GradebookError for a header that no batch has, where prompt or
        reward is missing, and for a cell that cannot be read.
        """
        for header in columns:
            if column_of(header) not in COLUMNS:
                raise refuse("a column of a batch", header, header)
        for name in ("prompt", "reward"):
            if name not in columns:
                raise GradebookError(key=name, expected="a column", found="none")
        return cls({}).with_columns(columns)

    @classmethod
    def of_frame(cls, frame: DataFrame) -> Table:
        """A table of a data frame. Raises as `of_columns`."""
        cells = frame.astype(object).where(frame.notna(), None)
        return cls.of_columns({n: cells[n].tolist() for n in frame.columns})

    def frame(self) -> DataFrame:
        """The table as a data frame: flags as booleans, all else as text."""
        return pd.DataFrame({header: list(self[header]) for header in self.headers})

    # Looking

    def __len__(self) -> int:
        return len(self.cells["prompt"])

    @property
    def headers(self) -> tuple[str, ...]:
        return tuple(self.cells)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns; the mask is one of them."""
        return tuple(dict.fromkeys(map(column_of, self.cells)))

    @property
    def width(self) -> int:
        """The number of tokens of the response mask; 0 without one."""
        return _width(self.cells)

    def __contains__(self, name: str) -> bool:
        return name in self.cells or name in self.columns

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        """The cells under a header; of 'mask' a tuple of flags for each row."""
        if name == "mask" and self.width:
            tokens = [self.cells[f"t{t + 1}"] for t in range(self.width)]
            return tuple(zip(*tokens))
        return self.cells[name]

    def values(self) -> dict[str, list[Any]]:
        """What the cells say, column by column."""
        width = self.width
        return {
            name: list(self["mask"])
            if name == "mask"
            else [read(name, cell, width) for cell in self.cells[name]]
            for name in self.columns
        }

    def batch(self, settings: Settings) -> Batch:
        """The table as a batch. Raises GradebookError where it makes none."""
        values: dict[str, Any] = self.values()
        if self.width:  # an array is read much faster than nested lists
            for name in {"mask", *LISTS} & values.keys():
                cells = np.array(values[name], dtype=bool if name == "mask" else float)
                values[name] = cells.reshape(len(self), self.width)
        return Batch(**values, settings=settings)

    # Changing

    def with_columns(self, columns: Mapping[str, Sequence[Any]]) -> Table:
        """With these columns too. Raises GradebookError with header and row."""
        cells: dict[str, Any] = {**self.cells, **columns}
        width = _width(cells)
        for header, values in columns.items():
            as_typed = not is_flag(header)
            column = []
            for row, value in enumerate(values):
                cell = as_text(value) if as_typed else value
                try:
                    checked = read(header, cell, width)
                except GradebookError as error:
                    raise error.at(row=row) from None
                column.append(cell if as_typed else checked)
            cells[header] = tuple(column)
        tokens = sorted(cells.keys() - COLUMNS, key=lambda header: int(header[1:]))
        ordered: dict[str, tuple[Cell, ...]] = {}
        for name in COLUMNS:
            if name == "mask":
                ordered |= {f"t{t + 1}": cells[h] for t, h in enumerate(tokens)}
            elif name in cells:
                ordered[name] = cells[name]
        return Table(ordered)

    def with_cells(self, cells: Mapping[tuple[int, str], Any]) -> Table:
        """The table with other cells, by row and header."""
        columns: dict[str, list[Any]] = {}
        for (row, name), value in cells.items():
            by_header = {name: value}
            if name == "mask":
                _check_width(value, self.width, row)
                by_header = {f"t{t + 1}": flag for t, flag in enumerate(value)}
            for header, cell in by_header.items():
                columns.setdefault(header, list(self.cells[header]))[row] = cell
        return self.with_columns(columns)

    def with_cell(self, row: int, header: str, cell: Any) -> Table:
        return self.with_cells({(row, header): cell})

    def take(self, rows: Iterable[int]) -> Table:
        chosen = list(rows)
        return Table({h: tuple(c[r] for r in chosen) for h, c in self.cells.items()})

    def joined(self, other: Table) -> Table:
        """The rows of both, which have the same headers."""
        if self.headers != other.headers:
            headers = ", ".join(self.headers)
            raise refuse(f"rows of {headers}", ", ".join(other.headers), "table")
        return Table({h: self.cells[h] + other.cells[h] for h in self.cells})

    def extended(self, count: int) -> Table:
        """The first `count` rows; missing ones are copies of the last. In a table
        without rows they are plain: reward 0, EOS, every token unmasked, one step."""
        rows = self if len(self) else Table({"prompt": ("A",)})._completed(self.headers)
        return rows.take(min(row, len(rows) - 1) for row in range(count))

    def resized(self, width: int) -> Table:
        """The table with `width` tokens a row. New ones are masked, and their
        log-probability, which nothing reads, is -1."""
        masked = (False,) * len(self)
        columns = {h: c for h, c in self.cells.items() if column_of(h) != "mask"}
        for token in (f"t{t + 1}" for t in range(width)):
            columns[token] = self.cells.get(token, masked)
        for name in [name for name in LISTS if name in columns]:
            typed = [[*parts(cell), *["-1"] * width] for cell in columns[name]]
            columns[name] = tuple(" ".join(numbers[:width]) for numbers in typed)
        return Table({}).with_columns(columns)

    def with_every_column(self) -> Table:
        """The table with every column of a batch. A new cell says what the
        batch takes for a missing one; a new log-probability is -1."""
        lists = [self.cells[name][0] for name in LISTS if name in self and len(self)]
        width = self.width or max((len(parts(cell)) for cell in lists), default=1)
        tokens = [f"t{t + 1}" for t in range(width)]
        return self._completed([*tokens, *(n for n in COLUMNS if n != "mask")])

    def _completed(self, headers: Sequence[str]) -> Table:
        cells = dict(self.cells)
        width = sum(column_of(header) == "mask" for header in headers)
        for header in headers:
            column = COLUMNS[column_of(header)]
            plain: tuple[Cell, ...] = (column.default,) * len(self)
            if header == "rollout":
                plain = tuple(map(str, range(len(self))))
            elif column.kind == "list":
                plain = (" ".join(["-1"] * max(width, 1)),) * len(self)
            cells.setdefault(header, cells.get(column.like, plain))
        if "steps" not in self.cells and "steps" in cells:
            cells["steps"] = tuple("1" if c == "0" else c for c in cells["steps"])
        return Table({}).with_columns(cells)


def _width(headers: Iterable[str]) -> int:
    return sum(header not in COLUMNS for header in headers)


def _check_width(mask: Sequence[Any], width: int, row: int) -> None:
    if len(mask) != width:
        raise refuse(f"{width} flags, one a token", len(mask), "mask", row)
