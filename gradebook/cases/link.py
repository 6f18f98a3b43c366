"""A state as the query string of a link, and back.

    v=1  s=<scenario>  open=1  row=10  <setting>=<as typed>
    detector, evaluation, training_guard = 0 or 1
    normalization=by-episode  t=<the table's differences>

or of the sandbox, which asks nothing and has no page switches:

    v=1  s=<start>  bugs=<bug>.<bug>, or none  row  <setting>  detector  t

A key stands in the link only where the state is not what the scenario
says; without `open` the faulty side is covered. `t` is JSON, packed by
zlib and base64url:

    {"n": rows, "k": [columns], "c": {column: cells}}

with cells as {"row": cell}, as a list, or for flags as "0110"; what is not
there is the scenario's, whose last row stands for the rows past its end.
Reading a link never raises: what it does not understand, it names.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import math
import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from gradebook.bugs import BUGS
from gradebook.cases import table as tables
from gradebook.cases.sandbox import case, is_start, starts
from gradebook.cases.scenario import Scenario, names
from gradebook.cases.state import SWITCHES, State, start
from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import CHOICES, FLAGS, Settings
from gradebook.engine.trainer import NORMALIZATIONS

VERSION = "1"
LIMIT = 2000
"""Characters of a query string that every browser and chat passes on."""
LONGEST_VALUE = 300_000
LONGEST_TEXT = 1000
MOST_UNPACKED = 200_000
MOST_ROWS = tables.PASTE_LIMIT
MOST_PROBLEMS = 20
WIDEST = 256

SETTINGS = tuple(Settings().keys())
SLUGS = {
    how.removeprefix("twice, ").replace(" ", "-"): how
    for how in NORMALIZATIONS
}
KEYS = (
    *("v", "s", "open", "bugs", "row", "normalization", "t"),
    *SWITCHES,
    *SETTINGS,
)
"""Every key that a link may have."""
OF_A_BUG = ("open", "normalization", "evaluation", "training_guard")
OF_THE_SANDBOX = ("bugs",)
NO_BUG = "none"


def keys_of(scenario: Scenario) -> tuple[str, ...]:
    """Every key that a link of the scenario's page may have."""
    others = OF_A_BUG if is_start(scenario.name) else OF_THE_SANDBOX
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
    settings do not have, or a row past the table, is not kept."""
    own = start(state.scenario)
    query = {"v": VERSION, "s": state.scenario.name}
    if not covered:
        query["open"] = "1"
    if state.bugs != own.bugs:
        query["bugs"] = ".".join(state.bugs) or NO_BUG
    if state.row != own.row:
        query["row"] = str(state.row)
    for name in SWITCHES:
        if getattr(state, name) != getattr(own, name):
            query[name] = str(int(getattr(state, name)))
    if state.normalization != own.normalization:
        slugs = {how: slug for slug, how in SLUGS.items()}
        query["normalization"] = slugs[state.normalization]
    for name in SETTINGS:
        value = state.typed.get(name, own.typed[name])
        if value != own.typed[name]:
            query[name] = str(int(value) if name in FLAGS else value)
    if state.cells is not None:
        differences = _differences(state.cells, own.table)
        if differences:
            query["t"] = _packed(differences)
    known = keys_of(state.scenario)
    return {key: text for key, text in query.items() if key in known}


def query_string(query: Mapping[str, str]) -> str:
    """The parameters as they stand in the address, after the '?'."""
    return urlencode(query, encoding="utf-8", errors="surrogatepass")


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


def _differences(table: pd.DataFrame, own: pd.DataFrame) -> dict[str, Any]:
    """The table less the scenario's, as the `t` of a link."""
    found: dict[str, Any] = {}
    if len(table) != len(own):
        found["n"] = len(table)
    if list(table.columns) != list(own.columns):
        found["k"] = _columns_written(list(table.columns))
    base = _base(own, list(table.columns), len(table))
    changed = {
        name: _cells_written(name, table[name].tolist(), base[name])
        for name in table.columns
        if _plain(table[name].tolist()) != base[name]
    }
    return found | ({"c": changed} if changed else {})


def _columns_written(columns: list[str]) -> list[Any]:
    """Column names; a run t1 .. tT as the number T."""
    tokens = [c for c in columns if tables.TOKEN.fullmatch(c)]
    run = [f"t{t + 1}" for t in range(len(tokens))]
    at = columns.index("t1") if "t1" in columns else 0
    if not run or columns[at : at + len(run)] != run:
        return columns
    return [*columns[:at], len(run), *columns[at + len(run) :]]


def _plain(cells: list[Any]) -> list[Any]:
    """Cells as text, flag, or None for a cell without a value."""
    return [
        cell
        if isinstance(cell, (str, bool))
        else None
        if cell is None or (isinstance(cell, float) and math.isnan(cell))
        else tables.as_text(cell)
        for cell in cells
    ]


def _cells_written(name: str, cells: list[Any], base: list[Any]) -> Any:
    cells = _plain(cells)
    few = {str(r): c for r, c in enumerate(cells) if c != base[r]}
    every: Any = cells
    if tables.is_flag(name) and all(isinstance(c, bool) for c in cells):
        every = "".join("01"[c] for c in cells)
    return min(every, few, key=lambda form: len(_json(form)))


def _base(
    own: pd.DataFrame, columns: list[str], rows: int
) -> dict[str, list[Any]]:
    """The scenario's cells on another number of rows and columns."""
    at = [min(row, len(own) - 1) for row in range(rows)]
    base: dict[str, list[Any]] = {}
    for name in columns:
        absent = [False if tables.is_flag(name) else ""] * len(own)
        cells = own[name].tolist() if name in own.columns else absent
        base[name] = [cells[row] for row in at]
    return base


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _packed(value: Any) -> str:
    """JSON, zlib and base64url without padding."""
    packed = base64.urlsafe_b64encode(zlib.compress(_json(value), 9))
    return packed.decode().rstrip("=")


# Reading


class _Reader:
    """A query under reading, and what was wrong with it so far."""

    def __init__(self, query: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self.query = {
            key: value
            for key, value in query.items()
            if self._is_text(key, value)
        }

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
        self.problems.append(
            f"In this link {shown(key)} should be {expected}, but is"
            f" {found}; {then}."
        )

    def flag(self, key: str, absent: bool) -> bool:
        text = self.query.get(key)
        if text in ("0", "1"):
            return text == "1"
        if text is not None:
            self.wrong(key, "0 or 1", shown(text), f"{int(absent)} is taken")
        return absent


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
    _check_keys(reader, keys_of(scenario))
    covered = not reader.flag("open", False)
    state = start(scenario)
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


def _state(reader: _Reader, own: State) -> State:
    """The scenario's own state with the link's differences laid over."""
    laid = replace(own, cells=_table(reader, own.scenario))
    switches = {n: reader.flag(n, getattr(own, n)) for n in SWITCHES}
    return replace(
        laid,
        typed=_typed(reader, own.typed),
        row=_row(reader, own.row, laid.rows),
        normalization=_normalization(reader, own.normalization),
        bugs=_bugs(reader, own.bugs),
        **switches,
    )


def _row(reader: _Reader, own: int, rows: int) -> int:
    last = max(rows - 1, 0)
    own = min(own, last)
    text = reader.query.get("row")
    if text is None:
        return own
    if re.fullmatch("[0-9]{1,6}", text) and int(text) <= last:
        return int(text)
    expected = f"a row from 0 to {last}"
    reader.wrong("row", expected, shown(text), f"row {own} is selected")
    return own


def _bugs(reader: _Reader, own: tuple[str, ...]) -> tuple[str, ...]:
    """The bugs of the faulty engine, in the order of BUGS."""
    text = reader.query.get("bugs")
    if text is None or text == NO_BUG:
        return own if text is None else ()
    named = text.split(".")
    found = tuple(name for name in BUGS if name in named)
    then = "that one is left out"
    if not found:
        then = f"{'.'.join(own)} is taken"
    for name in dict.fromkeys(named):
        if name not in BUGS:
            expected = "names of bugs between dots"
            reader.wrong("bugs", expected, shown(name), then)
    return found or own


def _normalization(reader: _Reader, own: str) -> str:
    slug = reader.query.get("normalization")
    if slug is None or slug in SLUGS:
        return own if slug is None else SLUGS[slug]
    expected = "one of " + ", ".join(SLUGS)
    reader.wrong("normalization", expected, shown(slug), f"{own} is taken")
    return own


def _typed(reader: _Reader, own: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as typed; a bad number stays as it is, for the page
    says what is wrong with it."""
    typed = dict(own)
    for name in SETTINGS:
        text = reader.query.get(name)
        if text is None:
            continue
        if name in FLAGS:
            typed[name] = reader.flag(name, own[name])
        elif name in CHOICES:
            options = {str(option): option for option in CHOICES[name]}
            if text not in options:
                expected = "one of " + ", ".join(options)
                then = f"{own[name]} is taken"
                reader.wrong(name, expected, shown(text), then)
            typed[name] = options.get(text, own[name])
        elif len(text) > LONGEST_TEXT:
            expected = f"at most {LONGEST_TEXT} characters long"
            then = "the scenario's value is taken"
            reader.wrong(name, expected, str(len(text)), then)
        else:
            typed[name] = text
    return typed


def _table(reader: _Reader, scenario: Scenario) -> pd.DataFrame | None:
    text = reader.query.get("t")
    if text is None:
        return None

    def wrong(expected: str, found: str, place: str = "") -> None:
        then = "the scenario's cells are shown"
        reader.wrong("t" + place, expected, found, then)

    try:
        value = _unpacked(text)
    except GradebookError as error:
        wrong(error.expected, error.found)
        return None
    if not isinstance(value, dict):
        wrong("a packed table", shown(value))
        return None
    own = start(scenario).table
    for key in set(value) - {"n", "k", "c"}:
        wrong("made of n, k and c", f"more: {shown(key)}")
    rows = value.get("n", len(own))
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        wrong(f"0 to {MOST_ROWS} rows", shown(rows), ".n")
        rows = len(own)
    columns = _columns(value.get("k"), wrong) or list(own.columns)
    return _laid_over(_base(own, columns, rows), value.get("c", {}), wrong)


def _unpacked(text: str) -> Any:
    """The value in `t`. Raises GradebookError with what was expected."""
    expected = "a table packed by Gradebook"

    def refuse(found: str) -> GradebookError:
        return GradebookError(expected=expected, found=found)

    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise refuse(f"no base64url: {shown(text)}")
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        stream = zlib.decompressobj()
        content = stream.decompress(packed, MOST_UNPACKED + 1)
    except (binascii.Error, zlib.error):
        raise refuse("damaged") from None
    if len(content) > MOST_UNPACKED:
        raise refuse(f"larger than {MOST_UNPACKED} bytes when unpacked")
    if not stream.eof or stream.unused_data:
        raise refuse("cut off" if not stream.eof else "followed by more")
    try:
        value = json.loads(content.decode(), object_pairs_hook=_once)
        _json(value).decode()  # no half of a surrogate pair, however written
        return value
    except (ValueError, RecursionError):
        raise refuse("no JSON that can be read") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError where a key comes twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _columns(written: Any, wrong: Any) -> list[str]:
    """Column names from `k`; [] for none or for unusable ones."""
    if written is None:
        return []
    columns: list[str] = []
    for part in written if isinstance(written, list) else [None]:
        if type(part) is int and 0 < part <= WIDEST:
            columns += [f"t{t + 1}" for t in range(part)]
        elif isinstance(part, str) and _is_column(part):
            columns.append(part)
        else:
            wrong("columns of a batch", shown(written), ".k")
            return []
    missing = {"prompt", "reward"} - set(columns)
    if missing or len(set(columns)) < len(columns):
        wrong("prompt, reward, and each once", shown(written), ".k")
        return []
    return columns


def _is_column(name: str) -> bool:
    if tables.TOKEN.fullmatch(name):
        return len(name) < 5 and int(name[1:]) <= WIDEST
    return name in tables.COLUMNS and name != "mask"


def _laid_over(
    base: dict[str, list[Any]], changes: Any, wrong: Any
) -> pd.DataFrame:
    if not isinstance(changes, dict):
        wrong("cells by column", shown(changes), ".c")
        changes = {}
    for name, written in changes.items():
        if name in base:
            base[name] = _cells(name, written, base[name], wrong)
        else:
            wrong("cells of a column of this table", shown(name), ".c")
    return pd.DataFrame(
        {name: _series(name, cells) for name, cells in base.items()}
    )


def _series(name: str, cells: list[Any]) -> pd.Series:
    flags = tables.is_flag(name) and all(type(c) is bool for c in cells)
    return pd.Series(cells, dtype="bool" if flags else "object")


def _cells(name: str, written: Any, base: list[Any], wrong: Any) -> list[Any]:
    """A column's cells, with the base's where one makes no sense."""
    place, rows = f".c.{name}", len(base)
    flags = tables.is_flag(name)
    if flags and isinstance(written, str):
        if len(written) == rows and not set(written) - {"0", "1"}:
            return [bit == "1" for bit in written]
        wrong(f"{rows} times 0 or 1", shown(written), place)
        return base
    if isinstance(written, list) and len(written) == rows:
        written = {str(row): cell for row, cell in enumerate(written)}
    if not isinstance(written, dict):
        wrong(f"{rows} cells, or cells by row", shown(written), place)
        return base
    cells = list(base)
    for row, cell in written.items():
        kind = bool if flags else str
        if not re.fullmatch("[0-9]{1,4}", row) or int(row) >= rows:
            wrong(f"cells of rows below {rows}", shown(row), place)
        elif cell is not None and not isinstance(cell, kind):
            expected = "true or false" if flags else "text"
            wrong(expected, shown(cell), f"{place}.{row}")
        else:
            cells[int(row)] = cell
    return cells
