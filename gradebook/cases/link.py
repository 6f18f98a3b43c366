"""A state as the query string of a link, and back.

    v=1  s=<case>  open=1  <field>=<as typed>  t=<the table's differences>

The fields are those of gradebook.cases.fields. A key stands in the link only
where the state is not what the case says; without `open` the faulty side is
covered. `t` is packed by gradebook.cases.packed_table. Reading a link never
raises: what it does not understand, it names.
"""

from __future__ import annotations

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
from gradebook.core.errors import GradebookError, refuse, shown

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
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
    others = {name for name, field in FIELDS.items() if field.page not in ("", page)}
    others |= {"open"} if page == "sandbox" else set()
    return tuple(key for key in KEYS if key not in others)


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
    origin = start(state.scenario)
    query = {"v": VERSION, "s": state.scenario.name}
    if not covered:
        query["open"] = "1"
    for name, field in FIELDS.items():
        if state.get(name) != origin.get(name):
            query[name] = field.format(state.get(name))
    if packed := pack(state.table, origin.table):
        query["t"] = packed
    keys = keys_of(state.scenario)
    return {key: text for key, text in query.items() if key in keys}


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


def decode(
    query: Mapping[str, str],
    default: str = "",
    others: Collection[str] = (),
) -> Decoded:
    """The state that a link's query parameters describe. Never raises.

    `default` is the scenario of a link that names none; `others` are keys
    that belong to somebody else and are passed over.
    """
    cases = (*names(), *starts())
    default = default if default in cases else names()[0]
    link = {key: text for key, text in query.items() if key not in others}
    if not link:
        return Decoded(start(case(default)), True)
    for key, (name, values) in RENAMED.items():
        if key in link:
            text = link.pop(key)
            link[name] = values.get(text, text)
    reader = _Reader()
    name = link.get("s", "")
    if name not in cases:
        bug = name.partition("-")[0]
        default = bug if bug in BUGS else default
        then = f"{shown(default)} is shown as it is, without the link's changes"
        reader.wrong("s", "the name of a scenario", _found(link, "s"), then)
    scenario = case(name if name in cases else default)
    keys = keys_of(scenario)
    for key in link:
        if key not in keys:
            expected, then = "a key of this page's links", "it is left out"
            reader.wrong(key, expected, "none", then)
    if link.get("v") != VERSION:
        reader.wrong("v", VERSION, _found(link, "v"), "it is read as version 1")
    covering = link.get("open", "0")
    if covering not in ("0", "1"):
        reader.wrong("open", "0 or 1", shown(covering), "0 is taken")
    state = start(scenario)
    if name in cases:
        known = {key: text for key, text in link.items() if key in keys}
        state = reader.state(known, state)
    covered = covering != "1" or "open" not in keys
    return Decoded(state, covered, tuple(reader.problems[:MOST_PROBLEMS]))


def _found(link: Mapping[str, str], key: str) -> str:
    return shown(link[key]) if key in link else "not there"


class _Reader:
    """A link under reading, and what was wrong with it so far."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def wrong(self, key: str, expected: str, found: str, then: str) -> None:
        """Notes what was expected and found, and what is done about it."""
        self.problems.append(in_words(key, expected, found, then))

    def refused(self, key: str, error: GradebookError, then: str) -> None:
        """Notes an error at a key."""
        self.wrong(key, error.expected, error.found, then)

    def state(self, query: Mapping[str, str], origin: State) -> State:
        """The case's own state with the link's differences laid over."""
        table = origin.table
        if "t" in query:
            try:
                table, cells = unpack(query["t"], table)
            except GradebookError as error:
                self.refused(f"t{error.key}", error, "the scenario's cells are shown")
            else:
                for refusal in cells:
                    then = "the scenario's cell is shown"
                    self.refused(f"t{refusal.key}", refusal, then)
        rows = max(len(table), 1)
        values: dict[str, Any] = {"row": min(origin.row, rows - 1)}
        typed = dict(origin.typed)
        for name in FIELDS:
            if name in query:
                place = typed if FIELDS[name].setting else values
                try:
                    place[name] = _value(FIELDS[name], query[name], rows)
                except GradebookError as error:
                    taken = FIELDS[name].format(place.get(name, origin.get(name)))
                    self.refused(name, error, f"{shown(taken)} is taken")
        state = replace(origin, table=table, typed=typed, **values)
        try:
            state.batch()
        except GradebookError as error:
            then = "the case is shown as it is, without the link's changes"
            self.refused(f"t.{error.key}", error, then)
            return origin
        return state


def _value(field: Field, text: str, rows: int) -> Any:
    """The field's value in a link. Raises GradebookError."""
    if field.kind == "bugs" and text != NO_BUG:
        for name in text.split("."):
            if name not in BUGS:
                raise refuse("names of bugs between dots", name)
    value = field.parse(text)
    if field.kind == "row" and value >= rows:
        raise refuse(f"a row from 0 to {rows - 1}", text)
    return value
