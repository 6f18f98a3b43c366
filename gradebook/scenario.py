"""TOML file -> Scenario -> Batch. The only reader of scenario files.

A scenario file is wrong in any way, or it is read: an unknown key, a
missing key, a wrong type is a GradebookError with file, key, row, what was
expected and what was found.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import stat
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, NoReturn, Sequence

import pandas as pd

from gradebook.batch import Batch
from gradebook.bugs import BUGS
from gradebook.errors import GradebookError, shown
from gradebook.settings import ESTIMATORS, Settings, check_setting
from gradebook.table import COLUMNS, to_batch, to_table

FOLDER = Path(__file__).parents[1] / "scenarios"
LARGEST_FILE = 1_000_000
MOST_ROWS = 1000
MOST_TOKENS = 64
MOST_DOTS = 100

KINDS = ("shows", "face", "hides")
"""Shows the bug, another face of it, or hides it; in teaching order."""
STATUSES = ("fixed", "open", "disputed")
TELLTALES = ("sign", "scale", "influence", "gradient")
SPECIAL_CONTROLS = ("padded_width", "subsample", "phase", "guard")
"""Controls of a page that are no field of Settings."""
CONTROLS = (*Settings().keys(), "estimator", *SPECIAL_CONTROLS)
PER_TOKEN = ("mask", "logp", "ref_logp")
CHECKS = (
    "agree_by_lengths",
    "agree_by_one_reward",
    "agree_by_one_setting",
    "agree_by_settings",
    "blanked_by_the_fix",
    "divides_and_bites",
    "faulty_explodes",
    "leaks_at_reward_zero",
    "leaks_into_another_prompt",
    "leaks_without_outlier",
    "moved_by_lengths",
    "neighbours_change",
    "some_row_flips",
    "signal_from_nothing",
    "turned_by_silent_rows",
    "turned_from_outside",
)
"""The checkers of challenges; gradebook.challenges holds the functions."""


@dataclass(frozen=True)
class Source:
    """Where the bug was reported or fixed."""

    label: str
    url: str = ""
    commit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Dispute:
    """Two views of a report that is disputed, and the fix's own trap."""

    maintainer: str
    other_view: str
    trap: str


@dataclass(frozen=True)
class Affected:
    """Am I affected?"""

    trainer: str
    versions: str
    keys: tuple[str, ...]
    look: str
    workaround: str


@dataclass(frozen=True)
class Prediction:
    """The question to ask before the faulty engine is shown.

    Raises GradebookError when `answer` is no index into `choices`.
    """

    question: str
    choices: tuple[str, ...]
    answer: int
    why: str

    def __post_init__(self) -> None:
        _check_index("answer", self.answer, len(self.choices), "choices")


@dataclass(frozen=True)
class Telltale:
    """The number that gives this bug away."""

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class OtherRun:
    """A second batch, run beside the first."""

    title: str
    rows: tuple[dict[str, Any], ...]
    note: str

    def table(self) -> pd.DataFrame:
        """The rows as an editable table."""
        return to_table(self.rows)


@dataclass(frozen=True)
class Expected:
    """What a hand finds: advantages of each engine, NaN where a row has
    none, and the loss."""

    correct: tuple[float, ...] | None = None
    faulty: tuple[float, ...] | None = None
    correct_loss: float | None = None
    faulty_loss: float | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in dataclasses.fields(self)]
        if all(getattr(self, name) is None for name in names):
            raise GradebookError(
                expected="one or more of " + ", ".join(names),
                found="none of them",
            )


@dataclass(frozen=True)
class Cell:
    """A change of a solution: one row's value, as a row gives it."""

    row: int
    column: str
    value: Any


@dataclass(frozen=True)
class Setting:
    """A change of a solution: one setting."""

    setting: str
    value: Any


@dataclass(frozen=True)
class AddRow:
    """A change of a solution: a row at the end."""

    add_row: dict[str, Any]


@dataclass(frozen=True)
class RemoveRow:
    """A change of a solution: a row taken out; those below move up."""

    remove_row: int


Change = Cell | Setting | AddRow | RemoveRow


@dataclass(frozen=True)
class Challenge:
    """Something to try on the batch. `check` names the checker, and the
    changes of `solution`, in order, are one way to pass it."""

    title: str
    goal: str
    check: str
    solution: tuple[Change, ...]
    hint: str = ""


@dataclass(frozen=True, eq=False)
class Scenario:
    """One batch that shows a bug, hides it, or shows another face of it.

    Raises GradebookError when parts of it do not fit together.
    """

    name: str
    path: Path
    variant: bool
    bug: str
    title: str
    kind: str
    claim: str
    story: str
    lesson: str
    trainer: str
    status: str
    status_note: str
    sources: tuple[Source, ...]
    affected: Affected
    rule: str
    settings: Settings
    controls: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    focus: int
    prediction: Prediction
    telltale: Telltale
    expected: Expected
    dispute: Dispute | None = None
    estimators: tuple[str, ...] = ()
    estimators_note: str = ""
    other_run: OtherRun | None = None
    eos_by_width: bool = False
    challenges: tuple[Challenge, ...] = ()

    def __post_init__(self) -> None:
        self.batch()
        _check_index("focus", self.focus, len(self.rows), "rows")
        _check_expected(self)
        if self.estimators_note and not self.estimators:
            raise GradebookError(
                key="estimators", expected="the note's list", found="nothing"
            )
        if self.other_run is not None:
            _check_other_run(self, self.other_run)
        _check_titles(self.challenges)
        for place, challenge in enumerate(self.challenges):
            _check_solution(self, challenge, f"challenges[{place}].solution")

    def table(self) -> pd.DataFrame:
        """The rows as an editable table."""
        return to_table(self.rows)

    def batch(
        self,
        table: pd.DataFrame | None = None,
        settings: Settings | None = None,
    ) -> Batch:
        """The table, edited or as the file has it, as a batch.

        Raises GradebookError with column and row.
        """
        table = self.table() if table is None else table
        return to_batch(table, settings or self.settings)


def load(name_or_path: str | Path) -> Scenario:
    """A scenario, by its name in scenarios/ or by the path of its file.

    A string with a slash or ending in .toml is a path. Raises
    GradebookError with file, key, row, expected and found.
    """
    if not isinstance(name_or_path, (str, Path)):
        raise GradebookError(
            key="scenario",
            expected="a name or a path",
            found=shown(name_or_path),
        )
    if _is_path(name_or_path):
        return _read(Path(name_or_path))
    if name_or_path not in names():
        raise GradebookError(
            key="scenario",
            expected="one of " + ", ".join(names()),
            found=shown(name_or_path),
        )
    return _shipped(FOLDER / f"{name_or_path}.toml")


def names() -> tuple[str, ...]:
    """The shipped scenarios, each bug's main one first."""
    return _listed(FOLDER, FOLDER.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _listed(folder: Path, changed: int) -> tuple[str, ...]:
    """The folder's scenarios as of its last change: a page asks often."""
    stems = [path.stem for path in folder.glob("*.toml")]
    return tuple(sorted(stems, key=lambda stem: (stem not in BUGS, stem)))


def variants(bug: str) -> tuple[Scenario, ...]:
    """The bug's scenarios: the main one, more that show it, other faces,
    and those that hide it.

    Raises GradebookError when two of them share a title.
    """
    _one_of(*BUGS)(bug, "bug")
    found = [load(n) for n in names() if n.partition("-")[0] == bug]
    found.sort(key=lambda s: (s.variant, KINDS.index(s.kind), s.name))
    files: dict[str, Path] = {}
    for one in found:
        if one.title in files:
            raise GradebookError(
                file=str(one.path),
                key="title",
                expected=f"another title than {files[one.title].name} has",
                found=shown(one.title),
            )
        files[one.title] = one.path
    return tuple(found)


@lru_cache(maxsize=None)
def _shipped(path: Path) -> Scenario:
    return _read(path)


def _is_path(name_or_path: str | Path) -> bool:
    if isinstance(name_or_path, Path):
        return True
    return name_or_path.endswith(".toml") or bool(
        {"/", "\\"} & set(name_or_path)
    )


def _read(path: Path) -> Scenario:
    """The scenario in the file at `path`."""
    try:
        return _scenario(path, _document(path))
    except GradebookError as error:
        raise error.inside(str(path)) from error.__cause__


# The file


def _document(path: Path) -> dict[str, Any]:
    """The file's keys and values, as TOML reads them."""
    try:
        text = _content(path).decode()
        _refuse_long_keys(text)
        document = tomllib.loads(text)
        _refuse_huge(document, "")
        return document
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise GradebookError(
            expected="UTF-8 text",
            found=f"byte 0x{byte:02x} at offset {error.start}",
        ) from None
    except RecursionError:
        raise GradebookError(
            expected="TOML", found="values nested too deep to read"
        ) from None
    except GradebookError:
        raise
    except ValueError as error:
        raise GradebookError(
            expected="TOML", found=_lowered(str(error))
        ) from None


def _content(path: Path) -> bytes:
    """The file's bytes; what is too large is refused unread."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            folder = stat.S_ISDIR(status.st_mode)
            raise GradebookError(
                expected="a file",
                found="a directory" if folder else "a device or a pipe",
            )
        _check_size(status.st_size)
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        _check_size(len(content))
        return content
    except GradebookError:
        raise
    except OSError as error:
        raise GradebookError(
            expected="a file that can be read",
            found=_lowered(error.strerror or str(error)),
        ) from None
    except ValueError as error:
        raise GradebookError(
            expected="a path", found=_lowered(str(error))
        ) from None


def _check_size(size: int) -> None:
    if size > LARGEST_FILE:
        raise GradebookError(
            expected=f"at most {LARGEST_FILE} bytes", found=str(size)
        )


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _refuse_long_keys(text: str) -> None:
    """Raises at a dotted key of very many parts, over which tomllib takes
    minutes: its time grows with the square."""
    for piece in re.split(r"[=\n,{}\[\]]", text):
        if piece.count(".") > MOST_DOTS:
            raise GradebookError(
                expected=f"at most {MOST_DOTS} dots in one piece of TOML",
                found=f"{piece.count('.')} in {shown(piece)}",
            )


def _refuse_huge(value: Any, key: str) -> None:
    """Raises at the first whole number that 64 bits cannot hold."""
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_huge(item, _join(key, name))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _refuse_huge(item, f"{key}[{place}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        in_row = re.fullmatch(r"(?:rows|(.+\.rows))\[(\d+)\]\.(.+)", key)
        if in_row:
            key = _join(in_row[1] or "", in_row[3])
        raise GradebookError(
            key=key,
            row=int(in_row[2]) if in_row else None,
            expected="a whole number of at most 64 bits",
            found=f"one of {value.bit_length()} bits",
        )


# Readers: one value and its key, checked


class _Nothing:
    """Stands where a key is missing, and says so in messages."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
Reader = Callable[[Any, str], Any]


def _refuse(key: str, expected: str, value: Any) -> NoReturn:
    raise GradebookError(key=key, expected=expected, found=shown(value))


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        _refuse(key, "text", value)
    if not value.strip():
        _refuse(key, "text that is not empty", value)
    return value.strip()


def _label(value: Any, key: str) -> str | int:
    """A prompt: a whole number, or text without spaces around it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value or value != value.strip():
        _refuse(key, "a whole number, or text without spaces around", value)
    return value


def _whole(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(key, "a whole number", value)
    return value


def _count(value: Any, key: str) -> int:
    if not 0 <= _whole(value, key) < 2**31:
        _refuse(key, "a whole number of 0 or more, below 2 ** 31", value)
    return value


def _number(value: Any, key: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        _refuse(key, "a finite number", value)
    return float(value)


def _number_or_none(value: Any, key: str) -> float:
    if isinstance(value, str) and value == "none":
        return math.nan
    try:
        return _number(value, key)
    except GradebookError:
        _refuse(key, 'a finite number, or "none"', value)


def _flag(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        _refuse(key, "true or false", value)
    return value


def _bit(value: Any, key: str) -> int:
    if type(value) is not int or value not in (0, 1):
        _refuse(key, "0 or 1", value)
    return value


def _matching(pattern: str, expected: str) -> Reader:
    """Text that fits `pattern` as a whole."""

    def read(value: Any, key: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            _refuse(key, expected, value)
        return value

    return read


def _one_of(*options: str) -> Reader:
    """Text that is one of `options`."""

    def read(value: Any, key: str) -> str:
        if not isinstance(value, str) or value not in options:
            expected = "one of " + ", ".join(options)
            if isinstance(value, str):
                expected += f"; nearest '{_nearest(value, options)}'"
            _refuse(key, expected, value)
        return value

    return read


def _list_of(read_item: Reader, least: int = 1, most: int = 100) -> Reader:
    """A list of `least` to `most` items, as a tuple."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            _refuse(key, "a list", value)
        if not least <= len(value) <= most:
            raise GradebookError(
                key=key,
                expected=f"{least} to {most} values",
                found=str(len(value)),
            )
        return tuple(
            read_item(item, f"{key}[{place}]")
            for place, item in enumerate(value)
        )

    return read


def _distinct(read_list: Reader) -> Reader:
    """A list in which nothing comes twice."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        items = read_list(value, key)
        for place, item in enumerate(items):
            if item in items[:place]:
                _refuse(f"{key}[{place}]", "each value once", item)
        return items

    return read


def _table_of(build: type, **readers: Reader) -> Reader:
    """A table, as the dataclass `build`; its defaults may be left out."""
    required = {
        field.name
        for field in dataclasses.fields(build)
        if field.default is dataclasses.MISSING
    }

    def read(value: Any, key: str) -> Any:
        _check_keys(value, key, readers)
        found = {
            name: read_one(value.get(name, NOTHING), _join(key, name))
            for name, read_one in readers.items()
            if name in value or name in required
        }
        try:
            return build(**found)
        except GradebookError as error:
            raise _under(error, key) from None

    return read


def _settings(value: Any, key: str) -> Settings:
    _check_keys(value, key, Settings().keys())
    try:
        return Settings(**value)
    except GradebookError as error:
        raise _under(error, key) from None


def _rows(value: Any, key: str) -> tuple[dict[str, Any], ...]:
    """One table a row, every row with the same keys and widths."""
    if not isinstance(value, list):
        _refuse(key, "a list of rows", value)
    if not 1 <= len(value) <= MOST_ROWS:
        raise GradebookError(
            key=key, expected=f"1 to {MOST_ROWS} rows", found=str(len(value))
        )
    if not isinstance(value[0], dict):
        raise _row_error(key, 0, "a table", shown(value[0]))
    names = [n for n in COLUMNS if n in {*value[0], "prompt", "reward"}]
    rows: list[dict[str, Any]] = []
    for row, cells in enumerate(value):
        if not isinstance(cells, dict):
            raise _row_error(key, row, "a table", shown(cells))
        try:
            rows.append(_row(cells, names, rows))
        except GradebookError as error:
            raise _in_row(error, key, row) from None
    return tuple(rows)


def _row(
    cells: dict[str, Any],
    names: Sequence[str],
    before: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """One row; it has the keys, kinds and widths of the first `before`."""
    _check_keys(cells, "", COLUMNS)
    for name in cells:
        if name not in names:
            first = ", ".join(names)
            _refuse(name, f"the keys of row 0, {first}", name)
    found = {n: ROW_READERS[n](cells.get(n, NOTHING), n) for n in names}
    first = before[0] if before else found
    if type(found["prompt"]) is not type(first["prompt"]):
        kind = "text" if isinstance(first["prompt"], str) else "a number"
        _refuse("prompt", f"{kind}, as in row 0", found["prompt"])
    wide = [name for name in PER_TOKEN if name in names]
    for name in wide:
        tokens = len(first[wide[0]])
        if len(found[name]) != tokens:
            raise GradebookError(
                key=name,
                expected=f"{tokens} values, as {wide[0]} has in row 0",
                found=str(len(found[name])),
            )
    return found


def _per_token(read_item: Reader) -> Reader:
    """A list with one value a token."""
    read = _list_of(read_item, most=MOST_TOKENS)
    return lambda value, key: list(read(value, key))


ROW_READERS: Mapping[str, Reader] = {
    "prompt": _label,
    "reward": _number,
    "eos": _flag,
    "step": _count,
    "steps": _count,
    "kept_steps": _count,
    "mask": _per_token(_bit),
    "logp": _per_token(_number),
    "ref_logp": _per_token(_number),
}
"""How each value of a row is read."""



def _change(value: Any, key: str) -> Change:
    """One change of a solution, told by its first key."""
    kinds = ("row", "setting", "add_row", "remove_row")
    if not isinstance(value, dict):
        _refuse(key, "a table", value)
    kind = next((name for name in kinds if name in value), "")
    if not kind:
        found = ", ".join(value) or "nothing"
        raise GradebookError(
            key=key, expected="one of " + ", ".join(kinds), found=found
        )
    return CHANGE_READERS[kind](value, key)


def _cell(value: Any, key: str) -> Cell:
    column = value.get("column", NOTHING)
    _one_of(*COLUMNS)(column, _join(key, "column"))
    read = ROW_READERS[column]
    return _table_of(Cell, row=_count, column=_text, value=read)(value, key)


def _setting(value: Any, key: str) -> Setting:
    name = value["setting"]
    _one_of(*Settings().keys())(name, _join(key, "setting"))
    return _table_of(Setting, setting=_text, value=_setting_value(name))(
        value, key
    )


def _setting_value(name: str) -> Reader:
    """A value that the setting can take."""

    def read(value: Any, key: str) -> Any:
        try:
            check_setting(name, value)
        except GradebookError as error:
            _refuse(key, error.expected, value)
        return value

    return read


def _new_row(value: Any, key: str) -> dict[str, Any]:
    """A row to add; whether it has the other rows' keys and widths is
    checked with them."""
    _check_keys(value, key, COLUMNS)
    return {n: ROW_READERS[n](v, _join(key, n)) for n, v in value.items()}


CHANGE_READERS: Mapping[str, Reader] = {
    "row": _cell,
    "setting": _setting,
    "add_row": _table_of(AddRow, add_row=_new_row),
    "remove_row": _table_of(RemoveRow, remove_row=_count),
}
"""How each kind of change is read."""

KEYS: Mapping[str, Reader] = {
    "bug": _one_of(*BUGS),
    "title": _text,
    "kind": _one_of(*KINDS),
    "claim": _text,
    "story": _text,
    "lesson": _text,
    "trainer": _text,
    "status": _one_of(*STATUSES),
    "status_note": _text,
    "sources": _list_of(
        _table_of(
            Source,
            label=_text,
            url=_matching(r"https://[^\s]+", "a URL starting with https://"),
            commit=_matching(r"[0-9a-f]{7,40}", "7 to 40 hex digits"),
            note=_text,
        )
    ),
    "dispute": _table_of(
        Dispute, maintainer=_text, other_view=_text, trap=_text
    ),
    "affected": _table_of(
        Affected,
        trainer=_text,
        versions=_text,
        keys=_distinct(_list_of(_text)),
        look=_text,
        workaround=_text,
    ),
    "rule": _text,
    "settings": _settings,
    "controls": _distinct(_list_of(_one_of(*CONTROLS))),
    "rows": _rows,
    "focus": _whole,
    "prediction": _table_of(
        Prediction,
        question=_text,
        choices=_distinct(_list_of(_text, least=2, most=4)),
        answer=_whole,
        why=_text,
    ),
    "telltale": _table_of(Telltale, kind=_one_of(*TELLTALES), text=_text),
    "estimators": _distinct(_list_of(_one_of(*ESTIMATORS))),
    "estimators_note": _text,
    "other_run": _table_of(OtherRun, title=_text, rows=_rows, note=_text),
    "eos_by_width": _flag,
    "challenges": _list_of(
        _table_of(
            Challenge,
            title=_text,
            goal=_text,
            check=_one_of(*CHECKS),
            solution=_list_of(_change),
            hint=_text,
        )
    ),
    "expected": _table_of(
        Expected,
        correct=_list_of(_number_or_none, most=MOST_ROWS),
        faulty=_list_of(_number_or_none, most=MOST_ROWS),
        correct_loss=_number,
        faulty_loss=_number,
    ),
}
"""How each key of a scenario file is read."""

OPTIONAL = (
    "dispute",
    "estimators",
    "estimators_note",
    "other_run",
    "eos_by_width",
    "challenges",
)
FROM_MAIN = (
    "trainer",
    "status",
    "status_note",
    "sources",
    "dispute",
    "affected",
    "rule",
    "controls",
    "telltale",
)
"""What a variant may leave to its bug's main file."""


# The scenario


def _scenario(path: Path, document: dict[str, Any]) -> Scenario:
    _check_keys(document, "", KEYS)
    bug = KEYS["bug"](document.get("bug", NOTHING), "bug")
    named = path.stem.partition("-")[0]
    if named in BUGS and named != bug:
        _refuse("bug", f"'{named}', as the file's name says", bug)
    variant = path.stem != bug
    may_miss = (*OPTIONAL, *FROM_MAIN) if variant else OPTIONAL
    found = {
        name: read(document.get(name, NOTHING), name)
        for name, read in KEYS.items()
        if name in document or name not in may_miss
    }
    if variant:
        main = load(bug)
        found = {n: getattr(main, n) for n in FROM_MAIN} | found
    return Scenario(name=path.stem, path=path, variant=variant, **found)


def _check_keys(value: Any, key: str, known: Iterable[str]) -> None:
    """Raises unless `value` is a table whose keys are all known."""
    if not isinstance(value, dict):
        _refuse(key, "a table", value)
    known = tuple(known)
    for name in value:
        if name not in known:
            nearest = _nearest(name, known)
            _refuse(
                _join(key, name), f"a known key, nearest '{nearest}'", name
            )


def _check_index(key: str, index: int, count: int, of: str) -> None:
    if not 0 <= index < count:
        _refuse(key, f"0 to {count - 1}, an index into {of}", index)


def _check_expected(scenario: Scenario) -> None:
    rows, expected = len(scenario.rows), scenario.expected
    for side in ("correct", "faulty"):
        values = getattr(expected, side)
        if values is not None and len(values) != rows:
            raise GradebookError(
                key=f"expected.{side}",
                row=min(len(values), rows),
                expected=f"{rows} values, one a row",
                found=str(len(values)),
            )
        loss = getattr(expected, f"{side}_loss")
        if loss is not None and "logp" not in scenario.rows[0]:
            raise GradebookError(
                key=f"expected.{side}_loss",
                expected="a loss only where the rows have logp",
                found=str(loss),
            )


def _check_other_run(scenario: Scenario, other: OtherRun) -> None:
    """Raises unless the two runs can be compared token by token."""
    rows = len(scenario.rows)
    if len(other.rows) != rows:
        raise GradebookError(
            key="other_run.rows",
            row=min(len(other.rows), rows),
            expected=f"{rows} rows, as in rows",
            found=str(len(other.rows)),
        )
    try:
        batch = scenario.batch(other.table())
    except GradebookError as error:
        raise _under(error, "other_run.rows") from None
    tokens = scenario.batch().mask.shape[1]
    if batch.mask.shape[1] != tokens:
        raise GradebookError(
            key="other_run.rows.mask",
            row=0,
            expected=f"{tokens} values, as in rows",
            found=str(batch.mask.shape[1]),
        )


def _check_titles(challenges: Sequence[Challenge]) -> None:
    titles = [challenge.title for challenge in challenges]
    for place, title in enumerate(titles):
        if title in titles[:place]:
            _refuse(f"challenges[{place}].title", "another title", title)


def _check_solution(
    scenario: Scenario, challenge: Challenge, key: str
) -> None:
    """Raises unless the changes fit the rows, one after the other, and
    leave a batch."""
    rows, settings = list(scenario.rows), scenario.settings
    for place, change in enumerate(challenge.solution):
        here = f"{key}[{place}]"
        if isinstance(change, Setting):
            named = {change.setting: change.value}
            settings = dataclasses.replace(settings, **named)
        elif isinstance(change, AddRow):
            try:
                rows.append(_row(change.add_row, list(rows[0]), rows))
            except GradebookError as error:
                raise _under(error, f"{here}.add_row") from None
        elif isinstance(change, RemoveRow):
            _check_index(
                f"{here}.remove_row", change.remove_row, len(rows), "rows"
            )
            if len(rows) == 1:
                _refuse(f"{here}.remove_row", "a row to be left", 0)
            del rows[change.remove_row]
        else:
            _check_index(f"{here}.row", change.row, len(rows), "rows")
            if change.column not in rows[0]:
                columns = ", ".join(rows[0])
                _refuse(f"{here}.column", f"one of {columns}", change.column)
            named = {change.column: change.value}
            rows[change.row] = rows[change.row] | named
    names = list(rows[0])
    try:
        rows = [_row(row, names, rows) for row in rows]
        to_batch(to_table(rows), settings)
    except GradebookError as error:
        raise _under(error, key) from None


# Places in messages


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`."""
    return difflib.get_close_matches(name, tuple(known), n=1, cutoff=0)[0]


def _under(error: GradebookError, key: str) -> GradebookError:
    """The same error, its key put under `key`."""
    return GradebookError(
        error.message,
        file=error.file,
        key=_join(key, error.key) if error.key else key,
        row=error.row,
        expected=error.expected,
        found=error.found,
    )


def _in_row(error: GradebookError, key: str, row: int) -> GradebookError:
    """The same error in a row; a key under `rows` goes by its own name."""
    return GradebookError(
        error.message,
        key=error.key if key == "rows" else _join(key, error.key),
        row=row,
        expected=error.expected,
        found=error.found,
    )


def _row_error(
    key: str, row: int, expected: str, found: str
) -> GradebookError:
    return GradebookError(key=key, row=row, expected=expected, found=found)
