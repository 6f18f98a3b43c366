"""TOML file -> Scenario -> Batch. The only reader of scenario files.

A file is read whole or refused: an unknown key, a missing key or a wrong
type is a GradebookError with file, key, row, expected and found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator

from gradebook.bugs import BUGS
from gradebook.cases.challenge import (
    AddRow,
    Cell,
    Challenge,
    Change,
    Order,
    RemoveRow,
    Setting,
)
from gradebook.cases.engines import several
from gradebook.cases.rows import MOST_ROWS, MOST_TOKENS, Rows, read_row
from gradebook.cases.schema import (
    NOTHING,
    Commit,
    Count,
    Flag,
    Number,
    NumberOrNone,
    Part,
    Text,
    Url,
    Whole,
    between,
    check_keys,
    each_once,
    one_of,
    read,
    refuse,
    under,
)
from gradebook.cases.table import Table
from gradebook.cases.toml_file import read_toml
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, shown
from gradebook.core.project import PROJECT
from gradebook.core.settings import ESTIMATORS, Settings

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "MOST_ROWS",
    "MOST_TOKENS",
    "AddRow",
    "Cell",
    "Challenge",
    "Change",
    "Order",
    "RemoveRow",
    "Scenario",
    "Setting",
    "load",
    "names",
    "variants",
]

FOLDER = PROJECT / "scenarios"

KINDS = ("shows", "face", "hides")
"""Shows the bug, another face of it, or hides it; in teaching order."""
STATUSES = ("fixed", "open", "disputed", "by design", "not confirmed")
TELLTALES = ("sign", "scale", "influence", "gradient")
SPECIAL_CONTROLS = ("padded_width", "subsample", "phase", "guard")
"""Controls of a page that are no field of Settings."""
CONTROLS = (*Settings().keys(), "estimator", *SPECIAL_CONTROLS)
PROPERTIES = ("steps", "permutation", "shift", "other prompts")
"""Properties of an engine that a bug can break: many steps in one call,
rows in another order, all rewards of a prompt shifted, rewards of another
prompt changed."""

BugName = Annotated[str, one_of(*BUGS)]
SettingName = Annotated[str, one_of(*Settings().keys())]


@dataclass(frozen=True)
class Source(Part):
    """Where the bug was reported or fixed."""

    label: Text
    url: Url = ""
    commit: Commit = ""
    note: Text = ""


@dataclass(frozen=True)
class Dispute(Part):
    """Two views of a report that is disputed, and the fix's own trap."""

    maintainer: Text
    other_view: Text
    trap: Text


@dataclass(frozen=True)
class Affected(Part):
    """Am I affected?"""

    trainer: Text
    versions: Text
    keys: Annotated[tuple[Text, ...], between(1), each_once]
    look: Text
    workaround: Text


@dataclass(frozen=True)
class Kin(Part):
    """A relative of the bug that has no page of its own."""

    title: Text
    text: Text
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Prediction(Part):
    """The question to ask before the faulty engine is shown."""

    question: Text
    choices: Annotated[tuple[Text, ...], between(2, 4), each_once]
    answer: Whole
    why: Text

    def __post_init__(self) -> None:
        _check_index("answer", self.answer, len(self.choices), "choices")


@dataclass(frozen=True)
class Lesson(Part):
    """What a lead needs to teach the case.

    minutes  how long it takes
    usual    the tempting choice of the prediction, an index
    why      why it tempts
    do       what to do after the reveal
    next     the case to open when there is time left, or ""
    place    the place in the plan of an hour; 0 for a case outside it
    """

    minutes: Count
    usual: Count
    why: Text
    do: Text
    next: Text = ""
    place: Count = 0


@dataclass(frozen=True)
class Telltale(Part):
    """The number that gives this bug away."""

    kind: Annotated[str, one_of(*TELLTALES)]
    text: Text


def _column(value: Any) -> str | tuple[str, ...]:
    """A log column, or a list of columns of which one is enough."""
    if isinstance(value, (list, tuple)):
        return read(Annotated[tuple[Text, ...], between(2)], value)
    return read(Text, value)


@dataclass(frozen=True, kw_only=True)
class Record(Part):
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
    breaks           property, one of PROPERTIES -> the case that proves
                     that the faulty engine breaks it
    """

    columns: tuple[
        Annotated[str | tuple[str, ...], PlainValidator(_column)], ...
    ]
    in_advantages: Flag
    couples_prompts: Flag
    phrase: Text
    correct_phrase: Text
    tells: Text
    would_tell: Text
    laws: Annotated[tuple[Text, ...], between(1), each_once]
    guesses: Mapping[SettingName, Annotated[tuple[Any, ...], between(1)]] = (
        field(default_factory=dict)
    )
    breaks: Mapping[Annotated[str, one_of(*PROPERTIES)], Text] = field(
        default_factory=dict
    )


@dataclass(frozen=True, eq=False)
class OtherRun(Part):
    """A second batch, run beside the first."""

    title: Text
    rows: Rows
    note: Text

    def table(self) -> DataFrame:
        """The rows as a data frame to edit: text, and flags as booleans."""
        return Table.of(self.rows).frame()

    def batch(self, settings: Settings) -> Batch:
        """The rows as a batch. Raises GradebookError with column and row."""
        return Table.of(self.rows).batch(settings)


Advantages = Annotated[tuple[NumberOrNone, ...], between(1, MOST_ROWS)]


@dataclass(frozen=True)
class Expected(Part):
    """What a hand finds: advantages of each engine, NaN where a row has
    none, and the loss."""

    correct: Advantages | None = None
    faulty: Advantages | None = None
    correct_loss: Number | None = None
    faulty_loss: Number | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in dataclasses.fields(self)]
        if all(getattr(self, name) is None for name in names):
            raise GradebookError(
                expected="one or more of " + ", ".join(names),
                found="none of them",
            )


def _settings(value: Any) -> Settings:
    if isinstance(value, Settings):
        return value
    if not isinstance(value, dict):
        raise refuse("a table", value)
    check_keys(value, Settings().keys())
    return Settings(**value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Case(Part):
    """The keys of a scenario file.

    teaser        one sentence that sets the scene, shown before the answer
    claim         one sentence that says what goes wrong, shown after it
    engine_names  what the two engines are called where "correct" and
                  "faulty" would take a side
    also          bugs that are on together with `bug`: a combination
    kin           relatives of the bug that have no page
    """

    bug: BugName
    title: Text
    kind: Annotated[str, one_of(*KINDS)]
    claim: Text
    story: Text
    lesson: Text
    trainer: Text
    status: Annotated[str, one_of(*STATUSES)]
    status_note: Text
    sources: Annotated[tuple[Source, ...], between(1)]
    affected: Affected
    rule: Text
    settings: Annotated[Settings, PlainValidator(_settings)]
    controls: Annotated[
        tuple[Annotated[str, one_of(*CONTROLS)], ...], between(1), each_once
    ]
    rows: Rows
    focus: Whole
    prediction: Prediction
    telltale: Telltale
    record: Record
    expected: Expected
    teaser: Text = ""
    engine_names: Annotated[tuple[Text, ...], between(2, 2), each_once] = (
        "correct",
        "faulty",
    )
    also: Annotated[tuple[BugName, ...], between(1), each_once] = ()
    plan: Lesson | None = None
    dispute: Dispute | None = None
    kin: tuple[Kin, ...] = ()
    estimators: Annotated[
        tuple[Annotated[str, one_of(*ESTIMATORS)], ...],
        between(1),
        each_once,
    ] = ()
    estimators_note: Text = ""
    other_run: OtherRun | None = None
    eos_by_width: Flag = False
    challenges: Annotated[tuple[Challenge, ...], between(1)] = ()


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
    "kin",
)
"""What a variant may leave to its bug's main file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario(Case):
    """One batch that shows a bug, hides it, or shows another face of it.

    Raises GradebookError when parts of it do not fit together.
    """

    name: str
    path: Path
    variant: bool

    def __post_init__(self) -> None:
        self.batch()
        _check_index("focus", self.focus, len(self.rows), "rows")
        _check_expected(self)
        if self.estimators_note and not self.estimators:
            raise GradebookError(
                key="estimators", expected="the note's list", found="nothing"
            )
        if not self.variant and self.plan is None:
            raise GradebookError(
                key="plan", expected="a table", found="nothing"
            )
        if self.also:
            _check_together(self.bug, self.also)
        if self.plan is not None:
            choices = len(self.prediction.choices)
            _check_index("plan.usual", self.plan.usual, choices, "choices")
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
            return Table.of(self.rows).batch(settings)
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
    try:
        read(BugName, bug)
    except GradebookError as error:
        raise under(error, "bug") from None
    found = [load(n) for n in names() if n.partition("-")[0] == bug]
    found = [one for one in found if not one.also]
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


def combinations() -> tuple[Scenario, ...]:
    """The cases with several bugs on together."""
    return tuple(one for one in map(load, names()) if one.also)


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


# The scenario


def _scenario(path: Path, document: dict[str, Any]) -> Scenario:
    check_keys(document, [field.name for field in dataclasses.fields(Case)])
    try:
        bug = read(BugName, document.get("bug", NOTHING))
    except GradebookError as error:
        raise under(error, "bug") from None
    named = path.stem.partition("-")[0]
    if named in BUGS and named != bug:
        raise refuse(f"'{named}', as the file's name says", bug, "bug")
    variant = path.stem != bug
    if variant:
        main = load(bug)
        document = {n: getattr(main, n) for n in FROM_MAIN} | document
    case = read(Case, document)
    found = {f.name: getattr(case, f.name) for f in dataclasses.fields(case)}
    return Scenario(name=path.stem, path=path, variant=variant, **found)


def _check_index(key: str, index: int, count: int, of: str) -> None:
    if not 0 <= index < count:
        raise refuse(f"0 to {count - 1}, an index into {of}", index, key)


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


def _check_together(bug: str, also: Sequence[str]) -> None:
    """Raises unless the bugs are different ones that can be on together."""
    try:
        if bug in also:
            raise refuse("bugs that act together", bug)
        several((bug, *also))
    except GradebookError as error:
        raise GradebookError(
            key="also",
            expected="bugs that act together",
            found=error.found,
        ) from None


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
            raise refuse("another title", title, f"challenges[{place}].title")


def _check_solution(
    scenario: Scenario, challenge: Challenge, key: str
) -> None:
    """Raises unless the changes fit the rows, one after the other, and
    leave a batch."""
    rows, settings = list(scenario.rows), scenario.settings
    for place, change in enumerate(challenge.solution):
        try:
            if isinstance(change, Setting):
                named = {change.setting: change.value}
                settings = dataclasses.replace(settings, **named)
            else:
                rows = _changed(rows, change)
        except GradebookError as error:
            raise under(error, f"{key}[{place}]") from None
    try:
        Table.of(rows).batch(settings)
    except GradebookError as error:
        raise under(error, key) from None


def _changed(
    rows: Sequence[dict[str, Any]], change: Cell | AddRow | RemoveRow | Order
) -> list[dict[str, Any]]:
    """The rows after the change. Raises GradebookError with its key."""
    if isinstance(change, Order):
        if sorted(change.order) != [*range(len(rows))]:
            numbers = f"each of 0 to {len(rows) - 1} once"
            raise refuse(numbers, change.order, "order")
        return [rows[row] for row in change.order]
    if isinstance(change, AddRow):
        try:
            return [*rows, read_row(change.add_row, rows)]
        except GradebookError as error:
            raise under(error, "add_row") from None
    if isinstance(change, RemoveRow):
        _check_index("remove_row", change.remove_row, len(rows), "rows")
        if len(rows) == 1:
            raise refuse("a row to be left", 0, "remove_row")
        return [r for at, r in enumerate(rows) if at != change.remove_row]
    _check_index("row", change.row, len(rows), "rows")
    if change.column not in rows[0]:
        columns = ", ".join(rows[0])
        raise refuse(f"one of {columns}", change.column, "column")
    new = rows[change.row] | {change.column: change.value}
    others = [r for at, r in enumerate(rows) if at != change.row]
    try:
        read_row(new, others)
    except GradebookError as error:
        raise GradebookError(
            key="value", expected=error.expected, found=error.found
        ) from None
    return [new if at == change.row else r for at, r in enumerate(rows)]
