"""Which rows of a file cannot be used, and why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradebook.core.errors import GradebookError

NAMED = 100
"""So many broken rows of one kind are named; the rest are counted."""


class Broken:
    """The first error of each row, None for a row without one: object [R].

    The first NAMED rows of one kind have an error of their own. The others share one
    that names no place: a million errors would take more than a gigabyte.
    """

    def __init__(self, rows: int) -> None:
        self.errors = np.full(rows, None, dtype=object)
        self._named: list[int] = []

    def note(
        self,
        rows: np.ndarray,
        named: Callable[[int], GradebookError],
        rest: GradebookError,
    ) -> None:
        """Notes an error for each of these rows, int64 in rising order, that has none
        yet: `named(row)` for the first ones, `rest` for the others."""
        is_new = [error is None for error in self.errors[rows]]
        new = rows[np.array(is_new, dtype=bool)]
        self.errors[new[NAMED:]] = rest
        for row in new[:NAMED].tolist():
            self.errors[row] = named(row)
            self._named.append(row)

    def at(self, file: str, lines: np.ndarray) -> np.ndarray:
        """The errors, object [R], with the file, and the line of each row if they
        name a place."""
        for row in self._named:
            self.errors[row] = self.errors[row].at(file=file, line=int(lines[row]))
        return self.errors
