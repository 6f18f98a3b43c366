"""The editable table: cells as people type them, and back to columns.

A table is a DataFrame with one row a rollout. Numbers stand in it as text,
since a number cell swallows bad input; booleans are booleans. Only the
columns a batch needs are there:

prompt, reward    text
eos               bool
step, steps, kept_steps  text, whole numbers
t1 .. tT          bool, the response mask token by token
logp, ref_logp    text, one number a token, separated by spaces
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings

COLUMNS = (
    "prompt",
    "reward",
    "eos",
    "step",
    "steps",
    "kept_steps",
    "mask",
    "logp",
    "ref_logp",
)
"""The columns of a batch, in the order a table shows them."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TOKEN = re.compile(r"t[1-9][0-9]*")


def to_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with a batch's names (prompt, reward, mask, ...) as a table."""
    cells = to_cells(rows)
    types = {n: "bool" if is_flag(n) else "object" for n in cells}
    return pd.DataFrame(
        {n: pd.Series(cells[n], dtype=types[n]) for n in cells}
    )


def to_cells(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The cells of a table of these rows, column by column."""
    names = [n for n in COLUMNS if any(n in row for row in rows)]
    cells: dict[str, list[Any]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if name == "mask":
            for t in range(len(values[0])):
                cells[f"t{t + 1}"] = [bool(mask[t]) for mask in values]
        elif name == "eos":
            cells[name] = [v is None or bool(v) for v in values]
        else:
            cells[name] = [as_text(v) for v in values]
    return cells


def is_flag(column: str) -> bool:
    """The column holds booleans."""
    return column == "eos" or bool(TOKEN.fullmatch(column))


def as_text(value: Any) -> str:
    """A cell's text: 2.0 as '2', a list as numbers between spaces."""
    if isinstance(value, (list, tuple)):
        return " ".join(as_text(v) for v in value)
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else repr(value)
    return "" if value is None else str(value)


def token_columns(table: pd.DataFrame) -> list[str]:
    """t1 .. tT, in order."""
    return _tokens(table.columns)


def _tokens(columns: Iterable[str]) -> list[str]:
    tokens = [c for c in columns if TOKEN.fullmatch(c)]
    return sorted(tokens, key=lambda c: int(c[1:]))


def columns_of(table: pd.DataFrame) -> dict[str, list[Any]]:
    """A batch's columns from a table. Raises the first of `problems`."""
    return _columns(_cells_of(table))


def problems(table: pd.DataFrame) -> list[GradebookError]:
    """Everything in the table that cannot be read, cell by cell."""
    return _read(_cells_of(table))[1]


def to_batch(table: pd.DataFrame, settings: Settings) -> Batch:
    """The table as a batch. Raises GradebookError with column and row."""
    return Batch(**columns_of(table), settings=settings)


def rows_to_batch(
    rows: Sequence[Mapping[str, Any]], settings: Settings
) -> Batch:
    """What `to_batch` makes of the table of these rows, without a table."""
    return Batch(**_columns(to_cells(rows)), settings=settings)


def _cells_of(table: pd.DataFrame) -> dict[str, list[Any]]:
    return {name: table[name].tolist() for name in table.columns}


def _columns(cells: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    found, wrong = _read(cells)
    if wrong:
        raise wrong[0]
    return found


def _read(
    cells: Mapping[str, list[Any]],
) -> tuple[dict[str, list[Any]], list[GradebookError]]:
    wrong: list[GradebookError] = []
    found: dict[str, list[Any]] = {}
    tokens = _tokens(cells)
    unknown = set(cells) - set(COLUMNS) - set(tokens)
    for name in sorted(unknown - {"mask"}):
        wrong.append(
            GradebookError(
                key=name, expected="a column of a batch", found=shown(name)
            )
        )
    for name in ("prompt", "reward"):
        if name not in cells:
            wrong.append(
                GradebookError(key=name, expected="a column", found="none")
            )
    for name in COLUMNS:
        if name in cells and name != "mask":
            read = READERS[name]
            found[name] = _column(name, cells[name], read, len(tokens), wrong)
    if tokens:
        flags = [_column(t, cells[t], _flag, 0, wrong) for t in tokens]
        found["mask"] = [list(row) for row in zip(*flags)]
    return found, wrong


def _column(
    name: str,
    cells: list[Any],
    read: Callable[[Any, int], Any],
    tokens: int,
    wrong: list[GradebookError],
) -> list[Any]:
    values = []
    for row, cell in enumerate(cells):
        try:
            values.append(read(cell, tokens))
        except GradebookError as error:
            wrong.append(
                GradebookError(
                    key=name,
                    row=row,
                    expected=error.expected,
                    found=error.found,
                )
            )
            values.append(None)
    return values


def _empty(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    missing = cell is None or cell is pd.NA
    return missing or (isinstance(cell, float) and math.isnan(cell))


def number(cell: Any) -> float:
    """A finite number from a cell. Raises GradebookError saying why not."""
    if _empty(cell):
        raise GradebookError(expected="a number", found="an empty cell")
    text = str(cell).strip().replace("\u2212", "-")
    if not NUMBER.fullmatch(text):
        wanted = "a number"
        if "," in text:
            wanted = "a number with a decimal point"
        raise GradebookError(expected=wanted, found=shown(str(cell)))
    value = float(text)
    if not math.isfinite(value):
        raise GradebookError(
            expected="a number below 1.8e308", found=shown(str(cell))
        )
    return value


def whole(cell: Any) -> int:
    """A whole number of 0 or more. Raises GradebookError saying why not."""
    value = number(cell)
    if value != int(value) or not 0 <= value < 2**31:
        raise GradebookError(
            expected="a whole number of 0 or more", found=shown(str(cell))
        )
    return int(value)


def _text(cell: Any, tokens: int) -> str:
    if _empty(cell):
        raise GradebookError(expected="a prompt", found="an empty cell")
    return str(cell).strip()


def _flag(cell: Any, tokens: int) -> bool:
    if isinstance(cell, bool):
        return cell
    text = "" if _empty(cell) else str(cell).strip().lower()
    if text in ("true", "1", "1.0", "yes"):
        return True
    if text in ("false", "0", "0.0", "no"):
        return False
    found = shown(str(cell)) if text else "an empty cell"
    raise GradebookError(expected="true or false", found=found)


def _parts(cell: Any) -> list[str]:
    """The numbers of a cell, as typed."""
    return [] if _empty(cell) else str(cell).replace(";", " ").split()


def _numbers(cell: Any, tokens: int) -> list[float]:
    parts = _parts(cell)
    if tokens and len(parts) != tokens:
        raise GradebookError(
            expected=f"{tokens} numbers separated by spaces, one a token",
            found=str(len(parts)),
        )
    return [number(part) for part in parts]


READERS: Mapping[str, Callable[[Any, int], Any]] = {
    "prompt": _text,
    "reward": lambda cell, _: number(cell),
    "eos": _flag,
    "step": lambda cell, _: whole(cell),
    "steps": lambda cell, _: whole(cell),
    "kept_steps": lambda cell, _: whole(cell),
    "logp": _numbers,
    "ref_logp": _numbers,
}
"""How each column's cell is read, given the number of tokens."""


def with_row_added(table: pd.DataFrame, row: int) -> pd.DataFrame:
    """A copy of `row` put below it; into an empty table a plain row."""
    if not len(table):
        return _extended(table, 1)
    parts = (table.iloc[: row + 1], table.iloc[[row]], table.iloc[row + 1 :])
    return pd.concat(parts, ignore_index=True)


def with_row_removed(table: pd.DataFrame, row: int) -> pd.DataFrame:
    """The table without `row`."""
    return table.drop(index=table.index[row]).reset_index(drop=True)


def with_width(table: pd.DataFrame, width: int) -> pd.DataFrame:
    """The table with `width` mask columns; new ones are masked, and their
    log-probability, which nothing reads, is -1.

    Raises GradebookError where a removed column holds a token.
    """
    tokens = token_columns(table)
    for name in tokens[width:]:
        if table[name].any():
            raise GradebookError(
                key=name, expected="no token in it", found="a token"
            )
    wide = table.drop(columns=tokens[width:])
    at = list(wide.columns).index(tokens[0]) + min(width, len(tokens))
    for t in range(len(tokens), width):
        wide.insert(at + t - len(tokens), f"t{t + 1}", False)
    for name in ("logp", "ref_logp"):
        if name in wide.columns:
            cells = [_fitted(c, len(tokens), width) for c in wide[name]]
            wide[name] = pd.Series(cells, dtype="object", index=wide.index)
    return wide


def _fitted(cell: Any, tokens: int, width: int) -> Any:
    """A list of `tokens` numbers as typed, cut or filled to the width; any
    other cell as it is, to be named."""
    typed = _parts(cell)
    if len(typed) != tokens:
        return cell
    return " ".join([*typed[:width], *["-1"] * (width - tokens)])


def with_every_column(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every column of a batch. A new cell says what the
    batch takes for a missing one; a new log-probability is -1."""
    tokens = token_columns(table)
    wide = max(len(tokens), 1)
    for name in ("ref_logp", "logp"):
        if not tokens and len(table) and name in table.columns:
            wide = max(len(str(table[name].iloc[0]).split()), 1)
    kept = table.get("kept_steps", ["1"] * len(table))
    logp = [" ".join(["-1"] * wide)] * len(table)
    cells: dict[str, Any] = {"eos": True, "step": "0"}
    cells["steps"] = ["1" if k == "0" else k for k in kept]
    cells["kept_steps"] = table.get("steps", ["1"] * len(table))
    cells["logp"] = logp
    cells["ref_logp"] = table.get("logp", logp)
    names = [n for n in COLUMNS if n != "mask"]
    masks = tokens or [f"t{t + 1}" for t in range(wide)]
    at = names.index("logp")
    whole = {
        n: table.get(n, cells.get(n, True))
        for n in [*names[:at], *masks, *names[at:]]
    }
    types = {n: "bool" if is_flag(n) else "object" for n in whole}
    return pd.DataFrame(whole, index=table.index).astype(types)


PASTE_LIMIT = 1000


def pasted(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """The table with its rows replaced by a block from a spreadsheet.

    Cells stand between tabs, in the table's order or under a first line of
    column names; a block of one column is the rewards. What the block does
    not give keeps the table's cell of that row. Raises GradebookError with
    the line where the block has no such shape.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    block = [line.split("\t") for line in lines if line.strip()]
    if not block:
        raise GradebookError(
            key="paste", expected="a block of cells", found="nothing"
        )
    names = [cell.strip().lower() for cell in block[0]]
    headed = "reward" in names
    if headed:
        block = block[1:]
    else:
        width = max(len(cells) for cells in block)
        names = list(table.columns)[:width] if width > 1 else ["reward"]
    unknown = [n for n in names if n not in table.columns]
    if unknown or len(set(names)) < len(names):
        raise GradebookError(
            key="paste",
            expected="each of these columns at most once: "
            + ", ".join(table.columns),
            found=", ".join(names),
        )
    if len(block) > PASTE_LIMIT:
        raise GradebookError(
            key="paste",
            expected=f"at most {PASTE_LIMIT} rows",
            found=str(len(block)),
        )
    for row, cells in enumerate(block):
        if len(cells) != len(names):
            raise GradebookError(
                key="paste",
                row=row,
                expected=f"{len(names)} cells",
                found=str(len(cells)),
            )
    new = _extended(table, len(block))
    for at, name in enumerate(names):
        cells = [line[at].strip() for line in block]
        if is_flag(name):
            cells = [_flag_or_raise(c, name, r) for r, c in enumerate(cells)]
        new[name] = pd.Series(cells, dtype=new[name].dtype)
    return new


def _flag_or_raise(cell: str, name: str, row: int) -> bool:
    try:
        return _flag(cell, 0)
    except GradebookError as error:
        raise GradebookError(
            key=name, row=row, expected=error.expected, found=error.found
        ) from None


def _extended(table: pd.DataFrame, rows: int) -> pd.DataFrame:
    """The first `rows` rows; missing ones are plain: one prompt, reward 0,
    EOS, every token unmasked, one step."""
    start = table.iloc[:rows]
    count = rows - len(start)
    tokens = len(token_columns(table))
    plain: dict[str, Any] = {"prompt": "A", "reward": "0", "step": "0"}
    for name in ("logp", "ref_logp"):
        plain[name] = " ".join(["-1"] * max(tokens, 1))
    more = {
        name: [True if is_flag(name) else plain.get(name, "1")] * count
        for name in table.columns
    }
    new = pd.DataFrame(more, columns=table.columns).astype(table.dtypes)
    if not count:
        return start.reset_index(drop=True)
    if not len(start):
        return new
    return pd.concat((start, new), ignore_index=True)
