"""Tokens: cells with one number a token, as one number a row."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.columns import Columns

TOKENS = "response tokens"
"""The column of response lengths that lists of tokens give."""

WORDS = {"True": 1, "true": 1, "False": 0, "false": 0, "None": np.nan}
"""Words in a list of numbers."""

SPREAD = 1e-6
"""One advantage stands at all tokens of a row, up to this."""


def by_row(
    frame: pd.DataFrame, columns: Columns, broken: list[GradebookError]
) -> pd.DataFrame:
    """The frame with one number where a cell has one a token: the sum of
    the rewards, and the advantage that all unmasked tokens share. A row
    whose tokens have several goes to `broken`. Cells that hold no list stay
    as they are."""
    advantage = columns.role.get("advantage")
    lists = [
        name
        for name in (*columns.rewards, advantage)
        if name is not None and _has_lists(frame[name])
    ]
    if not lists:
        return frame
    frame = frame.copy()
    masks: Sequence[object] = [None] * len(frame)
    if "mask" in columns.role:
        masks = list(frame[columns.role["mask"]])
    for name in lists:
        cells, lengths = list(frame[name]), np.zeros(len(frame))
        for row, tokens in enumerate(map(listed, cells)):
            if tokens is None:
                continue
            if name != advantage:
                cells[row] = tokens.sum() if len(tokens) else np.nan
                continue
            mask = listed(masks[row])
            if mask is not None and len(mask) == len(tokens):
                tokens = tokens[mask > 0]
            lengths[row] = len(tokens)
            cells[row] = _shared(tokens, row, name, broken)
        frame[name] = pd.Series(cells, frame.index, dtype=object)
        if name == advantage:
            frame[TOKENS] = lengths
    return frame


def _has_lists(column: pd.Series) -> bool:
    if column.dtype.kind != "O":
        return False
    cells = column.dropna()
    first = cells.iloc[0] if len(cells) else None
    if isinstance(first, str):
        return first.lstrip().startswith("[")
    return isinstance(first, (list, tuple, np.ndarray))


def listed(cell: object) -> np.ndarray | None:
    """A cell's list of numbers, which may be text such as '[1, 1, 0]' or
    '1 1 0'; None where it is none."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            words = str(cell).strip("[]() ").replace(",", " ").split()
            cell = [WORDS.get(word, word) for word in words]
        if isinstance(cell, (int, float)):
            cell = [cell]
    if not isinstance(cell, (list, tuple, np.ndarray)):
        return None
    try:
        found = np.array(cell, dtype="float64")
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def _shared(
    tokens: np.ndarray, row: int, name: str, broken: list[GradebookError]
) -> float:
    """The one number of a row's tokens; 0 for a row without tokens. Several
    go to `broken`."""
    if not len(tokens):
        return 0.0
    low, high = float(tokens.min()), float(tokens.max())
    if high - low > SPREAD * max(1.0, abs(low), abs(high)):
        error = GradebookError(
            key=name,
            row=row,
            expected="one advantage at all tokens of a row",
            found=f"{shown(low)} to {shown(high)}",
        )
        broken.append(error)
    return float(tokens[0])
