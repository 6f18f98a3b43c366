"""TOML file -> Scenario -> Batch. The only reader of scenario files.

A file is read whole or refused: an unknown key, a missing key or a wrong
type is a GradebookError with file, key, row, expected and found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradebook.bugs import BUGS
from gradebook.cases.case import FROM_MAIN, KINDS, BugName, Case, OtherRun
from gradebook.cases.challenge import Challenge, Setting
from gradebook.cases.engines import several
from gradebook.cases.schema import (
    NOTHING,
    check_index,
    check_keys,
    read,
    under,
)
from gradebook.cases.table import Table
from gradebook.cases.toml_file import read_toml
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.project import PROJECT
from gradebook.core.settings import Settings

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = PROJECT / "scenarios"


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario(Case):
    """One batch that shows a bug, hides it, or shows another face of it.

    Raises GradebookError when parts of it do not fit together.

    >>> scenario = load("partial_groups")
    >>> scenario.bug, scenario.batch().rows
    ('partial_groups', 12)
    """

    name: str
    path: Path
    variant: bool

    def __post_init__(self) -> None:
        self.batch()
        check_index("focus", self.focus, len(self.rows), "rows")
        _check_expected(self)
        if self.estimators_note and not self.estimators:
            raise GradebookError(
                key="estimators", expected="the note's list", found="nothing"
            )
        if self.statuses and len(self.statuses) != len(self.trainers):
            raise refuse(
                f"{len(self.trainers)} of them, one a trainer",
                len(self.statuses),
                "statuses",
            )
        if not self.variant and self.plan is None:
            raise GradebookError(key="plan", expected="a table", found="nothing")
        if self.also:
            _check_together(self.bug, self.also)
        if self.plan is not None:
            choices = len(self.prediction.choices)
            check_index("plan.usual", self.plan.usual, choices, "choices")
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

    >>> load("partial_groups").title
    'Partial groups'
    """
    if not isinstance(name_or_path, (str, Path)):
        raise refuse("a name or a path", name_or_path, "scenario")
    if _is_path(name_or_path):
        return _read(Path(name_or_path))
    if name_or_path not in names():
        raise refuse("one of " + ", ".join(names()), name_or_path, "scenario")
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
    """The sandbox's cases with several bugs on together, that a trainer had
    at the same time."""
    folder = FOLDER / "sandbox"
    found = map(_shipped, sorted(folder.glob("*-with_*.toml")))
    return tuple(one for one in found if one.also)


@cache
def _shipped(path: Path) -> Scenario:
    return _read(path)


def _is_path(name_or_path: str | Path) -> bool:
    if isinstance(name_or_path, Path):
        return True
    return name_or_path.endswith(".toml") or bool({"/", "\\"} & set(name_or_path))


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


def _check_expected(scenario: Scenario) -> None:
    rows, expected = len(scenario.rows), scenario.expected
    for side in ("correct", "faulty"):
        values = getattr(expected, side)
        if values is not None and len(values) != rows:
            raise refuse(
                f"{rows} values, one a row",
                len(values),
                f"expected.{side}",
                row=min(len(values), rows),
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
        raise refuse(
            f"{rows} rows, as in rows",
            len(other.rows),
            "other_run.rows",
            row=min(len(other.rows), rows),
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


def _check_solution(scenario: Scenario, challenge: Challenge, key: str) -> None:
    """Raises unless the changes fit the rows, one after the other, and
    leave a batch."""
    table, settings = Table.of(scenario.rows), scenario.settings
    for place, change in enumerate(challenge.solution):
        if isinstance(change, Setting):
            named = {change.setting: change.value}
            settings = dataclasses.replace(settings, **named)
            continue
        try:
            table = change.changed(table)
        except GradebookError as error:
            raise under(error, f"{key}[{place}]") from None
    try:
        table.batch(settings)
    except GradebookError as error:
        raise under(error, key) from None
