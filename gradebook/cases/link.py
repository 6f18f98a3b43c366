"""A state as the query string of a link, and back.

    v=1  s=<case>  open=1  <field>=<as typed>  t=<the table's differences>

The fields are the settings. A key stands in the link only
where the state is not what the case says; without `open` the faulty side is
covered. `t` is the table's differences as JSON, packed by zlib and base64url.
Reading a link never raises: what it does not understand, it names.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario, case, is_start, names, starts
from gradebook.cases.state import State, read_setting, start
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS, is_flag
from gradebook.core.errors import GradebookError, choice, refuse, shown
from gradebook.core.settings import CHOICES, FLAGS, TYPES

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
MOST_PROBLEMS = 20
LONGEST_TEXT = 1000
"""Characters of a number as typed."""
NO_BUG = "none"
MOST_UNPACKED = 200_000
RENAMED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "detector": ("eos_by_width", {}),
    "training_guard": ("skip_flat", {"0": "always", "1": "training"}),
    "normalization": (
        "second_over",
        {"once": "none", "by-episode": "rows", "by-transition": "steps"}
        | {"after-subsampling": "kept_steps"},
    ),
}
"""Keys of links written before they were settings, with their values."""

KEYS = ("v", "s", "open", "bugs", "row", *TYPES, "t")
"""Every key that a link may have, in the order of a link."""


def keys_of(scenario: Scenario) -> tuple[str, ...]:
    """Every key that a link of the scenario's page may have."""
    absent = "open" if is_start(scenario.name) else "bugs"
    return tuple(key for key in KEYS if key != absent)


@dataclass(frozen=True, eq=False)
class Decoded:
    """What a link says, with a sentence for all that was not understood."""

    state: State
    covered: bool
    problems: tuple[str, ...] = ()


def encode(state: State, covered: bool) -> dict[str, str]:
    """The state's query parameters."""
    scenario, origin = state.scenario, start(state.scenario)
    now, then = _texts(state), _texts(origin)
    query = {"v": VERSION, "s": scenario.name}
    if not covered:
        query["open"] = "1"
    query |= {key: text for key, text in now.items() if text != then[key]}
    if packed := pack(state.table, origin.table):
        query["t"] = packed
    keys = keys_of(scenario)
    return {key: text for key, text in query.items() if key in keys}


def _texts(state: State) -> dict[str, str]:
    texts = {"bugs": ".".join(state.bugs) or NO_BUG, "row": str(state.row)}
    for name in TYPES:
        typed = state.typed[name]
        texts[name] = str(int(typed) if name in FLAGS else typed)
    return texts


def _parsed(name: str, text: str) -> str | int:
    """The setting as typed, for a link's text."""
    if name in CHOICES or name in FLAGS:
        options = CHOICES.get(name, (False, True))
        texts = [str(int(o) if name in FLAGS else o) for o in options]
        return options[texts.index(choice(text, texts))]
    if len(text) > LONGEST_TEXT:
        raise refuse(f"at most {LONGEST_TEXT} characters long", len(text))
    read_setting(name, text)
    return text


def query_string(query: Mapping[str, str | list[str]]) -> str:
    """The parameters as they stand in the address, after the '?'."""
    return urlencode(query, True, encoding="utf-8", errors="surrogatepass")


def excess(query: Mapping[str, str]) -> str:
    """What to say of a link that does not fit; '' where it does."""
    length = len(query_string(query))
    if length <= LIMIT:
        return ""
    return (
        f"This batch makes a link of {length} characters, and only {LIMIT} are safe"
        " to send. Take the scenario file or the CSV instead."
    )


def in_words(key: str, expected: str, found: str, then: str) -> str:
    """What is wrong with a link, and what is done about it."""
    return f"In this link {shown(key)} should be {expected}, but is {found}; {then}."


def decode(
    query: Mapping[str, str], default: str = "", others: Collection[str] = ()
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

    def wrong(key: str, expected: str, then: str, found: str = "") -> None:
        value = found or (shown(link[key]) if key in link else "not there")
        problems.append(in_words(key, expected, value, then))

    name = link.get("s", "")
    if name not in cases:
        bug = name.partition("-")[0]
        default = bug if bug in BUGS else default
        then = f"{shown(default)} is shown as it is, without the link's changes"
        wrong("s", "the name of a scenario", then)
    scenario = case(name if name in cases else default)
    keys = keys_of(scenario)
    for key in [key for key in link if key not in keys]:
        wrong(key, "a key of this page's links", "it is left out", "none")
    if link.get("v") != VERSION:
        wrong("v", VERSION, "it is read as version 1")
    if link.get("open", "0") not in ("0", "1"):
        wrong("open", "0 or 1", "0 is taken")
    state = start(scenario)
    if name in cases:
        keyed = {key: text for key, text in link.items() if key in keys}
        state = _state(keyed, state, wrong)
    covered = "open" not in keys or link.get("open") != "1"
    return Decoded(state, covered, tuple(problems[:MOST_PROBLEMS]))


def _state(
    query: Mapping[str, str], origin: State, wrong: Callable[..., None]
) -> State:
    """The case's own state with the link's differences laid over; `wrong` notes
    a key, what was expected there, and what is done about it."""
    table = origin.table
    if "t" in query:
        try:
            table = unpack(query["t"], table)
        except GradebookError as error:
            then = "the scenario's cells are shown"
            wrong(f"t{error.key}", error.expected, then, error.found)
    rows = max(len(table), 1)
    taken = replace(origin, table=table, row=min(origin.row, rows - 1))
    changes: dict[str, Any] = {}
    typed = dict(origin.typed)
    for key in [key for key in KEYS if key in query]:
        text = query[key]
        try:
            if key == "bugs":
                named = [] if text == NO_BUG else text.split(".")
                for name in named:
                    if name not in BUGS:
                        raise refuse("names of bugs between dots", name)
                changes["bugs"] = tuple(name for name in BUGS if name in named)
            elif key == "row":
                if text not in [str(row) for row in range(rows)]:
                    raise refuse(f"a row from 0 to {rows - 1}", text)
                changes["row"] = int(text)
            elif key in TYPES:
                typed[key] = _parsed(key, text)
        except GradebookError as error:
            kept = shown(_texts(taken)[key])
            wrong(key, error.expected, f"{kept} is taken", error.found)
    state = replace(taken, typed=typed, **changes)
    try:
        state.batch()
    except GradebookError as error:
        then = "the case is shown as it is, without the link's changes"
        wrong(f"t.{error.key}", error.expected, then, error.found)
        return origin
    return state


# The table: {"n": rows, "k": [columns], "c": {header: cells}}, with the number of
# tokens as the mask's column, and cells as {"row": cell}, as a list, or for flags as
# "0110". What is not there is the case's, whose last row stands for the rows past its
# end.


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
    changed = {}
    for header, base in _base(original, table.headers, len(table)).items():
        cells = table[header]
        few = {str(row): c for row, c in enumerate(cells) if c != base[row]}
        bits = "".join(str(int(cell)) for cell in cells) if is_flag(header) else cells
        if few:
            changed[header] = min(bits, few, key=lambda form: len(_json(form)))
    if changed:
        differences["c"] = changed
    packed = base64.urlsafe_b64encode(zlib.compress(_json(differences), 6))
    return packed.decode().rstrip("=")


def _base(original: Table, headers: Iterable[str], rows: int) -> dict[str, list[Any]]:
    """The case's cells on another number of rows and columns."""
    places = [min(row, len(original) - 1) for row in range(rows)]
    base: dict[str, list[Any]] = {}
    for header in headers:
        empty: tuple[Any, ...] = (False if is_flag(header) else "",) * len(original)
        base[header] = [original.get(header, empty)[place] for place in places]
    return base


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def unpack(text: str, original: Table) -> Table:
    """The table that `text` describes. Raises GradebookError where Gradebook
    did not write it, with its place in the table as key where a cell cannot be
    read."""
    try:
        cells = _unpacked(text, original)
    except Exception:  # whatever a text that Gradebook did not write can break
        damaged = "a table packed by Gradebook"
        raise GradebookError(expected=damaged, found="damaged") from None
    try:
        return Table.of_columns(cells)
    except GradebookError as error:
        raise error.at(key=f".c.{error.key}.{error.row}") from None


def _unpacked(text: str, original: Table) -> dict[str, list[Any]]:
    stream = zlib.decompressobj()
    padded = text + "=" * (-len(text) % 4)
    packed = base64.b64decode(padded, altchars=b"-_", validate=True)
    value = json.loads(stream.decompress(packed, MOST_UNPACKED).decode())
    _json(value).decode()  # no half of a surrogate pair, however written
    rows, changes = value.pop("n", len(original)), value.pop("c", {})
    headers: list[str] = []
    for name in value.pop("k", original.headers):
        tokens = range(1, name + 1) if name in range(1, WIDEST + 1) else ()
        headers += [f"t{token}" for token in tokens] or [name]
    columns = {*COLUMNS, *(f"t{t + 1}" for t in range(WIDEST))} - {"mask"}
    sound = (
        stream.eof and not stream.unused_data and not value,
        {"prompt", "reward"} <= {*headers} <= columns,
        len({*headers}) == len(headers) and rows in range(MOST_ROWS + 1),
    )
    if not all(sound):
        raise ValueError("no table of this case")
    cells = _base(original, headers, rows)
    for header, column in changes.items():
        if is_flag(header) and isinstance(column, str):
            column = [("0", "1").index(mark) == 1 for mark in column]
        if isinstance(column, list):
            column = dict(zip(range(rows), column, strict=True))
        for row, cell in column.items():
            if int(row) < 0:
                raise ValueError("no row of the table")
            cells[header][int(row)] = cell
    return cells
