"""The one error of Gradebook: what is wrong, and where."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeVar


@dataclass(eq=False, repr=False)
class GradebookError(ValueError):
    """Input that cannot be used, with its place.

    `message` says what is wrong; `key` names the field, or the column of a log; `row`
    and `token` count from 0 and `line`, of a file, from 1; `file` is a path or "".
    `expected` and `found` are short phrases for a person. `steps`, bool [S], are the
    steps of a batch that cannot be computed, if others can.

    >>> print(GradebookError(key="reward", row=2, expected="a number"))
    key 'reward', row 2: expected a number
    """

    message: str = ""
    _: KW_ONLY
    file: str = ""
    key: str = ""
    row: int | None = None
    token: int | None = None
    line: int | None = None
    expected: str = ""
    found: str = ""
    steps: Any = None

    def __str__(self) -> str:
        key = f"key '{self.key}'" if self.line is None else f"column {self.key}"
        place = [
            self.file,
            "" if self.line is None else f"line {self.line}",
            key if self.key else "",
            "" if self.row is None else f"row {self.row}",
            "" if self.token is None else f"token {self.token}",
        ]
        says = f"expected {self.expected}" if self.expected else ""
        says += f", found {self.found}" if says and self.found else ""
        parts = [", ".join(filter(None, place)), self.message, says]
        return ": ".join(filter(None, parts))

    def at(self, **place: Any) -> Self:
        """The same error at another place: `key`, `row`, `token` or `line`."""
        return replace(self, **place)

    def inside(self, file: str) -> Self:
        """The same error in a file, unless it is in one."""
        return self.at(file=self.file or file)


def refuse(
    expected: str,
    value: object,
    key: str = "",
    row: int | None = None,
    token: int | None = None,
) -> GradebookError:
    """An error about a value that differs from what was expected."""
    place: dict[str, Any] = {"key": key, "row": row, "token": token}
    return GradebookError(**place, expected=expected, found=shown(value))


T = TypeVar("T")


def choice(value: T, options: Iterable[T], key: str = "") -> T:
    """The value. Raises GradebookError if it is none of the options."""
    names = list(options)
    if value not in names:
        raise refuse("one of " + ", ".join(map(str, names)), value, key)
    return value


def shown(value: object, limit: int = 60) -> str:
    """A value as an error message prints it, cut to `limit` characters: a message is to
    fit a line or two, whatever somebody pasted into a cell."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = "a number too long to show"
    return text if len(text) <= limit else text[: limit - 1] + "…"
