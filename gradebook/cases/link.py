"""Writes a state as the query string of a link, and reads it.

    v=1  s=<case>  open=1  <field>=<value>  t=<the table's differences>

The fields are the settings, and in the sandbox the bugs. A key is in the link only if
the state differs there from the case; without `open` the faulty side is covered. `t` is
the table's differences as JSON, packed by zlib and base64url.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases.scenario import case, is_start, names, starts
from gradebook.cases.state import State, start
from gradebook.cases.table import MOST_ROWS, WIDEST, Table
from gradebook.core.columns import COLUMNS, as_text, is_flag
from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.settings import FLAGS, Settings, read_setting

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
NO_BUG = "none"
MOST_UNPACKED = 200_000
"""Bytes to which the table of a link is unpacked at most: zlib packs up to a thousand
equal ones into one."""
MOST_HEADERS = len(COLUMNS) + WIDEST
"""Every column of a batch, and every token of the mask."""
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

KEYS = ("v", "s", "open", "bugs", "row", "token", *Settings().keys(), "t")
"""Every key that a link may have, in the order of a link."""


class Decoded(NamedTuple):
    """What a link says. If there is a `problem`, in words, the state is the case's
    own."""

    state: State
    covered: bool
    problem: str = ""


def encode(state: State, covered: bool) -> dict[str, str]:
    name, origin = state.scenario.name, start(state.scenario)
    now, then = _texts(state), _texts(origin)
    query = {"v": VERSION, "s": name}
    if not covered and not is_start(name):
        query["open"] = "1"
    query |= {key: text for key, text in now.items() if text != then[key]}
    if packed := pack(state.table, origin.table):
        query["t"] = packed
    return query


def _texts(state: State) -> dict[str, str]:
    texts = {"bugs": ".".join(state.bugs) or NO_BUG, "row": str(state.row)}
    texts["token"] = str(state.token)
    for name, value in state.settings.items():
        texts[name] = str(int(value)) if name in FLAGS else as_text(value)
    return texts


def query_string(query: Mapping[str, str | list[str]]) -> str:
    """The parameters as text for an address, without the '?'."""
    return urlencode(query, True, encoding="utf-8", errors="surrogatepass")


def excess(query: Mapping[str, str]) -> str:
    """The message about a link that is too long; '' if it is not."""
    length = len(query_string(query))
    if length <= LIMIT:
        return ""
    return (
        f"This batch makes a link of {length} characters, and only {LIMIT} are safe"
        " to send. Take a file instead."
    )


def in_words(key: str, expected: str, found: str, then: str) -> str:
    return f"In this link {shown(key)} should be {expected}, but is {found}; {then}."


def decode(query: Mapping[str, str], default: str = "") -> Decoded:
    """The state that a link's query parameters describe. Never raises, and passes over
    other parameters. `default` is the case of a link that names none."""
    link = {key: text for key, text in query.items() if key in KEYS}
    for key, (setting, values) in RENAMED.items():
        if key in query:
            link[setting] = values.get(query[key], query[key])
    cases = (*names(), *starts())
    default = default if default in cases else names()[0]
    if not link:
        return Decoded(start(case(default)), True)
    name = link.get("s", "")
    bug = name.partition("-")[0]
    near = name if name in cases else bug if bug in BUGS else default
    origin = start(case(near))
    covered = is_start(near) or link.get("open") != "1"
    try:
        if name != near:
            raise refuse("the name of a scenario", name, "s")
        return Decoded(_state(link, origin), covered)
    except GradebookError as error:
        then = f"{shown(near)} is shown as it is, without the link's changes"
        problem = in_words(error.key, error.expected, error.found, then)
        return Decoded(origin, covered, problem)


def _state(link: Mapping[str, str], origin: State) -> State:
    """The case's own state with the link's differences. Raises GradebookError with
    the link's key, or the place in its table."""
    table = unpack(link["t"], origin.table) if "t" in link else origin.table
    rows, tokens = len(table), max(table.width, 1)
    row = _place("row", link.get("row", str(min(origin.row, rows - 1))), rows)
    token = link.get("token", str(min(origin.token, tokens - 1)))
    token_place = _place("token", token, tokens)
    bugs = origin.bugs
    if "bugs" in link and is_start(origin.scenario.name):
        bugs = _bugs(link["bugs"])
    changed = {n: read_setting(n, link[n]) for n in origin.settings if n in link}
    settings = replace(origin.settings, **changed)
    state = State(origin.scenario, table, settings, row, bugs, token_place)
    try:
        state.batch()
    except GradebookError as error:
        raise error.at(key=f"t.{error.key}") from None
    return state


def _place(key: str, text: str, count: int) -> int:
    """The number of a row or of a token, as `key` says. Raises GradebookError unless
    it is below `count`."""
    if text not in [str(place) for place in range(count)]:
        raise refuse(f"a {key} from 0 to {count - 1}", text, key)
    return int(text)


def _bugs(text: str) -> tuple[str, ...]:
    """The bugs whose names are between dots, in the order of BUGS. Raises
    GradebookError for an unknown name."""
    names = [] if text == NO_BUG else text.split(".")
    for name in names:
        if name not in BUGS:
            raise refuse("names of bugs between dots", name, "bugs")
    return tuple(name for name in BUGS if name in names)


# The table: {"n": rows, "k": [columns], "c": {header: cells}}, with the number of
# tokens as the mask's column, and cells as {"row": cell}, as a list, or for flags as
# "0110". What is missing is taken from the case; rows past its end are taken from its
# last row.


def pack(table: Table, original: Table) -> str:
    if table == original:
        return ""
    differences: dict[str, Any] = {"c": {}}
    if len(table) != len(original):
        differences["n"] = len(table)
    if table.headers != original.headers:
        columns = table.columns
        differences["k"] = [table.width if c == "mask" else c for c in columns]
    for header, base in _base(original, table.headers, len(table)).items():
        cells = table[header]
        few = {str(row): c for row, c in enumerate(cells) if c != base[row]}
        every = "".join(str(int(cell)) for cell in cells) if is_flag(header) else cells
        if few:
            forms = (every, few)
            differences["c"][header] = min(forms, key=lambda form: len(_json(form)))
    packed = base64.urlsafe_b64encode(zlib.compress(_json(differences), 6))
    return packed.decode().rstrip("=")


def _base(original: Table, headers: Iterable[str], rows: int) -> dict[str, list[Any]]:
    cells = original.extended(rows).cells
    empty = {header: (False if is_flag(header) else "",) * rows for header in headers}
    return {header: list(cells.get(header, empty[header])) for header in headers}


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def unpack(text: str, original: Table) -> Table:
    """Raises GradebookError if Gradebook did not write `text`, and, with its place in
    the table as key, if a cell cannot be read."""
    try:
        return Table.of_columns(_unpacked(text, original))
    except GradebookError as error:
        cell = "" if error.row is None else f".c.{error.key}.{error.row}"
        raise error.at(key=f"t{cell}") from None
    except Exception:  # whatever a text that Gradebook did not write can break
        packed = "a table packed by Gradebook"
        raise GradebookError(key="t", expected=packed, found="damaged") from None


def _unpacked(text: str, original: Table) -> dict[str, list[Any]]:
    """The cells of each column. Raises whatever a text that Gradebook did not write can
    break, and ValueError for a table that is too large."""
    packed = _opened(text)
    rows = packed.get("n", len(original))
    columns = packed.get("k", [*original.headers])
    # Before anything is made of them: a short text can name very many.
    if rows not in range(MOST_ROWS + 1) or len(columns) > MOST_HEADERS:
        raise ValueError("too many rows or columns")
    cells = _base(original, _headers(columns), rows)
    for header, column in packed.get("c", {}).items():
        for row, cell in _changes(header, column, rows).items():
            cells[header][range(rows).index(int(row))] = cell
    return cells


def _opened(text: str) -> dict[str, Any]:
    """The packed table. Raises ValueError for a text that is not one whole table, and
    for half of a surrogate pair, however written."""
    stream = zlib.decompressobj()
    padded = text + "=" * (-len(text) % 4)
    packed = base64.b64decode(padded, altchars=b"-_", validate=True)
    value = json.loads(stream.decompress(packed, MOST_UNPACKED).decode())
    _json(value).decode()
    if not stream.eof or stream.unused_data:
        raise ValueError("not one whole table")
    return value


def _headers(columns: list[Any]) -> list[str]:
    """The table's headers: a number of tokens is as many columns. Raises ValueError
    for a column twice, and for too many."""
    headers: list[str] = []
    for name in columns:
        tokens = range(min(name, WIDEST + 1)) if isinstance(name, int) else ()
        headers += [f"t{t + 1}" for t in tokens] or [name]
    if len({*headers}) < len(headers) or len(headers) > MOST_HEADERS:
        raise ValueError("a column twice, or too many")
    return headers


def _changes(header: str, column: Any, rows: int) -> dict[Any, Any]:
    """A column's changed cells by row, of any of the three forms."""
    if is_flag(header) and isinstance(column, str):
        column = [("0", "1").index(mark) == 1 for mark in column]
    if isinstance(column, list):
        return dict(zip(range(rows), column, strict=True))
    return column
