"""Everything a learner can change on a page, as one value.

A state is never changed, only replaced: undo is going back to an older one,
and a link is a state written down. A state on a page is a valid batch: an edit
that makes none is refused (gradebook.cases.draft).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario
from gradebook.cases.table import Table
from gradebook.core.batch import Batch
from gradebook.core.columns import as_text, number, titled, whole
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import (
    AT_LEAST_ONE,
    CHOICES,
    FLAGS,
    MAY_BE_NONE,
    Settings,
    check_setting,
)


@dataclass(frozen=True, eq=False)
class State:
    """A case as the learner has changed it, cells and settings as typed.

    table  the batch (gradebook.cases.table)
    typed  every setting: text for numbers, '' for none
    row    the selected row
    bugs   what the faulty engine has; on a bug's page that bug
    """

    scenario: Scenario
    table: Table
    typed: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    bugs: tuple[str, ...] = ()

    @property
    def bug(self) -> str:
        """The one bug of the faulty engine. Raises GradebookError where
        there is none, or more."""
        if len(self.bugs) != 1:
            raise GradebookError(
                key="bugs",
                expected="exactly one bug",
                found=" and ".join(self.bugs) or "none",
            )
        return self.bugs[0]

    @property
    def engine_names(self) -> tuple[str, str]:
        """What the engines are called, correct and faulty.

        EOS found by the padded width may flag a row that has ended. Both
        engines believe the flags then, so their names say no more than that.
        """
        if self.get("eos_by_width"):
            return "correct by the flags", "faulty by the flags"
        correct, faulty = self.scenario.engine_names
        return correct, faulty

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.table)

    def get(self, name: str) -> Any:
        """The value of a field (gradebook.cases.state) by its name."""
        if FIELDS[name].setting:
            return self.typed.get(name, FIELDS[name].default(self.scenario))
        return getattr(self, name)

    def settings(self) -> Settings:
        """The settings as typed. Raises GradebookError naming one."""
        return read_settings(self.typed, self.scenario.settings)

    def batch(self) -> Batch:
        """The table as a batch. Raises GradebookError with its place."""
        return self.table.batch(self.settings())

    def same_batch(self, other: State) -> bool:
        """Equal but for the selected row."""
        return (
            self.scenario.name == other.scenario.name
            and dict(self.typed) == dict(other.typed)
            and self.bugs == other.bugs
            and self.table == other.table
        )

    def same(self, other: State) -> bool:
        """Equal in everything."""
        return self.row == other.row and self.same_batch(other)


@lru_cache(maxsize=256)
def start(scenario: Scenario) -> State:
    """The state that says what the scenario says."""
    fields = {
        name: field.default(scenario)
        for name, field in FIELDS.items()
        if not field.setting
    }
    typed = {name: FIELDS[name].default(scenario) for name in SETTINGS}
    return State(scenario, Table.of(scenario.rows), typed, **fields)


# Fields: one table of everything a learner can change beside the cells. A field
# gives the state its default, the link its text, and the page its title, help and
# kind of control. A new setting of the engine is a field by itself; an entry in
# fields.toml gives it a better title and a help.


LONGEST_TEXT = 1000
"""Characters of a number as typed."""
NO_BUG = "none"


@dataclass(frozen=True)
class Field:
    """What is known about one field of a state.

    kind      choice, flag, number (text, as typed), row or bugs
    default   what the field is in a case as it came
    options   of a choice: the value for each text in a link
    setting   the field is a setting of the engine
    """

    name: str
    kind: str
    default: Callable[[Scenario], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    setting: bool = False

    @property
    def title(self) -> str:
        """What the field is called on the screen."""
        text = TEXTS.get(self.name, {"title": self.name.replace("_", " ").capitalize()})
        return text["title"]

    @property
    def help(self) -> str:
        """A sentence about the field, or ''."""
        return TEXTS.get(self.name, {}).get("help", "")

    def format(self, value: Any) -> str:
        """The value as a link has it."""
        if self.kind == "choice":
            texts = [t for t, option in self.options.items() if option == value]
            return texts[0] if texts else str(value)
        if self.kind == "flag":
            return str(int(value))
        if self.kind == "bugs":
            return ".".join(value) or NO_BUG
        return str(value)

    def parse(self, text: str) -> Any:
        """The value for a link's text; a number as typed. Raises
        GradebookError with what was expected and found."""
        if self.kind == "number":
            if len(text) > LONGEST_TEXT:
                raise refuse(f"at most {LONGEST_TEXT} characters long", len(text))
            check_setting(self.name, read_setting(self.name, text))
            return text
        if self.kind == "bugs":
            named = [] if text == NO_BUG else text.split(".")
            for name in named:
                if name not in BUGS:
                    raise refuse("names of bugs between dots", name)
            return tuple(name for name in BUGS if name in named)
        if self.kind == "row":
            if text.isascii() and text.isdigit() and len(text) < 7:
                return int(text)
            raise refuse("a row", text)
        if text not in self.options:
            expected = "0 or 1" if self.kind == "flag" else None
            raise refuse(expected or "one of " + ", ".join(self.options), text)
        return self.options[text]


TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text("utf-8")
)
"""Title and help of each field."""

BITS: Mapping[str, Any] = MappingProxyType({"0": False, "1": True})


def _setting(name: str) -> Field:
    """The field of one setting of the engine."""
    kind, options = "number", {}
    if name in CHOICES:
        kind, options = "choice", {str(value): value for value in CHOICES[name]}
    elif name in FLAGS:
        kind, options = "flag", dict(BITS)
    return Field(
        name,
        kind,
        default=lambda scenario: typed_setting(name, scenario.settings[name]),
        options=options,
        setting=True,
    )


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "bugs": Field("bugs", "bugs", lambda case: case.bugs),
        "row": Field("row", "row", lambda case: case.focus),
        **{each.name: _setting(each.name) for each in fields(Settings)},
    }
)
"""Every field by its name, in the order of a link."""

SETTINGS = tuple(name for name, field in FIELDS.items() if field.setting)


# Settings as typed


def typed_setting(name: str, value: Any) -> Any:
    """A setting's value as a person types it: a number as text, None as
    ''."""
    if name in CHOICES or name in FLAGS:
        return value
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return as_text(value)


def typed_settings(settings: Settings) -> dict[str, Any]:
    """Every setting as a person types it."""
    return {name: typed_setting(name, settings[name]) for name in SETTINGS}


def read_settings(typed: Mapping[str, Any], base: Settings) -> Settings:
    """Typed settings laid over `base`. Raises GradebookError naming one."""
    return replace(base, **{n: read_setting(n, v) for n, v in typed.items()})


def read_setting(name: str, value: Any) -> Any:
    """One typed setting's value. Raises GradebookError naming it."""
    if name in CHOICES or name in FLAGS:
        return value
    if name in MAY_BE_NONE and not str(value).strip():
        return None
    try:
        return whole(value) if name in AT_LEAST_ONE else number(value)
    except GradebookError as error:
        raise error.at(key=name) from None


# Errors in words


def title(key: str) -> str:
    """What a field or a column is called on the screen."""
    return TEXTS[key]["title"] if key in TEXTS else titled(key).replace("_", " ")


def said(error: GradebookError) -> str:
    """An error in the words of the page: what, row, what was expected and
    what was found."""
    where = title(error.key)
    if error.row is not None:
        where += f", row {error.row}"
    if not error.expected:
        return str(error)
    value = f", found {error.found}" if error.found else ""
    lead = f"{error.message}: " if error.message else ""
    return f"{where}: {lead}expected {error.expected}{value}"
