"""How the values of a scenario file are checked, and what is said of them.

The parts of a file are dataclasses with annotated fields. `read` checks a
value against one of them with pydantic and turns the first problem into a
GradebookError with key, row, what was expected and what was found.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    Strict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from gradebook.core.errors import GradebookError, refuse

MOST_ITEMS = 100


class Nothing:
    """Stands where a key is missing, and says so in messages."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


class Part:
    """A table of a scenario file, as a dataclass. Unknown keys are errors."""

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        """Refuses unknown keys, and puts NOTHING under each key that is
        needed and missing, so that its own type says what was expected."""
        if not isinstance(value, dict):
            return value
        part: Any = cls
        names, needed = _names(part)
        check_keys(value, names)
        return dict.fromkeys(needed, NOTHING) | value


@cache
def _names(part: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of a part, and those that have no default."""
    known = fields(part)
    needed = (
        f.name for f in known if f.default is MISSING and f.default_factory is MISSING
    )
    return tuple(f.name for f in known), tuple(needed)


def check_keys(table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises GradebookError for the first key that is not known."""
    known = tuple(known)
    for name in table:
        if name not in known:
            near = nearest(name, known)
            raise refuse(f"a known key, nearest '{near}'", name, name)


# Types


@dataclass(frozen=True)
class Is:
    """Says in words what a value must be."""

    words: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), "expected", custom_error_message=self.words
        )


Text = Annotated[
    str,
    Strict(),
    StringConstraints(strip_whitespace=True, min_length=1),
    Is("text that is not empty"),
]
Flag = Annotated[bool, Strict(), Is("true or false")]
Whole = Annotated[int, Strict(), Is("a whole number")]
Count = Annotated[
    int,
    Strict(),
    Field(ge=0, lt=2**31),
    Is("a whole number of 0 or more, below 2 ** 31"),
]
Bit = Annotated[int, Strict(), Field(ge=0, le=1), Is("0 or 1")]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False), Is("a finite number")]
Limit = Annotated[
    float, Strict(), Field(ge=-math.inf), Is("a number, which may be infinite")
]
Url = Annotated[
    str,
    Strict(),
    Field(pattern=r"^https://[^\s]+$"),
    Is("a URL starting with https://"),
]
Commit = Annotated[
    str, Strict(), Field(pattern=r"^[0-9a-f]{7,40}$"), Is("7 to 40 hex digits")
]


def _label(value: Any) -> str | int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    text = isinstance(value, str) and value and value == value.strip()
    if not (whole or text):
        raise refuse("a whole number, or text without spaces around", value)
    return value


def _number_or_none(value: Any) -> float:
    """A finite number, or NaN for the text "none"."""
    if isinstance(value, str) and value == "none":
        return math.nan
    try:
        return read(Number, value)
    except GradebookError:
        raise refuse('a finite number, or "none"', value) from None


Label = Annotated[str | int, PlainValidator(_label)]
NumberOrNone = Annotated[float, PlainValidator(_number_or_none)]


def one_of(*options: str) -> PlainValidator:
    """For text that is one of `options`."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in options:
            return value
        expected = "one of " + ", ".join(options)
        if isinstance(value, str):
            expected += f"; nearest '{nearest(value, options)}'"
        raise refuse(expected, value)

    return PlainValidator(check)


def between(least: int, most: int = MOST_ITEMS) -> AfterValidator:
    """For a list of `least` to `most` items."""

    def check(items: Any) -> Any:
        check_length(items, least, most)
        return items

    return AfterValidator(check)


def check_length(items: Any, least: int, most: int) -> None:
    """Raises GradebookError unless there are `least` to `most` items."""
    if not least <= len(items) <= most:
        count = f"{least} to {most}" if least < most else str(least)
        raise refuse(f"{count} values", len(items))


def _each_once(items: tuple[Any, ...]) -> tuple[Any, ...]:
    for place, item in enumerate(items):
        if item in items[:place]:
            raise refuse("each value once", item, f"[{place}]")
    return items


each_once = AfterValidator(_each_once)
"""For a list in which nothing comes twice."""


def check_index(key: str, index: int, count: int, of: str) -> None:
    """Raises GradebookError unless `index` is one into so many."""
    if not 0 <= index < count:
        raise refuse(f"0 to {count - 1}, an index into {of}", index, key)


def part_by(key: str, parts: Mapping[str, type]) -> PlainValidator:
    """For a table that is one of several parts, named by the value of
    `key`."""
    kind = Annotated[str, one_of(*parts)]

    def check(value: Any) -> Any:
        if isinstance(value, tuple(parts.values())):
            return value
        if not isinstance(value, dict):
            raise refuse("a table", value)
        try:
            name = read(kind, value.get(key, NOTHING))
        except GradebookError as error:
            raise under(error, key) from None
        return read(parts[name], value)

    return PlainValidator(check)


# Reading


def read(kind: Any, value: Any) -> Any:
    """`value`, as TOML reads it, checked as a `kind`: a part or a type.

    Raises GradebookError with key, row, expected and found.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise _problem(error) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Checks values of this type; made at first use."""
    return TypeAdapter(kind)


TYPES = {
    "dataclass_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "list_type": "a list",
}
"""What pydantic's errors mean in TOML."""


def _problem(error: ValidationError) -> GradebookError:
    """The first problem, in the order of the fields."""
    first = error.errors(include_url=False)[0]
    key = ""
    for place in first["loc"]:
        if place == "[key]":  # pydantic names the key that is wrong twice
            continue
        key = join(key, f"[{place}]" if isinstance(place, int) else place)
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, GradebookError):
        return under(inner, key)
    return refuse(TYPES.get(first["type"], first["msg"]), first["input"], key)


# Places in messages


def join(key: str, name: str) -> str:
    """The key of what stands as `name` under `key`."""
    if not key or not name or name.startswith("["):
        return key + name
    return f"{key}.{name}"


def under(error: GradebookError, key: str) -> GradebookError:
    """The same error, its key put under `key`. What is wrong in a row of
    the file's own rows goes by its column alone."""
    alone = key == "rows" and error.row is not None and error.key
    return error if alone else error.at(key=join(key, error.key))


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`."""
    return difflib.get_close_matches(name, tuple(known), n=1, cutoff=0)[0]
