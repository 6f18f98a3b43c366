"""The editable batch: an immutable table of cells as people type them.

Every cell can be read: one that cannot is refused where it enters the table.
Every edit makes a new table that shares the rows it did not touch, so a long
history is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.cases.columns import (
    Cell,
    as_cell,
    column_of,
    parts,
    plain_cell,
    read,
)
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS, of_kind
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
LISTS = of_kind("list")
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells in the order of the columns. `width` is the number of tokens
    of the response mask, 0 where the table has no mask."""

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
            [
                row.get(name, True if COLUMNS[name].kind == "flag" else None)
                for name in columns
            ]
            for row in rows
        )

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> Table:
        """A table of columns by their headers, t1 .. tT for the mask.

        Raises GradebookError for a header that no batch has, where prompt or
        reward is missing, and for a cell that cannot be read.
        """
        cells = {header: list(columns[header]) for header in columns}
        named = {column_of(header) for header in cells}
        for name in sorted(named - set(COLUMNS)):
            raise refuse("a column of a batch", name, name)
        for name in ("prompt", "reward"):
            if name not in named:
                raise GradebookError(key=name, expected="a column", found="none")
        tokens = [h for h in cells if column_of(h) == "mask" and h != "mask"]
        if tokens:
            tokens.sort(key=lambda header: int(header[1:]))
            cells["mask"] = list(zip(*(cells[token] for token in tokens)))
        names = tuple(name for name in COLUMNS if name in named)
        rows = zip(*(cells[name] for name in names))
        return cls(names, (), len(tokens))._filled(rows)

    @classmethod
    def of_frame(cls, frame: DataFrame) -> Table:
        """A table of a data frame. Raises as `of_columns`."""
        cells = frame.astype(object).where(frame.notna(), None)
        return cls.of_columns({n: cells[n].tolist() for n in frame.columns})

    def frame(self) -> DataFrame:
        """The table as a data frame, one column a header: flags as booleans,
        all else as text."""
        flags = ("flag", "tokens")
        kinds = {h: COLUMNS[column_of(h)].kind in flags for h in self.headers}
        return pd.DataFrame(
            {
                header: pd.Series(list(self[header]), dtype="bool" if flag else object)
                for header, flag in kinds.items()
            }
        )

    # Looking

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def headers(self) -> tuple[str, ...]:
        """The names of the columns, the mask token by token: t1 .. tT."""
        tokens = [f"t{t + 1}" for t in range(self.width)]
        names = [tokens if name == "mask" else [name] for name in self.columns]
        return tuple(header for headers in names for header in headers)

    def __contains__(self, header: str) -> bool:
        return header in self.columns or header in self.headers

    def __getitem__(self, header: str) -> tuple[Any, ...]:
        """The cells of a column, or of a header such as t3, as typed.
        Raises KeyError for a header that the table does not have."""
        place, token = self._place(header)
        if token is None:
            return tuple(row[place] for row in self.rows)
        return tuple(row[place][token] for row in self.rows)  # type: ignore[index]

    def get(self, header: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
        """The cells of a column, or `default` where it is not there."""
        try:
            return self[header]
        except KeyError:
            return default

    def _place(self, header: str) -> tuple[int, int | None]:
        name = column_of(header)
        token = int(header[1:]) - 1 if name != header else None
        if name not in self.columns or (token or 0) >= max(self.width, 1):
            raise KeyError(header)
        return self.columns.index(name), token

    def values(self) -> dict[str, list[Any]]:
        """What the cells say, column by column."""
        return {
            name: [read(name, row[place], self.width) for row in self.rows]
            for place, name in enumerate(self.columns)
        }

    def batch(self, settings: Settings) -> Batch:
        """The table as a batch. Raises GradebookError where its values make
        none."""
        values: dict[str, Any] = self.values()
        for name in values if self.width else ():
            kind = KINDS.get(COLUMNS[name].kind)
            if kind:  # an array is read much faster than nested lists
                cells = np.array(values[name], dtype=kind)
                values[name] = cells.reshape(len(self), self.width)
        return Batch(**values, settings=settings)

    # Changing

    def _filled(self, rows: Iterable[Sequence[Any]]) -> Table:
        """The table with these values as its rows. Raises GradebookError with
        column and row."""
        return replace(
            self,
            rows=tuple(
                tuple(
                    self._cell(number, name, value)
                    for name, value in zip(self.columns, row)
                )
                for number, row in enumerate(rows)
            ),
        )

    def _cell(self, number: int, name: str, value: Any) -> Cell:
        try:
            return as_cell(name, value, self.width)
        except GradebookError as error:
            raise error.at(row=number) from None

    def with_cells(self, cells: Mapping[tuple[int, str], Any]) -> Table:
        """The table with other cells, by row and header."""
        changes: dict[int, dict[int, Any]] = {}
        for (number, header), value in cells.items():
            place, token = self._place(header)
            new = changes.setdefault(number, {})
            if token is None:
                new[place] = value
            else:
                new.setdefault(place, list(self.rows[number][place]))[token] = value  # type: ignore[arg-type]
        rows = list(self.rows)
        for number, new in changes.items():
            row = list(rows[number])
            for place, value in new.items():
                row[place] = self._cell(number, self.columns[place], value)
            rows[number] = tuple(row)
        return replace(self, rows=tuple(rows))

    def with_cell(self, row: int, header: str, cell: Any) -> Table:
        """The table with one other cell."""
        return self.with_cells({(row, header): cell})

    def with_column(self, name: str, cells: Sequence[Any]) -> Table:
        """The table with other cells in a column, which is added where it is
        not there. A mask may have another width, to which lists are cut or
        filled."""
        names = tuple(n for n in COLUMNS if n in self.columns or n == name)
        width = len(cells[0]) if name == "mask" and cells else self.width
        return Table(names, (), width)._filled(
            [
                cell if n == name else _fitted(n, row[self.columns.index(n)], width)
                for n in names
            ]
            for row, cell in zip(self.rows, cells)
        )

    def take(self, rows: Iterable[int]) -> Table:
        """The rows with these numbers, in this order."""
        return replace(self, rows=tuple(self.rows[number] for number in rows))

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
        plain = self._filled(self._completed({}, number) for number in missing)
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
            if True in mask[width:]:
                token = mask.index(True, width) + 1
                raise GradebookError(
                    key=f"t{token}", expected="no token in it", found="a token"
                )
        return replace(self, width=width)._filled(
            [_fitted(name, cell, width) for name, cell in zip(self.columns, row)]
            for row in self.rows
        )

    def with_every_column(self) -> Table:
        """The table with every column of a batch. A new cell says what the
        batch takes for a missing one; a new log-probability is -1."""
        lists = [self[name] for name in LISTS if name in self.columns and self.rows]
        width = self.width or max((len(parts(cells[0])) for cells in lists), default=1)
        whole = Table(tuple(COLUMNS), (), width)
        return whole._filled(
            whole._completed(dict(zip(self.columns, row)), number)
            for number, row in enumerate(self.rows)
        )

    def _completed(self, row: Mapping[str, Cell], number: int) -> list[Cell]:
        cells = dict(row)
        for name in self.columns:
            if name not in cells:
                cells[name] = plain_cell(name, cells, number, self.width)
        return [cells[name] for name in self.columns]


def _fitted(name: str, cell: Cell, width: int) -> Cell:
    """A mask or a list cut or filled to the width."""
    if isinstance(cell, tuple):
        return cell[:width] + (False,) * (width - len(cell))
    if name not in LISTS or not width or len(parts(cell)) == width:
        return cell
    typed = parts(cell)[:width]
    return " ".join([*typed, *["-1"] * (width - len(typed))])
