"""A state as the query string of a link, and back.

    v=1  s=<case>  open=1  <field>=<as typed>  t=<the table's differences>

The fields are those of gradebook.cases.state. A key stands in the link only
where the state is not what the case says; without `open` the faulty side is
covered. `t` is the table's differences as JSON, packed by zlib and base64url.
Reading a link never raises: what it does not understand, it names.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases.columns import as_cell, column_of
from gradebook.cases.sandbox import case, is_start, starts
from gradebook.cases.scenario import Scenario, names
from gradebook.cases.state import FIELDS, NO_BUG, Field, State, start
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse, shown

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
MOST_PROBLEMS = 20
MOST_UNPACKED = 200_000

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
    problems: list[str] = []

    def wrong(key: str, expected: str, found: str, then: str) -> None:
        problems.append(in_words(key, expected, found, then))

    name = link.get("s", "")
    if name not in cases:
        bug = name.partition("-")[0]
        default = bug if bug in BUGS else default
        then = f"{shown(default)} is shown as it is, without the link's changes"
        wrong("s", "the name of a scenario", _found(link, "s"), then)
    scenario = case(name if name in cases else default)
    keys = keys_of(scenario)
    for key in link:
        if key not in keys:
            wrong(key, "a key of this page's links", "none", "it is left out")
    if link.get("v") != VERSION:
        wrong("v", VERSION, _found(link, "v"), "it is read as version 1")
    covering = link.get("open", "0")
    if covering not in ("0", "1"):
        wrong("open", "0 or 1", shown(covering), "0 is taken")
    state = start(scenario)
    if name in cases:
        keyed = {key: text for key, text in link.items() if key in keys}
        state = _state(keyed, state, wrong)
    covered = covering != "1" or "open" not in keys
    return Decoded(state, covered, tuple(problems[:MOST_PROBLEMS]))


def _found(link: Mapping[str, str], key: str) -> str:
    return shown(link[key]) if key in link else "not there"


def _state(
    query: Mapping[str, str], origin: State, wrong: Callable[[str, str, str, str], None]
) -> State:
    """The case's own state with the link's differences laid over; `wrong` notes
    a key, what was expected and found there, and what is done about it."""
    if query.keys() <= {"v", "s", "open"}:
        return origin
    table = origin.table
    if "t" in query:
        try:
            table, refusals = unpack(query["t"], table)
        except GradebookError as error:
            shown_instead = "the scenario's cells are shown"
            wrong(f"t{error.key}", error.expected, error.found, shown_instead)
        else:
            for e in refusals:
                then = "the scenario's cell is shown"
                wrong(f"t{e.key}", e.expected, e.found, then)
    rows = max(len(table), 1)
    values: dict[str, Any] = {"row": min(origin.row, rows - 1)}
    typed = dict(origin.typed)
    for name in [name for name in FIELDS if name in query]:
        field = FIELDS[name]
        place = typed if field.setting else values
        try:
            place[name] = _value(field, query[name], rows)
        except GradebookError as error:
            taken = shown(field.format(place.get(name, origin.get(name))))
            wrong(name, error.expected, error.found, f"{taken} is taken")
    state = replace(origin, table=table, typed=typed, **values)
    try:
        state.batch()
    except GradebookError as error:
        then = "the case is shown as it is, without the link's changes"
        wrong(f"t.{error.key}", error.expected, error.found, then)
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


# The table: {"n": rows, "k": [columns], "c": {header: cells}}, with cells as
# {"row": cell}, as a list, or for flags as "0110". What is not there is the case's,
# whose last row stands for the rows past its end.


def pack(table: Table, original: Table) -> str:
    """The table's differences from `original` as text, '' for none."""
    if table == original:
        return ""
    differences: dict[str, Any] = {}
    if len(table) != len(original):
        differences["n"] = len(table)
    if table.headers != original.headers:
        differences["k"] = [
            table.width if name == "mask" else name for name in table.columns
        ]
    base = _base(original, table.headers, len(table))
    changed = {
        header: _written(header, table[header], base[header])
        for header in table.headers
        if list(table[header]) != base[header]
    }
    if changed:
        differences["c"] = changed
    packed = base64.urlsafe_b64encode(zlib.compress(_json(differences), 6))
    return packed.decode().rstrip("=")


def _base(original: Table, headers: Sequence[str], rows: int) -> dict[str, list[Any]]:
    """The case's cells on another number of rows and columns."""
    places = [min(row, len(original) - 1) for row in range(rows)]
    base: dict[str, list[Any]] = {}
    for header in headers:
        absent = (False if _is_flag(header) else "",) * len(original)
        cells = original.get(header, absent)
        base[header] = [cells[place] for place in places]
    return base


def _is_flag(header: str) -> bool:
    return COLUMNS[column_of(header)].kind in ("flag", "tokens")


def _written(header: str, cells: Sequence[Any], base: list[Any]) -> Any:
    few = {str(row): cell for row, cell in enumerate(cells) if cell != base[row]}
    every: Any = list(cells)
    if _is_flag(header):
        every = "".join("01"[cell] for cell in cells)
    return min(every, few, key=lambda form: len(_json(form)))


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def unpack(text: str, original: Table) -> tuple[Table, list[GradebookError]]:
    """The table that `text` describes, and each of its cells that cannot be
    read, for which the case's stands. Raises GradebookError, with its place in
    the table as key, where Gradebook did not write the text."""
    value = _unpacked(text)
    _require(isinstance(value, dict) and {*value} <= {"n", "k", "c"})
    rows = value.get("n", len(original))
    _require(type(rows) is int and 0 <= rows <= MOST_ROWS, ".n")
    headers = _headers(value["k"]) if "k" in value else original.headers
    cells, changes = _base(original, headers, rows), value.get("c", {})
    _require(isinstance(changes, dict) and {*changes} <= {*cells}, ".c")
    width = sum(column_of(header) != header for header in headers)
    refusals = []
    for header, column in changes.items():
        for row, cell in _by_row(header, column, rows).items():
            try:
                as_cell(header, cell, width)
                cells[header][row] = cell
            except GradebookError as error:
                refusals.append(error.at(key=f".c.{header}.{row}"))
    try:
        return Table.of_columns(cells), refusals
    except GradebookError as error:
        raise error.at(key=f".c.{error.key}.{error.row}") from None


def _require(intact: bool, place: str = "") -> None:
    if not intact:
        packed = "a table packed by Gradebook"
        raise GradebookError(key=place, expected=packed, found="damaged")


def _unpacked(text: str) -> Any:
    try:
        padded = text + "=" * (-len(text) % 4)
        stream = zlib.decompressobj()
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        content = stream.decompress(packed, MOST_UNPACKED)
        _require(stream.eof and not stream.unused_data)
        value = json.loads(content.decode())
        _json(value).decode()  # no half of a surrogate pair, however written
        return value
    except (ValueError, RecursionError, zlib.error):
        _require(False)


def _headers(columns: Any) -> list[str]:
    headers: list[str] = []
    for part in columns if isinstance(columns, list) else [None]:
        if type(part) is int and 0 < part <= WIDEST:
            headers += [f"t{t + 1}" for t in range(part)]
        elif isinstance(part, str) and part != "mask" and column_of(part) in COLUMNS:
            headers.append(part)
        else:
            _require(False, ".k")
    _require({"prompt", "reward"} <= {*headers}, ".k")
    _require(len({*headers}) == len(headers) <= WIDEST + len(COLUMNS), ".k")
    return headers


def _by_row(header: str, column: Any, rows: int) -> dict[int, Any]:
    """A column's cells by row, from any of its forms."""
    place = f".c.{header}"
    if _is_flag(header) and isinstance(column, str):
        _require({*column} <= {"0", "1"}, place)
        column = [mark == "1" for mark in column]
    if isinstance(column, list):
        _require(len(column) == rows, place)
        column = {str(row): cell for row, cell in enumerate(column)}
    _require(isinstance(column, dict), place)
    for row in column:
        is_row = re.fullmatch("[0-9]{1,4}", row) is not None and int(row) < rows
        _require(is_row, place)
    return {int(row): cell for row, cell in column.items()}
