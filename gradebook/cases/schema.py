"""How the files in scenarios/ are checked, and the parts that several kinds of them
share.

The tables of a file are dataclasses with annotated fields, which pydantic checks.
Its first error becomes a GradebookError with key and row.
"""

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
)

from gradebook.bugs import BUGS
from gradebook.cases.table import MOST_ROWS, Table
from gradebook.core.errors import GradebookError, choice, refuse, shown
from gradebook.core.settings import Settings


class FilePart:
    """A table of a file, as a dataclass. Unknown keys, empty texts and infinite numbers
    are errors."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        arbitrary_types_allowed=True,
        str_strip_whitespace=True,
        str_min_length=1,
        allow_inf_nan=False,
    )


T = TypeVar("T")
adapter = cache(TypeAdapter)


def read(kind: Any, value: Any) -> Any:
    """Checks `value`, as TOML gives it, against a part or another type. Raises
    GradebookError with key, row and pydantic's message."""
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    key = ""
    for place in problem["loc"]:
        if place != "[key]":  # pydantic repeats a wrong key of a table
            key += f"[{place}]" if isinstance(place, int) else f".{place}"
    key = key.removeprefix(".")
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, GradebookError):
        # For an error in the file's own rows, name its column alone.
        in_rows = key == "rows" and inner.row is not None
        raise inner if in_rows else inner.at(key=f"{key}.{inner.key}".strip("."))
    message = problem["msg"]
    if problem["type"] != "missing":
        message += f", found {shown(problem['input'])}"
    raise GradebookError(message, key=key)


def read_part(part: type[T], path: Path, /, **others: Any) -> T:
    """The file as a part; `others` are fields that no file has. Raises
    GradebookError with file, key and row."""
    try:
        document = tomllib.loads(path.read_bytes().decode())
        for key in others.keys() & document:
            raise GradebookError("Unexpected keyword argument", key=key)
        return read(part, document | others)
    except GradebookError as error:
        problem = error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = GradebookError(expected="a file that can be read", found=reason)
    except (ValueError, RecursionError) as error:
        problem = GradebookError(expected="TOML in UTF-8", found=str(error))
    raise problem.inside(str(path))


def one_of(*options: str) -> AfterValidator:
    return AfterValidator(lambda text: choice(text, options))


def between(least: int, most: int = 100) -> Any:
    return Field(min_length=least, max_length=most)


def check_index(key: str, index: int, count: int, of: str) -> None:
    """Raises GradebookError unless 0 <= `index` < `count`."""
    if not 0 <= index < count:
        raise refuse(f"0 to {count - 1}, an index into {of}", index, key)


# Pydantic reads "6" and true as 6 and 1 unless a type is strict.
Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Count = Annotated[Whole, Field(ge=0, lt=2**31)]
NumberOrNone = Annotated[
    Number,
    Field(allow_inf_nan=True),
    BeforeValidator(lambda value: math.nan if value == "none" else value),
]
"""A number; NaN for the text "none"."""
Values = Annotated[tuple[NumberOrNone, ...], between(1, MOST_ROWS)]
SomeRows = Annotated[tuple[dict[str, Any], ...], between(1, MOST_ROWS)]
Rows = Annotated[Table, PlainValidator(lambda rows: Table.of(read(SomeRows, rows)))]
"""A table per rollout, all with the same keys."""
SettingName = Annotated[str, one_of(*Settings().keys())]
BugName = Annotated[str, one_of(*BUGS)]
SomeSettings = dict[SettingName, Any]
SettingsTable = Annotated[
    Settings, PlainValidator(lambda table: Settings(**read(SomeSettings, table)))
]
"""A table of settings, the others at their defaults."""


# Parts that several kinds of files have


@dataclass(frozen=True)
class Source(FilePart):
    label: str
    url: Annotated[str, Field(pattern=r"^https://[^\s]+$")] = ""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] = ""
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported(FilePart):
    """What a report is called, and where it was read."""

    title: str
    sources: Annotated[tuple[Source, ...], between(1)]


@dataclass(frozen=True)
class Lesson(FilePart):
    """What a lead needs to teach the case, and in how many minutes.

    usual    the tempting choice of the prediction, an index
    why      why it tempts
    do       what to do after the reveal
    next     the case to open when there is time left, or ""
    place    the place in the plan of an hour; 0 for a case outside it
    """

    minutes: Count
    usual: Count
    why: str
    do: str
    next: str = ""
    place: Count = 0
