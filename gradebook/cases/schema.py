"""How the values of a scenario file are checked, and what is said of them.

The tables of a file are dataclasses with annotated fields, which pydantic
checks. `read` turns its first error into a GradebookError with key and row.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    Strict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import core_schema

from gradebook.core.errors import GradebookError, refuse, shown

MOST_ITEMS = 100


class Part:
    """A table of a scenario file, as a dataclass. Unknown keys are errors."""

    __pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


# Types


Text = Annotated[str, Strict(), StringConstraints(strip_whitespace=True, min_length=1)]
Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Count = Annotated[int, Strict(), Field(ge=0, lt=2**31)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Limit = Annotated[float, Strict(), Field(ge=-math.inf)]
"""A number that may be infinite, and is not NaN."""
NumberOrNone = Annotated[
    float,
    BeforeValidator(lambda value: math.nan if value == "none" else value),
    Strict(),
]
"""A number; NaN for the text "none"."""
Url = Annotated[str, Strict(), Field(pattern=r"^https://[^\s]+$")]
Commit = Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{7,40}$")]


def one_of(*options: str) -> GetPydanticSchema:
    """For text that is one of `options`."""
    return GetPydanticSchema(
        lambda source, handler: core_schema.literal_schema(list(options))
    )


def between(least: int, most: int = MOST_ITEMS) -> Any:
    """For a list of `least` to `most` items."""
    return Field(min_length=least, max_length=most)


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


# Reading


def read(kind: Any, value: Any) -> Any:
    """`value`, as TOML reads it, checked as a `kind`: a part or a type.

    Raises GradebookError with key, row, and what pydantic says.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise _first(error) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
"""What pydantic calls an unknown key."""


def _first(error: ValidationError) -> GradebookError:
    """The first error, or the first unknown key, which is often misspelt and
    then missing under its right name."""
    errors = error.errors(include_url=False)
    problem = next((e for e in errors if e["type"] in UNKNOWN), errors[0])
    key = ""
    for place in problem["loc"]:
        if place != "[key]":  # pydantic names a wrong key of a table twice
            key = join(key, f"[{place}]" if isinstance(place, int) else place)
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, GradebookError):
        return under(inner, key)
    message = problem["msg"]
    if problem["type"] not in ("missing", *UNKNOWN):
        message += f", found {shown(problem['input'])}"
    return GradebookError(message, key=key)


# Places in messages


def join(key: str, name: str) -> str:
    """The key of `name` in the table `key`."""
    if not key or not name or name.startswith("["):
        return key + name
    return f"{key}.{name}"


def under(error: GradebookError, key: str) -> GradebookError:
    """The same error, its key put under `key`. An error in the file's own
    rows is named by its column alone."""
    if key == "rows" and error.row is not None:
        return error
    return error.at(key=join(key, error.key))
