"""The conditions of a challenge as data: what must come out.

gradebook.analysis.conditions judges by them. A condition that looks at rows
names them by `some` or by `every`: a list of row numbers, or one of ROWS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainValidator

from gradebook.cases.schema import (
    Count,
    Flag,
    Number,
    Part,
    between,
    one_of,
    read,
)
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings, check_setting

ROWS: Mapping[str, str] = {
    "all": "row",
    "credited": "row that may earn an advantage",
    "uncredited": "row that may earn no advantage",
    "scored": "row with a score",
    "best": "row with the highest reward of its prompt",
    "old": "row of the case",
    "added": "added row",
    "whole": "row of a prompt in which every row counts",
    "trained": "row that trains in both engines",
}
"""Names for sets of rows, and how a sentence calls one of these rows."""

SettingName = Annotated[str, one_of(*Settings().keys())]
Side = Annotated[str, one_of("correct", "faulty")]


RowNumbers = Annotated[tuple[Count, ...], between(1)]
RowsName = Annotated[str, one_of(*ROWS)]


def _rows(value: Any) -> tuple[int, ...] | str:
    """Row numbers, or a name of ROWS."""
    if isinstance(value, (list, tuple)):
        return read(RowNumbers, value)
    return read(RowsName, value)


Rows = Annotated[tuple[int, ...] | str, PlainValidator(_rows)]


@dataclass(frozen=True, kw_only=True)
class Agree(Part):
    """Both engines give the same advantages, loss and gradient. With
    `within`, advantages at most that far apart are enough."""

    kind: str = "agree"
    within: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Differ(Part):
    """Some of the rows have another advantage, or another gradient, in the
    faulty engine."""

    kind: str = "differ"
    of: Annotated[str, one_of("advantage", "gradient")] = "advantage"
    some: Rows = "all"


@dataclass(frozen=True, kw_only=True)
class Flip(Part):
    """Some of the rows have the other sign in the faulty engine; `to` says
    which sign that is."""

    kind: str = "flip"
    some: Rows = "all"
    to: Annotated[str, one_of("positive", "negative", "any")] = "any"


@dataclass(frozen=True, kw_only=True)
class OfRows(Part):
    """A condition on some of the named rows, or on every one of them."""

    some: Rows | None = None
    every: Rows | None = None

    def __post_init__(self) -> None:
        if (self.some is None) == (self.every is None):
            both = "neither" if self.some is None else "both"
            raise GradebookError(expected="either some or every", found=both)

    @property
    def rows(self) -> tuple[int, ...] | str:
        """The rows that are looked at."""
        rows = self.every if self.some is None else self.some
        assert rows is not None  # as checked above
        return rows


@dataclass(frozen=True, kw_only=True)
class Bounded(OfRows):
    """A number of the rows is at least `least` and at most `most`; its size
    is at least `size_least` and at most `size_most`; it is among some
    values."""

    least: Number | None = None
    most: Number | None = None
    size_least: Number | None = None
    size_most: Number | None = None
    among: tuple[Number, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Advantage(Bounded):
    """The advantage in one of the engines lies within bounds."""

    kind: str = "advantage"
    of: Side


@dataclass(frozen=True, kw_only=True)
class Ratio(Bounded):
    """The faulty advantage divided by the correct one lies within bounds.
    Rows whose correct advantage is 0 are left out."""

    kind: str = "ratio"


@dataclass(frozen=True, kw_only=True)
class Values(Bounded):
    """The values of a column lie within bounds. A flag is 1 or 0; the
    column tokens counts the unmasked tokens."""

    kind: str = "values"
    column: Annotated[
        str, one_of("reward", "tokens", "eos", "scored", "steps", "kept_steps")
    ]


@dataclass(frozen=True, kw_only=True)
class Equal(Part):
    """Among the named rows, the values of a column are equal within each
    prompt, each rollout or the whole batch. With `equal = false`, the rows
    of some prompt (rollout, batch) have different values."""

    kind: str = "equal"
    column: Annotated[str, one_of("reward", "tokens", "text", "rank")]
    within: Annotated[str, one_of("prompt", "rollout", "batch")] = "prompt"
    rows: Rows = "all"
    equal: Flag = True


@dataclass(frozen=True, kw_only=True)
class Moved(OfRows):
    """The advantage is another than in the case as it came: with `turned`,
    of the other sign. With `moved = false`, it is the same."""

    kind: str = "moved"
    of: Side
    turned: Flag = False
    moved: Flag = True


@dataclass(frozen=True, kw_only=True)
class SettingIs(Part):
    """A setting has a value, or with `but` does not have one."""

    kind: str = "setting"
    setting: SettingName
    value: Any = None
    but: Any = None

    def __post_init__(self) -> None:
        for key in ("value", "but"):
            if getattr(self, key) is not None:
                check_setting_value(self.setting, getattr(self, key), key)


@dataclass(frozen=True, kw_only=True)
class Sizes(Part):
    """How many rows the batch, each prompt or each rollout has.

    least    so many or more
    changed  another number of rows than in the case
    divides  the rows divide by the configured group size
    """

    kind: str = "sizes"
    of: Annotated[str, one_of("batch", "prompt", "rollout")] = "batch"
    least: Count = 0
    changed: Flag = False
    divides: Flag = False


@dataclass(frozen=True, kw_only=True)
class Trains(Part):
    """At most so many rows train in one of the engines."""

    kind: str = "trains"
    of: Side
    most: Count


@dataclass(frozen=True, kw_only=True)
class LossTurns(Part):
    """The loss has the other sign in the faulty engine."""

    kind: str = "loss turns"


@dataclass(frozen=True, kw_only=True)
class Crash(Part):
    """The faulty engine stops with an error; the correct one runs."""

    kind: str = "crash"


@dataclass(frozen=True, kw_only=True)
class LikeCorrectAtStart(Part):
    """The faulty engine gives what the correct one gave for the case as it
    came, row by row."""

    kind: str = "like the correct start"


Condition = (
    Agree
    | Differ
    | Flip
    | Advantage
    | Ratio
    | Values
    | Equal
    | Moved
    | SettingIs
    | Sizes
    | Trains
    | LossTurns
    | Crash
    | LikeCorrectAtStart
)
CONDITIONS: Mapping[str, type] = {
    part.__dataclass_fields__["kind"].default: part for part in Condition.__args__
}
"""The conditions by the `kind` that files give them."""


def check_setting_value(name: str, value: Any, key: str) -> None:
    try:
        check_setting(name, value)
    except GradebookError as error:
        raise error.at(key=key) from None
