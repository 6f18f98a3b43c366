"""A state as the query string of a link, and back.

    v=1  s=<case>  open=1  <field>=<as typed>  t=<the table's differences>

The fields are those of gradebook.cases.fields. A key stands in the link only
where the state is not what the case says; without `open` the faulty side is
covered. `t` is packed by gradebook.cases.packed_table. Reading a link never
raises: what it does not understand, it names.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases.fields import FIELDS, NO_BUG, Field
from gradebook.cases.packed_table import pack, unpack
from gradebook.cases.sandbox import case, is_start, starts
from gradebook.cases.scenario import Scenario, names
from gradebook.cases.state import State, start
from gradebook.core.errors import GradebookError, shown

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
LONGEST_VALUE = 300_000
MOST_PROBLEMS = 20

RENAMED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "detector": ("eos_by_width", {}),
    "training_guard": ("skip_flat", {"0": "always", "1": "training"}),
    "normalization": (
        "second_over",
        {
            "once": "none",
            "by-episode": "rows",
            "by-transition": "steps",
            "after-subsampling": "kept_steps",
        },
    ),
}
"""Keys of links written before they were settings, with their values."""

KEYS = ("v", "s", "open", *FIELDS, "t")
"""Every key that a link may have, in the order of a link."""


def keys_of(scenario: Scenario) -> tuple[str, ...]:
    """Every key that a link of the scenario's page may have."""
    page = "sandbox" if is_start(scenario.name) else "bug"
    return tuple(
        key
        for key in KEYS
        if (FIELDS[key].page in ("", page) if key in FIELDS else True)
        and (key != "open" or page == "bug")
    )


@dataclass(frozen=True, eq=False)
class Decoded:
    """What a link says: the state, whether the faulty side is covered, and
    a sentence for everything in it that could not be understood."""

    state: State
    covered: bool
    problems: tuple[str, ...] = ()


# Writing


def encode(state: State, covered: bool) -> dict[str, str]:
    """The state's query parameters. A value of `typed` that the scenario's
    settings do not have is not kept."""
    own = start(state.scenario)
    query = {"v": VERSION, "s": state.scenario.name}
    if not covered:
        query["open"] = "1"
    for name, field in FIELDS.items():
        if state.get(name) != own.get(name):
            query[name] = field.format(state.get(name))
    if packed := pack(state.table, own.table):
        query["t"] = packed
    known = keys_of(state.scenario)
    return {key: text for key, text in query.items() if key in known}


def query_string(query: Mapping[str, str | list[str]]) -> str:
    """The parameters as they stand in the address, after the '?'."""
    return urlencode(query, True, encoding="utf-8", errors="surrogatepass")


def fits(query: Mapping[str, str]) -> bool:
    """The query string has at most LIMIT characters."""
    return len(query_string(query)) <= LIMIT


def excess(query: Mapping[str, str]) -> str:
    """What to say of a link that does not fit; '' where it does."""
    if fits(query):
        return ""
    return (
        f"This batch makes a link of {len(query_string(query))} characters,"
        f" and only {LIMIT} are safe to send. Take the scenario file or the"
        " CSV instead."
    )


# Reading


def in_words(key: Any, expected: str, found: str, then: str) -> str:
    """What is wrong with a link, and what is done about it."""
    return f"In this link {shown(key)} should be {expected}, but is {found}; {then}."


class _Reader:
    """A query under reading, and what was wrong with it so far."""

    def __init__(self, query: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self.query = {}
        for key, value in query.items():
            if self._is_text(key, value):
                name, values = RENAMED.get(key, (key, {}))
                self.query[name] = values.get(value, value)

    def _is_text(self, key: Any, value: Any) -> bool:
        if not isinstance(value, str):
            self.wrong(key, "text", shown(value), "it is left out")
        elif len(value) > LONGEST_VALUE:
            limit = f"at most {LONGEST_VALUE} characters long"
            self.wrong(key, limit, str(len(value)), "it is left out")
        else:
            return True
        return False

    def wrong(self, key: Any, expected: str, found: str, then: str) -> None:
        """One sentence: the key, what was wrong, what is shown."""
        self.problems.append(in_words(key, expected, found, then))


def decode(
    query: Mapping[str, str],
    default: str = "",
    others: Collection[str] = (),
) -> Decoded:
    """The state that a link's query parameters describe. Never raises.

    `default` is the scenario of a link that names none; `others` are keys
    that belong to somebody else and are passed over.
    """
    default = default if default in _known() else names()[0]
    mine = {k: v for k, v in query.items() if k not in others}
    reader = _Reader(mine)
    if not mine:
        return Decoded(start(case(default)), True)
    scenario, known = _scenario(reader, default)
    return _decoded(reader, scenario, known)


def decode_of(scenario: Scenario, query: Mapping[str, str]) -> Decoded:
    """The state of this very case that a link's parameters describe. Never
    raises. Nothing stands for the case as it came."""
    if not query:
        return Decoded(start(scenario), True)
    return _decoded(_Reader(query), scenario, known=True)


def _decoded(reader: _Reader, scenario: Scenario, known: bool) -> Decoded:
    """`known` is false where the link is of another scenario."""
    _check_keys(reader, keys_of(scenario))
    state = start(scenario)
    covered = not _is_open(reader)
    if known:
        state = _state(reader, state)
    return Decoded(state, covered, _some(reader.problems))


def _some(problems: list[str]) -> tuple[str, ...]:
    """The problems, those past the first few as their number."""
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return tuple(problems)
    return (*problems[:MOST_PROBLEMS], f"And {more} more like these.")


def _check_keys(reader: _Reader, known: Collection[str]) -> None:
    for key in [key for key in reader.query if key not in known]:
        expected = "a key that Gradebook knows"
        found = "none"
        if key in KEYS:
            expected, found = "a key of this page's links", "another page's"
        reader.wrong(key, expected, found, "it is left out")
        del reader.query[key]
    version = reader.query.get("v")
    if version != VERSION:
        found = "not there" if version is None else shown(version)
        reader.wrong("v", VERSION, found, "it is read as version 1")


def _scenario(reader: _Reader, default: str) -> tuple[Scenario, bool]:
    """The link's scenario or the nearest, and whether it is the link's."""
    name = reader.query.get("s")
    if name is not None and name in _known():
        try:
            return case(name), True
        except GradebookError as error:
            then = f"{shown(default)} is shown instead"
            reader.wrong("s", "a scenario that loads", str(error), then)
            return case(default), False
    nearest = default if name is None else _nearest(name, default)
    found = "not there" if name is None else shown(name)
    reader.wrong(
        "s",
        "the name of a scenario",
        found,
        f"{shown(nearest)} is shown as it is, without the link's changes",
    )
    return case(nearest), False


def _known() -> tuple[str, ...]:
    """Everything that a link may be of."""
    return (*names(), *starts())


def _nearest(name: str, default: str) -> str:
    bug = name.partition("-")[0]
    if bug in names():
        return bug
    among = starts() if is_start(name) or is_start(default) else names()
    close = difflib.get_close_matches(name[:100], among, n=1)
    return close[0] if close else default


def _is_open(reader: _Reader) -> bool:
    text = reader.query.get("open", "0")
    if text not in ("0", "1"):
        reader.wrong("open", "0 or 1", shown(text), "0 is taken")
    return text == "1"


def _state(reader: _Reader, own: State) -> State:
    """The case's own state with the link's differences laid over."""
    table, typed = own.table, dict(own.typed)
    values: dict[str, Any] = {}
    if "t" in reader.query:
        try:
            table, refused = unpack(reader.query["t"], own.table)
        except GradebookError as error:
            place, then = f"t{error.key}", "the scenario's cells are shown"
            reader.wrong(place, error.expected, error.found, then)
        else:
            for cell in refused:
                then = "the scenario's cell is shown"
                reader.wrong(f"t{cell.key}", cell.expected, cell.found, then)
    for name, field in FIELDS.items():
        value = own.get(name)
        if name == "row":
            value = min(value, max(len(table) - 1, 0))
        if name in reader.query:
            value = _value(reader, field, value, len(table))
        (typed if field.setting else values)[name] = value
    state = replace(own, table=table, typed=typed, **values)
    try:
        state.batch()
    except GradebookError as error:
        then = "the case is shown as it is, without the link's changes"
        reader.wrong(f"t.{error.key}", error.expected, error.found, then)
        return own
    return state


def _value(reader: _Reader, field: Field, own: Any, rows: int) -> Any:
    """The field's value in the link; `own` where it cannot be read."""
    text = reader.query[field.name]
    if field.kind == "bugs":
        text = _known_bugs(reader, text, field.format(own))
    try:
        value = field.parse(text)
        if field.kind != "row" or value < max(rows, 1):
            return value
        raise GradebookError(found=shown(text))
    except GradebookError as error:
        expected, then = error.expected, f"{field.format(own)} is taken"
        if field.kind == "row":
            expected = f"a row from 0 to {max(rows - 1, 0)}"
            then = f"row {own} is selected"
        elif field.kind == "number":
            then = "the scenario's value is taken"
        reader.wrong(field.name, expected, error.found, then)
        return own


def _known_bugs(reader: _Reader, text: str, own: str) -> str:
    """The names of bugs among those in the link; `own` where none is."""
    named = dict.fromkeys(text.split("."))
    found = [name for name in named if name in BUGS or text == NO_BUG]
    for name in named:
        if name not in found:
            then = "that one is left out"
            if not found:
                then = f"{own} is taken"
            expected = "names of bugs between dots"
            reader.wrong("bugs", expected, shown(name), then)
    return ".".join(found) or own
