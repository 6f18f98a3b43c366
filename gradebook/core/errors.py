"""The one error of Gradebook: what is wrong, and where."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, TypeVar


class GradebookError(ValueError):
    """Input that cannot be used, with its place.

    `key` names the field, or the column of a log; `row` counts from 0 and
    `line`, of a file, from 1; `file` is a path or "". `expected` and `found`
    are short phrases for a person.

    >>> print(GradebookError(key="reward", row=2, expected="a number"))
    key 'reward', row 2: expected a number
    """

    def __init__(
        self,
        message: str = "",
        *,
        file: str = "",
        key: str = "",
        row: int | None = None,
        line: int | None = None,
        expected: str = "",
        found: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.file, self.key = message, file, key
        self.row, self.line = row, line
        self.expected, self.found = expected, found

    def __str__(self) -> str:
        """The place, and what is wrong there."""
        key = f"key '{self.key}'" if self.line is None else f"column {self.key}"
        place = [
            self.file,
            "" if self.line is None else f"line {self.line}",
            key if self.key else "",
            "" if self.row is None else f"row {self.row}",
        ]
        says = f"expected {self.expected}" if self.expected else ""
        says += f", found {self.found}" if says and self.found else ""
        parts = [", ".join(filter(None, place)), self.message, says]
        return ": ".join(filter(None, parts))

    def at(self, **place: Any) -> GradebookError:
        """The same error at another `key`, `row` or `line`."""
        moved = copy(self)
        vars(moved).update(place)
        return moved

    def inside(self, file: str) -> GradebookError:
        """The same error in a file, unless it is in one."""
        return self.at(file=self.file or file)


class StepsError(GradebookError):
    """Some steps of a batch cannot be computed: `steps`, bool [S]."""

    def __init__(self, steps: Any, message: str = "", **place: Any) -> None:
        self.steps = steps
        super().__init__(message, **place)


def refuse(
    expected: str, value: object, key: str = "", row: int | None = None
) -> GradebookError:
    """The error for a value that is not what was expected."""
    return GradebookError(key=key, row=row, expected=expected, found=shown(value))


T = TypeVar("T")


def choice(value: T, options: Iterable[T], key: str = "") -> T:
    """The value. Raises GradebookError where it is none of the options."""
    names = list(options)
    if value not in names:
        raise refuse("one of " + ", ".join(map(str, names)), value, key)
    return value


def shown(value: object, limit: int = 60) -> str:
    """A value as it stands in an error message, cut to `limit`."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = "a number too long to show"
    return text if len(text) <= limit else text[: limit - 1] + "…"
