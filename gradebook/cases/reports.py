"""Bug or not: reports to judge, real bugs among false alarms.

A false alarm looked like a bug and was none: scenarios/alarms/<name>.toml holds
the report with the batch that settles it, whose numbers
gradebook.analysis.evidence computes. A seed decides which reports are drawn and in
which order, so a link with the seed replays the game. Nothing in the seed says
which report is a bug.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from gradebook.bugs import BUGS
from gradebook.cases.case import (
    BugName,
    SettingsTable,
    SomeSettings,
    Source,
    standing,
)
from gradebook.cases.scenario import FOLDER as SCENARIOS
from gradebook.cases.scenario import PlainCase, Scenario, load
from gradebook.cases.schema import (
    MOST_ROWS,
    Count,
    NumberOrNone,
    Part,
    Rows,
    Text,
    between,
    check_index,
    one_of,
    read_part,
    under,
)
from gradebook.cases.table import Table
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import STAGES

ROUNDS = 12
"""Reports of a game, unless every false alarm is asked for."""
AGREED = ("fixed", "open")
"""The statuses of reports that nobody disputes."""


@dataclass(frozen=True)
class Report:
    """A report to judge. Its `source` is a bug's scenario, or a false alarm.

    number  its place in the game, from 0
    seed    of the game
    every   the game has every false alarm
    """

    number: int
    seed: str
    source: Scenario | Alarm
    every: bool = False

    @property
    def is_bug(self) -> bool:
        """The report is of a real bug."""
        return isinstance(self.source, Scenario)

    @property
    def scored(self) -> bool:
        """The report counts. One that is disputed has no right answer."""
        return self.source.status != "disputed"

    @property
    def claim(self) -> str:
        """What the report says is wrong."""
        return self.source.claim

    @property
    def scene(self) -> str:
        """The sentence before the claim."""
        if isinstance(self.source, Scenario):
            return self.source.teaser
        return self.source.scene

    @property
    def picture(self) -> str:
        """What the board shows (Telltale.kind): advantages or gradients."""
        if isinstance(self.source, Scenario):
            return self.source.telltale.kind
        return self.source.picture

    @property
    def question(self) -> str:
        """The report's name in a room. It says nothing about the answer."""
        kind = "every" if self.every else "report"
        return f"{kind}-{self.seed}-{self.number}"

    def case(self, answered: bool) -> PlainCase:
        """The report's batch for a draft and a board. Before the answer it
        names no bug, and a bug's batch is like any other."""
        keys: dict[str, Any] = {
            "name": self.question,
            "title": f"Report {self.number + 1}",
            "rows": self.source.rows,
            "settings": self.source.settings,
            "focus": self.source.focus,
        }
        if answered and isinstance(self.source, Scenario):
            keys["name"] += "-answered"
            keys["title"] = self.source.title
            keys["bugs"] = self.source.bugs
            keys["engine_names"] = self.source.engine_names
        return PlainCase(**keys)


def real() -> tuple[Scenario, ...]:
    """The bugs that nobody disputes."""
    cases = (load(name) for name in BUGS)
    return tuple(case for case in cases if case.status in AGREED)


def game(seed: str, every: bool = False) -> tuple[Report, ...]:
    """The reports of a game, in order.

    every  with every false alarm and as many bugs; otherwise ROUNDS reports,
           of which about half are bugs
    """
    lures, bugs = list(alarms()), list(real())
    lures.sort(key=lambda source: _draw(seed, "alarm", source.name))
    bugs.sort(key=lambda source: _draw(seed, "bug", source.name))
    taken = len(lures)
    if not every:
        spread = int(_draw(seed, "share"), 16) % 3 - 1
        taken = ROUNDS // 2 + spread
        lures = lures[: ROUNDS - taken]
    chosen: list[Scenario | Alarm] = [*lures, *bugs[:taken]]
    chosen.sort(key=lambda source: _draw(seed, "order", source.name))
    return tuple(
        Report(number, seed, source, every) for number, source in enumerate(chosen)
    )


def named(question: str) -> Report | None:
    """The report that has this name in a room, if it is one's."""
    kind, _, rest = question.partition("-")
    seed, _, number = rest.partition("-")
    if kind not in ("report", "every") or not number.isdecimal():
        return None
    reports = game(seed, kind == "every")
    return reports[int(number)] if int(number) < len(reports) else None


def _draw(*parts: str) -> str:
    """A number that depends on the parts and looks like chance, as hex
    digits. The same on every machine and in every version of Python."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# The false alarms, as data


FOLDER = SCENARIOS / "alarms"
STATUSES = ("open", "closed", "disputed")
PICTURES = ("advantage", "gradient")
BY_ENGINE = (
    *STAGES[:-1],
    "loss",
    "gradient",
    "kl_gradient",
    "batch_scale",
    "mean_over_rows",
    "mean_over_tokens",
)
"""What the engine can show of a batch: a stage's results, or numbers made of
them."""
BY_FORMULA = (
    "std_of_bracketed",
    "times_reciprocal_root",
    "times_deviation",
    "normalized_reward",
    "centred_reward",
)
"""What a formula computes from the rewards alone, since the report is about
code that the engine does not have."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(Part):
    """Numbers that help to settle the report.

    says      what the numbers are, in a phrase
    show      what is computed; gradebook.analysis.evidence computes it
    settings  settings that differ from the report's
    rows      another batch than the report's
    bug       runs the engine with this bug instead of the correct one
    expected  what a hand, or the trainer itself, found
    """

    says: Text
    show: Annotated[str, one_of(*BY_ENGINE, *BY_FORMULA)]
    expected: Annotated[tuple[NumberOrNone, ...], between(1, MOST_ROWS)]
    settings: SomeSettings = field(default_factory=dict)
    rows: Rows | None = None
    bug: BugName = ""

    def batch(self, batch: Batch) -> Batch:
        """The batch of this evidence, where the report's is `batch`."""
        if self.rows is not None:
            batch = Table.of(self.rows).batch(batch.settings)
        return batch.under(replace(batch.settings, **self.settings))


@dataclass(frozen=True, eq=False, kw_only=True)
class Alarm(Part):
    """A report that looked like a bug and was none: the keys of its file,
    and the file's name.

    scene    one sentence that sets the scene, shown with the claim
    claim    what the report says is wrong
    verdict  why it is no bug
    lesson   what to remember, in one sentence
    picture  what the board shows: advantages, or the parts of the gradient
    note     what was inferred or emulated

    Raises GradebookError where its batch, or one of its evidence, cannot be
    read.
    """

    name: Text
    title: Text
    trainer: Text
    status: Annotated[str, one_of(*STATUSES)]
    sources: Annotated[tuple[Source, ...], between(1)]
    scene: Text
    claim: Text
    verdict: Text
    lesson: Text
    settings: SettingsTable
    rows: Rows
    evidence: Annotated[tuple[Evidence, ...], between(1)]
    statuses: tuple[Annotated[str, one_of(*STATUSES)], ...] = ()
    focus: Count = 0
    picture: Annotated[str, one_of(*PICTURES)] = "advantage"
    note: Text = ""

    def __post_init__(self) -> None:
        check_index("focus", self.focus, len(self.rows), "rows")
        for place, evidence in enumerate(self.evidence):
            try:
                evidence.batch(self.batch())
            except GradebookError as error:
                raise under(error, f"evidence[{place}]") from None

    @property
    def standing(self) -> str:
        """Where the report stands."""
        return standing(self.trainer, self.status, self.statuses)

    def batch(self) -> Batch:
        """The report's batch."""
        return Table.of(self.rows).batch(self.settings)


def load_alarm(path: Path) -> Alarm:
    """The false alarm in the file. Raises GradebookError with file, key,
    row, expected and found."""
    return read_part(Alarm, path, name=path.stem)


@cache
def alarms() -> tuple[Alarm, ...]:
    """Every false alarm that is shipped, by its file's name."""
    return tuple(load_alarm(path) for path in sorted(FOLDER.glob("*.toml")))
