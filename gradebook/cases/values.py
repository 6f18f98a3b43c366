"""Readers of TOML values: one value and its key, checked.

Each takes what tomllib made of a value and the key it stands under, and
gives what it means, or raises a GradebookError with the key, what was
expected and what was found.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from gradebook.core.errors import GradebookError, shown


class _Nothing:
    """Stands where a key is missing, and says so in messages."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
Reader = Callable[[Any, str], Any]


def refuse(key: str, expected: str, value: Any) -> NoReturn:
    """Raises the error for a value that is not what was expected."""
    raise GradebookError(key=key, expected=expected, found=shown(value))


def text(value: Any, key: str) -> str:
    """Text that is not empty, without the spaces around it."""
    if not isinstance(value, str):
        refuse(key, "text", value)
    if not value.strip():
        refuse(key, "text that is not empty", value)
    return value.strip()


def label(value: Any, key: str) -> str | int:
    """A prompt: a whole number, or text without spaces around it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value or value != value.strip():
        refuse(key, "a whole number, or text without spaces around", value)
    return value


def whole(value: Any, key: str) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(key, "a whole number", value)
    return value


def count(value: Any, key: str) -> int:
    """A whole number of 0 or more, below 2 ** 31."""
    if not 0 <= whole(value, key) < 2**31:
        refuse(key, "a whole number of 0 or more, below 2 ** 31", value)
    return value


def number(value: Any, key: str) -> float:
    """A finite number."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        refuse(key, "a finite number", value)
    return float(value)


def number_or_none(value: Any, key: str) -> float:
    """A finite number, or NaN for the text 'none'."""
    if isinstance(value, str) and value == "none":
        return math.nan
    try:
        return number(value, key)
    except GradebookError:
        refuse(key, 'a finite number, or "none"', value)


def flag(value: Any, key: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        refuse(key, "true or false", value)
    return value


def bit(value: Any, key: str) -> int:
    """0 or 1."""
    if type(value) is not int or value not in (0, 1):
        refuse(key, "0 or 1", value)
    return value


def matching(pattern: str, expected: str) -> Reader:
    """Text that fits `pattern` as a whole."""

    def read(value: Any, key: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            refuse(key, expected, value)
        return value

    return read


def one_of(*options: str) -> Reader:
    """Text that is one of `options`."""

    def read(value: Any, key: str) -> str:
        if not isinstance(value, str) or value not in options:
            expected = "one of " + ", ".join(options)
            if isinstance(value, str):
                expected += f"; nearest '{nearest(value, options)}'"
            refuse(key, expected, value)
        return value

    return read


def list_of(read_item: Reader, least: int = 1, most: int = 100) -> Reader:
    """A list of `least` to `most` items, as a tuple."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            refuse(key, "a list", value)
        if not least <= len(value) <= most:
            raise GradebookError(
                key=key,
                expected=f"{least} to {most} values",
                found=str(len(value)),
            )
        return tuple(
            read_item(item, f"{key}[{place}]")
            for place, item in enumerate(value)
        )

    return read


def distinct(read_list: Reader) -> Reader:
    """A list in which nothing comes twice."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        items = read_list(value, key)
        for place, item in enumerate(items):
            if item in items[:place]:
                refuse(f"{key}[{place}]", "each value once", item)
        return items

    return read


def table_of(build: type, **readers: Reader) -> Reader:
    """A table, as the dataclass `build`; its defaults may be left out."""
    required = {
        field.name
        for field in dataclasses.fields(build)
        if field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    }

    def read(value: Any, key: str) -> Any:
        check_keys(value, key, readers)
        found = {
            name: read_one(value.get(name, NOTHING), join(key, name))
            for name, read_one in readers.items()
            if name in value or name in required
        }
        try:
            return build(**found)
        except GradebookError as error:
            raise under(error, key) from None

    return read


def check_keys(value: Any, key: str, known: Iterable[str]) -> None:
    """Raises unless `value` is a table whose keys are all known."""
    if not isinstance(value, dict):
        refuse(key, "a table", value)
    known = tuple(known)
    for name in value:
        if name not in known:
            near = nearest(name, known)
            refuse(join(key, name), f"a known key, nearest '{near}'", name)


# Places in messages


def join(key: str, name: str) -> str:
    """The key of what stands as `name` under `key`."""
    return f"{key}.{name}" if key else name


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`."""
    return difflib.get_close_matches(name, tuple(known), n=1, cutoff=0)[0]


def under(error: GradebookError, key: str) -> GradebookError:
    """The same error, its key put under `key`."""
    return GradebookError(
        error.message,
        file=error.file,
        key=join(key, error.key) if error.key else key,
        row=error.row,
        expected=error.expected,
        found=error.found,
    )
