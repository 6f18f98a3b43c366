"""The editable batch: an immutable table of cells as people type them. A cell that
cannot be read is refused when it enters the table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

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
    tidied,
)
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings

MOST_ROWS = 1000
WIDEST = 256
"""Rows of a table, and tokens of a row, at most."""
LISTS = of_kind("list")


@dataclass(frozen=True)
class Table:
    """Columns of cells by their headers: the names of a batch's columns, the
    response mask token by token as t1 .. tT. Raises GradebookError without prompt,
    reward or rows, and if it is too large."""

    cells: Mapping[str, tuple[Cell, ...]]

    def __post_init__(self) -> None:
        for name in ("prompt", "reward"):
            if name not in self.cells:
                raise GradebookError(key=name, expected="a column", found="none")
        if not 1 <= len(self) <= MOST_ROWS:
            raise refuse(f"1 to {MOST_ROWS} rows", len(self), "table")
        if self.width > WIDEST:
            raise refuse(f"at most {WIDEST} tokens", self.width, "mask")

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """A table of rows with the same of a batch's names. Raises as `of_columns`."""
        flat = list(map(_by_header, rows))
        first = flat[0] if flat else {}
        for name in first:
            if column_of(name) not in COLUMNS:
                raise refuse("a column of a batch", name, name, 0)
        for number, row in enumerate(rows):
            for name in sorted(row.keys() ^ rows[0].keys()):
                expected = f"the columns of row 0: {', '.join(rows[0])}"
                raise refuse(expected, ", ".join(row), name, number)
            if flat[number].keys() != first.keys():
                expected = "as many flags as row 0 has"
                raise refuse(expected, row["mask"], "mask", number)
        return cls.of_columns({h: [row[h] for row in flat] for h in first})

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, Sequence[Any]], others: Mapping[str, Any] = {}
    ) -> Self:
        """Builds a table from columns of raw cells by header; `others` are columns that
        were validated before. Raises GradebookError with header and row for a column or
        cell that no batch has."""
        cells: dict[str, Any] = {**others, **columns}
        width = sum(header not in COLUMNS for header in cells)
        for header, values in columns.items():
            if header == "mask" or column_of(header) not in COLUMNS:
                raise refuse("a column of a batch", header, header)
            column = []
            for row, value in enumerate(values):
                cell = value if is_flag(header) else tidied(header, as_text(value))
                try:
                    checked = read(header, cell, width)
                except GradebookError as error:
                    raise error.at(row=row) from None
                column.append(checked if is_flag(header) else cell)
            cells[header] = tuple(column)
        tokens = sorted(cells.keys() - COLUMNS, key=lambda header: int(header[1:]))
        ordered: dict[str, tuple[Cell, ...]] = {}
        for name in COLUMNS:
            if name == "mask":
                ordered |= {f"t{t + 1}": cells[h] for t, h in enumerate(tokens)}
            elif name in cells:
                ordered[name] = cells[name]
        return cls(ordered)

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
        return sum(header not in COLUMNS for header in self.cells)

    @property
    def used_width(self) -> int:
        """The number of tokens up to the last unmasked one of any row; at least 1."""
        used = (t + 1 for t in range(self.width) if True in self.cells[f"t{t + 1}"])
        return max(used, default=1)

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        """The cells under a header; of 'mask' a tuple of flags for each row."""
        if name == "mask" and self.width:
            tokens = [self.cells[f"t{t + 1}"] for t in range(self.width)]
            return tuple(zip(*tokens))
        return self.cells[name]

    def values(self) -> dict[str, list[Any]]:
        """The values of the cells, column by column."""
        width = self.width
        return {
            name: list(self["mask"])
            if name == "mask"
            else [read(name, cell, width) for cell in self.cells[name]]
            for name in self.columns
        }

    def batch(self, settings: Settings) -> Batch:
        """Raises GradebookError if the table makes no batch."""
        return Batch(**self.values(), settings=settings)

    def with_cells(self, cells: Mapping[tuple[int, str], Any]) -> Self:
        """Changes cells, given by row, and by header or column."""
        columns: dict[str, list[Any]] = {}
        for (row, name), value in cells.items():
            by_header = _by_header({name: value})
            if name == "mask" and len(by_header) != self.width:
                expected = f"{self.width} flags, one per token"
                raise refuse(expected, len(by_header), name, row)
            for header, cell in by_header.items():
                columns.setdefault(header, list(self.cells[header]))[row] = cell
        return self.of_columns(columns, self.cells)

    def take(self, rows: Iterable[int]) -> Self:
        chosen = list(rows)
        return type(self)(
            {h: tuple(c[r] for r in chosen) for h, c in self.cells.items()}
        )

    def extended(self, count: int) -> Self:
        """The first `count` rows; missing ones are copies of the last."""
        return self.take(min(row, len(self) - 1) for row in range(count))

    def resized(self, width: int) -> Self:
        """The table with `width` tokens a row. New ones are masked, and have the
        log-probability -1, which nothing reads."""
        masked = (False,) * len(self)
        columns = {h: c for h, c in self.cells.items() if column_of(h) != "mask"}
        for token in (f"t{t + 1}" for t in range(width)):
            columns[token] = self.cells.get(token, masked)
        for name in [name for name in LISTS if name in columns]:
            typed = [[*parts(cell), *["-1"] * width] for cell in columns[name]]
            columns[name] = tuple(" ".join(numbers[:width]) for numbers in typed)
        return self.of_columns(columns)

    def without_token(self, token: int) -> Self:
        """The table without one token of every row; later ones move up."""
        last = self.width - 1
        columns = {h: c for h, c in self.cells.items() if h != f"t{last + 1}"}
        for t in range(token, last):
            columns[f"t{t + 1}"] = self.cells[f"t{t + 2}"]
        for name in [name for name in LISTS if name in columns]:
            typed = [parts(cell) for cell in columns[name]]
            columns[name] = tuple(" ".join(t[:token] + t[token + 1 :]) for t in typed)
        return self.of_columns(columns)

    def with_every_column(self) -> Self:
        """The table with every column of a batch. A new cell has the value that the
        batch uses for a missing one."""
        cells, rows = dict(self.cells), len(self)
        lists = [parts(cells[name][0]) for name in LISTS if name in cells]
        width = self.width or max(map(len, lists), default=1)
        for token in range(width):
            cells.setdefault(f"t{token + 1}", (True,) * rows)
        cells.setdefault("rollout", tuple(map(str, range(rows))))
        for name, column in COLUMNS.items():
            if name != "mask":
                is_list = column.kind == "list"
                plain = " ".join(["-1"] * width) if is_list else column.default
                cells.setdefault(name, cells.get(column.like, (plain,) * rows))
        if "steps" not in self.cells:
            cells["steps"] = tuple("1" if c == "0" else c for c in cells["steps"])
        return self.of_columns(cells)


def _by_header(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row, those of its mask as t1, t2, .."""
    cells = {name: cell for name, cell in row.items() if name != "mask"}
    mask = row.get("mask", ())
    flags = mask if isinstance(mask, (list, tuple)) else [mask]
    return cells | {f"t{t + 1}": flag for t, flag in enumerate(flags)}
