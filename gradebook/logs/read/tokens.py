"""Tokens: cells with one number a token, as one number a row."""

from __future__ import annotations

import json

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.columns import Columns

TOKENS = "response tokens"
"""The column of response lengths that lists of tokens give."""

SPREAD = 1e-6
"""One advantage stands at all tokens of a row, up to this."""


def by_row(
    frame: pd.DataFrame, columns: Columns, broken: list[GradebookError]
) -> pd.DataFrame:
    """The frame with one number where a cell has one a token: the sum of
    the rewards, and the advantage that all unmasked tokens share. A row
    whose tokens have several goes to `broken`."""
    wanted = [*columns.rewards]
    if "advantage" in columns.role:
        wanted.append(columns.role["advantage"])
    lists = [n for n in wanted if _has_lists(frame[n])]
    if not lists:
        return frame
    frame = frame.copy()
    masks: list[np.ndarray | None] = [None] * len(frame)
    if "mask" in columns.role:
        masks = [_numbers(c) for c in frame[columns.role["mask"]]]
    lengths = np.zeros(len(frame))
    for name in lists:
        values = np.full(len(frame), np.nan)
        for row, (cell, mask) in enumerate(zip(frame[name], masks)):
            numbers = _numbers(cell)
            if numbers is None:
                values[row] = np.nan if not _is_number(cell) else float(cell)
                continue
            if name in columns.rewards:
                values[row] = numbers.sum() if len(numbers) else np.nan
                continue
            kept = numbers
            if mask is not None and len(mask) == len(numbers):
                kept = numbers[mask > 0]
            lengths[row] = len(kept)
            values[row] = _shared(kept, row, name, broken)
        frame[name] = values
    if columns.role.get("advantage") in lists:
        frame[TOKENS] = lengths
    return frame


def _has_lists(column: pd.Series) -> bool:
    if column.dtype.kind != "O":
        return False
    cells = column.dropna()
    if not len(cells):
        return False
    first = cells.iloc[0]
    if isinstance(first, str):
        return first.lstrip().startswith("[")
    return isinstance(first, (list, tuple, np.ndarray))


def _numbers(cell: object) -> np.ndarray | None:
    """A cell's list of numbers, None where it is none."""
    if isinstance(cell, str):
        try:
            cell = json.loads(" ".join(cell.split()))
        except (ValueError, RecursionError):
            return None
    if not isinstance(cell, (list, tuple, np.ndarray)):
        return None
    try:
        found = np.array(cell, dtype="float64")
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _shared(
    numbers: np.ndarray, row: int, name: str, broken: list[GradebookError]
) -> float:
    """The one number of a row's tokens; 0 for a row without tokens."""
    if not len(numbers):
        return 0.0
    low, high = float(numbers.min()), float(numbers.max())
    if high - low > SPREAD * max(1.0, abs(low), abs(high)):
        found = f"{shown(low)} to {shown(high)}"
        broken.append(
            GradebookError(
                key=name,
                row=row,
                expected="one advantage at all tokens of a row",
                found=found,
            )
        )
    return float(numbers[0])
