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
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases.columns import column_of
from gradebook.cases.scenario import Scenario, case, is_start, names, starts
from gradebook.cases.state import FIELDS, State, start
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, refuse, shown

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
MOST_PROBLEMS = 20
MOST_UNPACKED = 200_000
DAMAGED = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(RecursionError, zlib.error),
)
"""What reading a packed table raises that Gradebook did not write."""

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
            table = unpack(query["t"], table)
        except GradebookError as error:
            then = "the scenario's cells are shown"
            wrong(f"t{error.key}", error.expected, error.found, then)
    rows = max(len(table), 1)
    values: dict[str, Any] = {"row": min(origin.row, rows - 1)}
    typed = dict(origin.typed)
    for name in [name for name in FIELDS if name in query]:
        field = FIELDS[name]
        place = typed if field.setting else values
        try:
            value = field.parse(query[name])
            if field.kind == "row" and value >= rows:
                raise refuse(f"a row from 0 to {rows - 1}", query[name])
            place[name] = value
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


def unpack(text: str, original: Table) -> Table:
    """The table that `text` describes. Raises GradebookError where Gradebook
    did not write it, with its place in the table as key where a cell cannot be
    read."""
    try:
        stream = zlib.decompressobj()
        padded = text + "=" * (-len(text) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        value = json.loads(stream.decompress(packed, MOST_UNPACKED).decode())
        _json(value).decode()  # no half of a surrogate pair, however written
        rows, changes = value.pop("n", len(original)), value.pop("c", {})
        headers: Sequence[str] = original.headers
        if (columns := value.pop("k", None)) is not None:
            lists = [
                [f"t{t + 1}" for t in range(c)] if c in range(1, WIDEST + 1) else [c]
                for c in columns
            ]
            headers = [header for names in lists for header in names]
        whole = stream.eof and not stream.unused_data and not value
        most = WIDEST + len(COLUMNS)
        once = {"prompt", "reward"} <= {*headers} and len({*headers}) == len(headers)
        if not (whole and once and "mask" not in headers and len(headers) <= most):
            raise ValueError
        if rows not in range(MOST_ROWS + 1):
            raise ValueError
        cells = _base(original, headers, rows)
        for header, column in changes.items():
            if _is_flag(header) and isinstance(column, str):
                column = [("0", "1").index(mark) == 1 for mark in column]
            if isinstance(column, list):
                column = dict(zip(range(rows), column, strict=True))
            for row, cell in column.items():
                if int(row) < 0:
                    raise ValueError
                cells[header][int(row)] = cell
    except DAMAGED:
        damaged = "a table packed by Gradebook"
        raise GradebookError(expected=damaged, found="damaged") from None
    try:
        return Table.of_columns(cells)
    except GradebookError as error:
        raise error.at(key=f".c.{error.key}.{error.row}") from None
