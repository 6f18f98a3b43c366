"""How the values of a scenario file are checked, what is said of them, and the
parts that such a file shares with those of false alarms and training runs.

The tables of a file are dataclasses with annotated fields, which pydantic
checks. `read` turns its first error into a GradebookError with key and row.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainValidator,
    Strict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import core_schema

from gradebook.bugs import BUGS
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.settings import Settings


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
Values = Annotated[tuple[NumberOrNone, ...], Field(min_length=1, max_length=MOST_ROWS)]


def one_of(*options: str) -> GetPydanticSchema:
    """For text that is one of `options`."""
    return GetPydanticSchema(
        lambda source, handler: core_schema.literal_schema(list(options))
    )


def between(least: int, most: int = 100) -> Any:
    return Field(min_length=least, max_length=most)


def check_index(key: str, index: int, count: int, of: str) -> None:
    """Raises GradebookError unless `index` is one into so many."""
    if not 0 <= index < count:
        raise refuse(f"0 to {count - 1}, an index into {of}", index, key)


# The rows of a file: one table per rollout, all with the same keys. A value is read
# as a cell of the batch's table is (gradebook.core.columns).


def checked(rows: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The rows as they are. Raises GradebookError with column and row."""
    columns = [column for column in COLUMNS if column in rows[0]]
    for number, row in enumerate(rows):
        for name in row:
            if name not in columns:
                raise refuse("one of " + ", ".join(columns), name, name, number)
        for name in ("prompt", "reward", *columns):
            if name not in row:
                raise GradebookError("Field required", key=name, row=number)
    width = Table.of(rows).width
    if width > WIDEST:
        raise refuse(f"at most {WIDEST} tokens", width, "mask")
    return rows


Rows = Annotated[
    tuple[dict[str, Any], ...], between(1, MOST_ROWS), AfterValidator(checked)
]


# Reading


T = TypeVar("T")
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
"""What pydantic calls an unknown key."""
adapter = cache(TypeAdapter)


def read(kind: Any, value: Any) -> Any:
    """`value`, as TOML reads it, checked as a `kind`: a part or a type.

    Raises GradebookError with key, row, and what pydantic says.
    """
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as error:
        raise _first(error) from None


def _first(error: ValidationError) -> GradebookError:
    """The first unknown key, which may be a misspelt one, or else the first error."""
    errors = error.errors(include_url=False)
    problem = next((e for e in errors if e["type"] in UNKNOWN), errors[0])
    key = ""
    for place in problem["loc"]:
        if place != "[key]":  # pydantic names a wrong key of a table twice
            key += f"[{place}]" if isinstance(place, int) else f".{place}"
    key = key.removeprefix(".")
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, GradebookError):
        # An error in the file's own rows is named by its column alone.
        in_rows = key == "rows" and inner.row is not None
        return inner if in_rows else inner.at(key=f"{key}.{inner.key}".strip("."))
    message = problem["msg"]
    if problem["type"] not in ("missing", *UNKNOWN):
        message += f", found {shown(problem['input'])}"
    return GradebookError(message, key=key)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's keys and values, as TOML reads them. Raises GradebookError
    where it cannot be read, or is no TOML."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise GradebookError(expected="a file that can be read", found=reason) from None
    except (ValueError, RecursionError) as error:
        raise GradebookError(expected="TOML in UTF-8", found=str(error)) from None


def read_document(part: type[T], document: dict[str, Any], **others: Any) -> T:
    """The keys and values of a file as a part; `others` are fields that no file
    has. Raises GradebookError."""
    for key in others:
        if key in document:
            raise GradebookError("Unexpected keyword argument", key=key)
    return read(part, document | others)


def read_part(part: type[T], path: Path, **others: Any) -> T:
    """The file as a part. Raises GradebookError with file, key and row."""
    try:
        return read_document(part, read_toml(path), **others)
    except GradebookError as error:
        raise error.inside(str(path)) from None


# Parts that several kinds of files have


SettingName = Annotated[str, one_of(*Settings().keys())]
BugName = Annotated[str, one_of(*BUGS)]
Status = Literal["fixed", "open", "closed", "disputed", "by design", "not confirmed"]
SomeSettings = dict[SettingName, Any]
SettingsTable = Annotated[
    Settings, PlainValidator(lambda table: Settings(**read(SomeSettings, table)))
]
"""A table of settings, the others at their defaults."""


@dataclass(frozen=True)
class Source(Part):
    """Where the bug was reported or fixed."""

    label: Text
    url: Annotated[str, Strict(), Field(pattern=r"^https://[^\s]+$")] = ""
    commit: Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{7,40}$")] = ""
    note: Text = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported(Part):
    """What a report is about.

    trainer   the trainers that it is about, joined by ", "
    statuses  the status in each of these trainers, where they differ
    """

    title: Text
    trainer: Text
    status: Status
    statuses: tuple[Status, ...] = ()
    sources: Annotated[tuple[Source, ...], between(1)]

    @property
    def trainers(self) -> tuple[str, ...]:
        return tuple(self.trainer.split(", "))

    @property
    def standing(self) -> str:
        """Where the report stands: 'AReaL · fixed', or each trainer with its
        own status, 'slime fixed · miles open'."""
        if not self.statuses:
            return f"{self.trainer} · {self.status}"
        return " · ".join(map(" ".join, zip(self.trainers, self.statuses)))


@dataclass(frozen=True)
class Lesson(Part):
    """What a lead needs to teach the case.

    minutes  how long it takes
    usual    the tempting choice of the prediction, an index
    why      why it tempts
    do       what to do after the reveal
    next     the case to open when there is time left, or ""
    place    the place in the plan of an hour; 0 for a case outside it
    """

    minutes: Count
    usual: Count
    why: Text
    do: Text
    next: Text = ""
    place: Count = 0
