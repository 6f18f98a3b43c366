"""The editable batch: an immutable table of cells as people type them.

Every edit makes a new table that shares the rows it did not touch, so a long
history is small. A cell is read once, when it enters the table, and its row
keeps what was read. What cannot be read stays as typed and is named by
`problems`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.cases.columns import (
    COLUMNS,
    Cell,
    Unreadable,
    as_cell,
    column_of,
    parts,
    read,
)
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 1000
WIDEST = 256
"""Rows of a table, and tokens of a row, at most."""
KINDS = {"tokens": bool, "list": float}
"""The number types of the columns with a value for each token."""
LISTS = tuple(name for name, c in COLUMNS.items() if c.kind == "list")


@dataclass(slots=True, unsafe_hash=True)
class Row:
    """One row: its cells as typed, and what was read from each of them, both
    in the order of the table's columns. Equal cells make equal rows."""

    cells: tuple[Cell, ...]
    values: tuple[Any, ...] = field(compare=False)

    def size(self, shared: Set[int]) -> int:
        """Bytes that the row takes beside the cells with the ids `shared`,
        roughly."""
        return 200 + sum(
            _size(cell, value)
            for cell, value in zip(self.cells, self.values)
            if id(cell) not in shared
        )


def _size(cell: Cell, value: Any) -> int:
    """Bytes of a cell and what was read from it, roughly."""
    if isinstance(cell, tuple):
        return 60 + 8 * len(cell)
    numbers = len(value) if isinstance(value, tuple) else 1
    return 0 if isinstance(cell, bool) else 60 + len(cell) + 32 * numbers


@dataclass(frozen=True)
class Table:
    """Rows of cells. `width` is the number of tokens of the response mask,
    0 where the table has no mask."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    width: int = 0

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table of rows that have a batch's names: prompt, reward, mask,
        .. A flag that a row does not name is true."""
        columns = [n for n in COLUMNS if any(n in row for row in rows)]
        width = len(rows[0]["mask"]) if "mask" in columns else 0
        return cls(tuple(columns), (), width)._filled(
            [as_cell(n, _given(row, n)) for n in columns] for row in rows
        )

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> Table:
        """A table of columns by their headers, t1 .. tT for the mask.

        Raises GradebookError for a header that no batch has, and where
        prompt or reward is missing.
        """
        given = {header: list(columns[header]) for header in columns}
        known = {column_of(header) for header in given}
        for name in sorted(known - set(COLUMNS)):
            raise refuse("a column of a batch", name, name)
        for name in ("prompt", "reward"):
            if name not in known:
                raise GradebookError(key=name, expected="a column", found="none")
        tokens = [h for h in given if column_of(h) == "mask" and h != "mask"]
        if tokens:
            tokens.sort(key=lambda header: int(header[1:]))
            given["mask"] = list(zip(*(given[token] for token in tokens)))
        names = [name for name in COLUMNS if name in known]
        return cls(tuple(names), (), len(tokens))._filled(
            [as_cell(n, cell) for n, cell in zip(names, cells)]
            for cells in zip(*(given[name] for name in names))
        )

    @classmethod
    def of_frame(cls, frame: DataFrame) -> Table:
        """A table of a data frame. Raises as `of_columns`."""
        cells = frame.astype(object).where(frame.notna(), None)
        return cls.of_columns({n: cells[n].tolist() for n in frame.columns})

    def frame(self) -> DataFrame:
        """The table as a data frame, one column a header: flags as booleans,
        all else as text."""
        kinds = {
            header: "bool"
            if self._kind(header) in ("flag", "tokens")
            and all(type(cell) is bool for cell in self[header])
            else "object"
            for header in self.headers
        }
        return pd.DataFrame(
            {h: pd.Series(list(self[h]), dtype=k) for h, k in kinds.items()}
        )

    # Looking

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def headers(self) -> tuple[str, ...]:
        """The names of the columns, the mask token by token: t1 .. tT."""
        return _headers(self.columns, self.width)

    def __contains__(self, header: str) -> bool:
        return header in self.columns or header in self.headers

    def __getitem__(self, header: str) -> tuple[Any, ...]:
        """The cells of a column, or of a header such as t3, as typed.
        Raises KeyError for a header that the table does not have."""
        at, token = self._place(header)
        if token is None:
            return tuple(row.cells[at] for row in self.rows)
        return tuple(row.cells[at][token] for row in self.rows)  # type: ignore[index]

    def get(self, header: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
        """The cells of a column, or `default` where it is not there."""
        if header not in self:
            return default
        return self[header]

    def _place(self, header: str) -> tuple[int, int | None]:
        """The number of the header's column, and of its token."""
        name = column_of(header)
        token = int(header[1:]) - 1 if name != header else None
        if name not in self.columns or (token or 0) >= max(self.width, 1):
            raise KeyError(header)
        return self.columns.index(name), token

    def _kind(self, header: str) -> str:
        return COLUMNS[column_of(header)].kind

    def problems(self) -> list[GradebookError]:
        """Every cell that cannot be read, with its header and row, column by
        column."""
        return [
            error.at(row=number)
            for at in range(len(self.columns))
            for number, row in enumerate(self.rows)
            if type(row.values[at]) is Unreadable
            for error in row.values[at]
        ]

    def values(self) -> dict[str, list[Any]]:
        """What was read, column by column. Raises the first of `problems`."""
        for error in self.problems():
            raise error
        return {
            name: [row.values[at] for row in self.rows]
            for at, name in enumerate(self.columns)
        }

    def batch(self, settings: Settings) -> Batch:
        """The table as a batch. Raises GradebookError with column and row."""
        values: dict[str, Any] = self.values()
        for name in values if self.width else ():
            kind = KINDS.get(COLUMNS[name].kind)
            if kind:  # an array is read much faster than nested lists
                cells = np.array(values[name], dtype=kind)
                values[name] = cells.reshape(len(self), self.width)
        return Batch(**values, settings=settings)

    def size_beside(self, other: Table) -> int:
        """Bytes that the table takes where `other` is kept too, roughly."""
        mine, others = set(map(id, self.rows)), set(map(id, other.rows))
        shared = {
            id(cell) for row in other.rows if id(row) not in mine for cell in row.cells
        }
        new = (row for row in self.rows if id(row) not in others)
        return sum(row.size(shared) for row in new)

    # Changing

    def _filled(self, rows: Iterable[Sequence[Cell]]) -> Table:
        """The table with these cells as its rows."""
        return replace(
            self,
            rows=tuple(
                Row(
                    tuple(cells),
                    tuple(
                        read(name, cell, self.width)
                        for name, cell in zip(self.columns, cells)
                    ),
                )
                for cells in rows
            ),
        )

    def with_cells(self, cells: Mapping[tuple[int, str], Any]) -> Table:
        """The table with other cells, by row and header. A cell equal to the
        one that stands there changes nothing."""
        changes: dict[int, dict[int, Any]] = {}
        for (number, header), value in cells.items():
            at, token = self._place(header)
            new = changes.setdefault(number, {})
            if token is None:
                new[at] = value
            else:
                new.setdefault(at, list(self.rows[number].cells[at]))  # type: ignore[arg-type]
                new[at][token] = value
        rows = list(self.rows)
        for number, new in changes.items():
            rows[number] = self._changed(rows[number], new)
        return replace(self, rows=tuple(rows))

    def _changed(self, row: Row, new: Mapping[int, Any]) -> Row:
        """The row with other cells, by number of the column. Only these are
        read."""
        cells, values = list(row.cells), list(row.values)
        for at, value in new.items():
            name = self.columns[at]
            cell = as_cell(name, value)
            if cell != cells[at]:
                cells[at], values[at] = cell, read(name, cell, self.width)
        return Row(tuple(cells), tuple(values))

    def with_cell(self, row: int, header: str, cell: Any) -> Table:
        """The table with one other cell."""
        return self.with_cells({(row, header): cell})

    def with_column(self, name: str, cells: Sequence[Any]) -> Table:
        """The table with other cells in a column, which is added where it is
        not there. A mask may have another width."""
        names = [n for n in COLUMNS if n in self.columns or n == name]
        width = self.width
        if name == "mask":
            width = len(cells[0]) if cells else width
        return Table(tuple(names), (), width)._filled(
            [
                as_cell(n, cells[number])
                if n == name
                else row.cells[self.columns.index(n)]
                for n in names
            ]
            for number, row in enumerate(self.rows)
        )

    def take(self, rows: Iterable[int]) -> Table:
        """The rows with these numbers, in this order."""
        return replace(self, rows=tuple(self.rows[at] for at in rows))

    def joined(self, other: Table) -> Table:
        """The rows of both, which have the same columns and width."""
        if (self.columns, self.width) != (other.columns, other.width):
            raise GradebookError(
                key="table",
                expected=f"rows of {', '.join(self.headers)}",
                found=", ".join(other.headers),
            )
        return replace(self, rows=self.rows + other.rows)

    def extended(self, count: int) -> Table:
        """The first `count` rows; missing ones are plain: one prompt, reward
        0, EOS, every token unmasked, one step."""
        missing = range(len(self), count)
        plain = self._filled(self._completed({}, at) for at in missing)
        return replace(self, rows=self.rows[:count] + plain.rows)

    def with_width(self, width: int) -> Table:
        """The table with `width` tokens a row; new ones are masked, and
        their log-probability, which nothing reads, is -1.

        Raises GradebookError where a removed column holds a token, and for
        a width that no table has.
        """
        if "mask" not in self.columns or not 1 <= width <= WIDEST:
            raise refuse(
                f"1 to {WIDEST} tokens, in a table with a mask", width, "width"
            )
        for mask in self["mask"]:
            for t, cell in enumerate(mask[width:], width + 1):
                if cell is not False:
                    raise GradebookError(
                        key=f"t{t}", expected="no token in it", found="a token"
                    )
        return replace(self, width=width)._filled(
            [
                self._fitted(name, cell, width)
                for name, cell in zip(self.columns, row.cells)
            ]
            for row in self.rows
        )

    def _fitted(self, name: str, cell: Cell, width: int) -> Cell:
        """A mask or a list cut or filled to the width; a list of another
        length stays as it is, to be named."""
        if isinstance(cell, tuple):
            return cell[:width] + (False,) * (width - len(cell))
        typed = parts(cell) if name in LISTS else []
        if len(typed) != self.width:
            return cell
        return " ".join([*typed[:width], *["-1"] * (width - self.width)])

    def with_every_column(self) -> Table:
        """The table with every column of a batch. A new cell says what the
        batch takes for a missing one; a new log-probability is -1."""
        width = self.width
        for name in LISTS:
            if not width and len(self) and name in self.columns:
                width = max(len(parts(self[name][0])), 1)
        whole = Table(tuple(COLUMNS), (), max(width, 1))
        return whole._filled(
            whole._completed(dict(zip(self.columns, row.cells)), at)
            for at, row in enumerate(self.rows)
        )

    def _completed(self, row: Mapping[str, Cell], at: int) -> list[Cell]:
        """The row's cells, those that it lacks plain."""
        found = dict(row)
        for name in self.columns:
            if name not in found:
                found[name] = COLUMNS[name].plain(found, at, self.width)
        return [found[name] for name in self.columns]


@lru_cache(maxsize=64)
def _headers(columns: tuple[str, ...], width: int) -> tuple[str, ...]:
    tokens = [f"t{t + 1}" for t in range(width)]
    return tuple(
        header for name in columns for header in (tokens if name == "mask" else [name])
    )


def _given(row: Mapping[str, Any], name: str) -> Any:
    """A row's value; a flag that is not named is true."""
    value = row.get(name)
    return value is None or value if COLUMNS[name].kind == "flag" else value
