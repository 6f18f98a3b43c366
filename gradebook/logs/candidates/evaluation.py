"""Evaluation rows: TRL writes them behind the training rows of a step, and
the oldest training rows drop out for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradebook.core.lazy_pandas import pd

STEPS = 512
"""So many steps are looked at to find the layout."""


@dataclass(frozen=True)
class Layout:
    """How a step's rows lie.

    size  training rows per prompt
    last  rows of evaluation at the end of a step that has any
    """

    size: int
    last: int

    def training(self, table: pd.DataFrame) -> pd.DataFrame:
        """Only the training rows whose whole group is there."""
        step, prompt = _codes(table)
        keep = np.ones(len(table), dtype=bool)
        for first, end in _bounds(step):
            rows = prompt[first:end]
            if not _pure(rows, self.size, 0) and _pure(rows, self.size, self.last):
                stop = end - self.last
                keep[first:end] = False
                keep[first + (stop - first) % self.size : stop] = True
        return table[keep].reset_index(drop=True)


def layout_of(table: pd.DataFrame) -> Layout | None:
    """The layout under which all steps are whole groups of one prompt, with
    as few rows of evaluation as possible; None where they are whole groups
    as they stand, or under no layout."""
    if "step" not in table or "prompt" not in table:
        return None
    step, prompt = _codes(table)
    rows = [prompt[a:b] for a, b in _bounds(step)[:STEPS]]
    largest = max(len(r) for r in rows)
    for size in range(largest, 1, -1):
        odd = [r for r in rows if not _pure(r, size, 0)]
        if not odd:
            return None
        if len(odd) == len(rows):
            continue
        for last in range(1, min(len(r) for r in odd) - size + 1):
            if all(_pure(r, size, last) for r in odd):
                return Layout(size, last)
    return None


def _codes(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    step = pd.factorize(table["step"], use_na_sentinel=False)[0]
    return step, pd.factorize(table["prompt"], use_na_sentinel=False)[0]


def _bounds(step: np.ndarray) -> list[tuple[int, int]]:
    """First row and end of each stretch of one step."""
    heads = np.flatnonzero(np.diff(step, prepend=-1))
    return list(zip(heads.tolist(), [*heads[1:].tolist(), len(step)]))


def _pure(prompt: np.ndarray, size: int, last: int) -> bool:
    """Without the `last` rows, and without what is left over before the
    first whole group, every `size` rows have one prompt. Without rows to
    leave out, nothing may be left over."""
    rows = prompt[: len(prompt) - last]
    over = len(rows) % size
    if len(rows) < size or (over and not last):
        return False
    groups = rows[over:].reshape(-1, size)
    return bool((groups == groups[:, :1]).all())
