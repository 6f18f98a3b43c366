"""TOML file -> Scenario -> Batch. The only reader of scenario files.

A scenario file is wrong in any way, or it is read: an unknown key, a
missing key, a wrong type is a GradebookError with file, key, row, what was
expected and what was found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradebook.bugs import BUGS
from gradebook.cases.columns import COLUMNS
from gradebook.cases.table import Table, rows_to_batch
from gradebook.cases.toml_file import read_toml
from gradebook.cases.values import (
    NOTHING,
    Reader,
    bit,
    check_keys,
    count,
    distinct,
    flag,
    join,
    label,
    list_of,
    matching,
    number,
    number_or_none,
    one_of,
    refuse,
    table_of,
    text,
    under,
    whole,
)
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, shown
from gradebook.core.project import PROJECT
from gradebook.core.settings import ESTIMATORS, Settings, check_setting

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = PROJECT / "scenarios"
MOST_ROWS = 1000
MOST_TOKENS = 64

KINDS = ("shows", "face", "hides")
"""Shows the bug, another face of it, or hides it; in teaching order."""
STATUSES = ("fixed", "open", "disputed", "by design", "not confirmed")
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


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the check of a log and the laws must know about a bug.

    columns          log columns that the check needs to try the bug; a
                     tuple inside stands for one of several
    in_advantages    False: the bug leaves no trace in advantages
    couples_prompts  a row's faulty advantage may depend on the rows of
                     other prompts, whatever the settings are
    phrase           what a verdict calls the faulty computation
    correct_phrase   what a verdict calls the correct one
    tells            what a log must hold for the bug to be tried
    would_tell       what a step must hold for the bug to show
    guesses          setting -> values to try in the check; a text that is
                     no value of the setting names a rule that makes values
    laws             names of laws in analysis/laws, the first to show first
    """

    columns: tuple[str | tuple[str, ...], ...]
    in_advantages: bool
    couples_prompts: bool
    phrase: str
    correct_phrase: str
    tells: str
    would_tell: str
    laws: tuple[str, ...]
    guesses: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class OtherRun:
    """A second batch, run beside the first."""

    title: str
    rows: tuple[dict[str, Any], ...]
    note: str

    def table(self) -> DataFrame:
        """The rows as a data frame to edit: text, and flags as booleans."""
        return Table.of(self.rows).frame()

    def batch(self, settings: Settings) -> Batch:
        """The rows as a batch. Raises GradebookError with column and row."""
        return rows_to_batch(self.rows, settings)


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
    record: Record
    expected: Expected
    teaser: str = ""
    engine_names: tuple[str, str] = ("correct", "faulty")
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

    def table(self) -> DataFrame:
        """The rows as a data frame to edit: text, and flags as booleans."""
        return Table.of(self.rows).frame()

    def batch(
        self,
        table: DataFrame | None = None,
        settings: Settings | None = None,
    ) -> Batch:
        """The data frame of `table`, edited, or else the rows as the file
        has them, as a batch.

        Raises GradebookError with column and row.
        """
        settings = settings or self.settings
        if table is None:
            return rows_to_batch(self.rows, settings)
        return Table.of_frame(table).batch(settings)


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
    one_of(*BUGS)(bug, "bug")
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


@cache
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
        return _scenario(path, read_toml(path))
    except GradebookError as error:
        raise error.inside(str(path)) from error.__cause__


def _settings(value: Any, key: str) -> Settings:
    check_keys(value, key, Settings().keys())
    try:
        return Settings(**value)
    except GradebookError as error:
        raise under(error, key) from None


def _rows(value: Any, key: str) -> tuple[dict[str, Any], ...]:
    """One table a row, every row with the same keys and widths."""
    if not isinstance(value, list):
        refuse(key, "a list of rows", value)
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
    check_keys(cells, "", COLUMNS)
    for name in cells:
        if name not in names:
            first = ", ".join(names)
            refuse(name, f"the keys of row 0, {first}", name)
    found = {n: ROW_READERS[n](cells.get(n, NOTHING), n) for n in names}
    first = before[0] if before else found
    if type(found["prompt"]) is not type(first["prompt"]):
        kind = "text" if isinstance(first["prompt"], str) else "a number"
        refuse("prompt", f"{kind}, as in row 0", found["prompt"])
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
    read = list_of(read_item, most=MOST_TOKENS)
    return lambda value, key: list(read(value, key))


ROW_READERS: Mapping[str, Reader] = {
    "prompt": label,
    "reward": number,
    "eos": flag,
    "step": count,
    "steps": count,
    "kept_steps": count,
    "mask": _per_token(bit),
    "logp": _per_token(number),
    "ref_logp": _per_token(number),
}
"""How each value of a row is read."""


def _column(value: Any, key: str) -> str | tuple[str, ...]:
    """A log column, or a list of columns of which one is enough."""
    if isinstance(value, list):
        return list_of(text, least=2)(value, key)
    return text(value, key)


def _guesses(value: Any, key: str) -> dict[str, tuple[Any, ...]]:
    """Settings, each with a list of values or names of rules."""
    check_keys(value, key, Settings().keys())
    read = list_of(lambda item, _: item)
    return {
        name: read(items, join(key, name)) for name, items in value.items()
    }


def _change(value: Any, key: str) -> Change:
    """One change of a solution, told by its first key."""
    kinds = ("row", "setting", "add_row", "remove_row")
    if not isinstance(value, dict):
        refuse(key, "a table", value)
    kind = next((name for name in kinds if name in value), "")
    if not kind:
        found = ", ".join(value) or "nothing"
        raise GradebookError(
            key=key, expected="one of " + ", ".join(kinds), found=found
        )
    return CHANGE_READERS[kind](value, key)


def _cell(value: Any, key: str) -> Cell:
    column = value.get("column", NOTHING)
    one_of(*COLUMNS)(column, join(key, "column"))
    read = ROW_READERS[column]
    return table_of(Cell, row=count, column=text, value=read)(value, key)


def _setting(value: Any, key: str) -> Setting:
    name = value["setting"]
    one_of(*Settings().keys())(name, join(key, "setting"))
    return table_of(Setting, setting=text, value=_setting_value(name))(
        value, key
    )


def _setting_value(name: str) -> Reader:
    """A value that the setting can take."""

    def read(value: Any, key: str) -> Any:
        try:
            check_setting(name, value)
        except GradebookError as error:
            refuse(key, error.expected, value)
        return value

    return read


def _new_row(value: Any, key: str) -> dict[str, Any]:
    """A row to add; whether it has the other rows' keys and widths is
    checked with them."""
    check_keys(value, key, COLUMNS)
    return {n: ROW_READERS[n](v, join(key, n)) for n, v in value.items()}


CHANGE_READERS: Mapping[str, Reader] = {
    "row": _cell,
    "setting": _setting,
    "add_row": table_of(AddRow, add_row=_new_row),
    "remove_row": table_of(RemoveRow, remove_row=count),
}
"""How each kind of change is read."""

KEYS: Mapping[str, Reader] = {
    "bug": one_of(*BUGS),
    "title": text,
    "kind": one_of(*KINDS),
    "claim": text,
    "story": text,
    "lesson": text,
    "trainer": text,
    "status": one_of(*STATUSES),
    "status_note": text,
    "sources": list_of(
        table_of(
            Source,
            label=text,
            url=matching(r"https://[^\s]+", "a URL starting with https://"),
            commit=matching(r"[0-9a-f]{7,40}", "7 to 40 hex digits"),
            note=text,
        )
    ),
    "dispute": table_of(Dispute, maintainer=text, other_view=text, trap=text),
    "affected": table_of(
        Affected,
        trainer=text,
        versions=text,
        keys=distinct(list_of(text)),
        look=text,
        workaround=text,
    ),
    "rule": text,
    "settings": _settings,
    "controls": distinct(list_of(one_of(*CONTROLS))),
    "rows": _rows,
    "focus": whole,
    "prediction": table_of(
        Prediction,
        question=text,
        choices=distinct(list_of(text, least=2, most=4)),
        answer=whole,
        why=text,
    ),
    "telltale": table_of(Telltale, kind=one_of(*TELLTALES), text=text),
    "record": table_of(
        Record,
        columns=list_of(_column, least=0),
        in_advantages=flag,
        couples_prompts=flag,
        phrase=text,
        correct_phrase=text,
        tells=text,
        would_tell=text,
        laws=distinct(list_of(text)),
        guesses=_guesses,
    ),
    "teaser": text,
    "engine_names": distinct(list_of(text, least=2, most=2)),
    "estimators": distinct(list_of(one_of(*ESTIMATORS))),
    "estimators_note": text,
    "other_run": table_of(OtherRun, title=text, rows=_rows, note=text),
    "eos_by_width": flag,
    "challenges": list_of(
        table_of(
            Challenge,
            title=text,
            goal=text,
            check=one_of(*CHECKS),
            solution=list_of(_change),
            hint=text,
        )
    ),
    "expected": table_of(
        Expected,
        correct=list_of(number_or_none, most=MOST_ROWS),
        faulty=list_of(number_or_none, most=MOST_ROWS),
        correct_loss=number,
        faulty_loss=number,
    ),
}
"""How each key of a scenario file is read."""

OPTIONAL = (
    "teaser",
    "engine_names",
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
    "record",
    "engine_names",
)
"""What a variant may leave to its bug's main file."""


# The scenario


def _scenario(path: Path, document: dict[str, Any]) -> Scenario:
    check_keys(document, "", KEYS)
    bug = KEYS["bug"](document.get("bug", NOTHING), "bug")
    named = path.stem.partition("-")[0]
    if named in BUGS and named != bug:
        refuse("bug", f"'{named}', as the file's name says", bug)
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


def _check_index(key: str, index: int, count: int, of: str) -> None:
    if not 0 <= index < count:
        refuse(key, f"0 to {count - 1}, an index into {of}", index)


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
        batch = other.batch(scenario.settings)
    except GradebookError as error:
        raise under(error, "other_run.rows") from None
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
            refuse(f"challenges[{place}].title", "another title", title)


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
                raise under(error, f"{here}.add_row") from None
        elif isinstance(change, RemoveRow):
            _check_index(
                f"{here}.remove_row", change.remove_row, len(rows), "rows"
            )
            if len(rows) == 1:
                refuse(f"{here}.remove_row", "a row to be left", 0)
            del rows[change.remove_row]
        else:
            _check_index(f"{here}.row", change.row, len(rows), "rows")
            if change.column not in rows[0]:
                columns = ", ".join(rows[0])
                refuse(f"{here}.column", f"one of {columns}", change.column)
            named = {change.column: change.value}
            rows[change.row] = rows[change.row] | named
    names = list(rows[0])
    try:
        rows = [_row(row, names, rows) for row in rows]
        rows_to_batch(rows, settings)
    except GradebookError as error:
        raise under(error, key) from None


# Places in messages


def _in_row(error: GradebookError, key: str, row: int) -> GradebookError:
    """The same error in a row; a key under `rows` goes by its own name."""
    return GradebookError(
        error.message,
        key=error.key if key == "rows" else join(key, error.key),
        row=row,
        expected=error.expected,
        found=error.found,
    )


def _row_error(
    key: str, row: int, expected: str, found: str
) -> GradebookError:
    return GradebookError(key=key, row=row, expected=expected, found=found)
