"""Bug or not: reports to judge, real bugs among false alarms.

A false alarm looked like a bug and was none: scenarios/alarms/<name>.toml holds the
report with the batch that settles it, and analysis.report_numbers computes its
numbers. A seed decides which reports are drawn, in which order; it does not say which
is a bug.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal

from gradebook.bugs import BUGS
from gradebook.cases import schema
from gradebook.cases.scenario import FOLDER as SCENARIOS
from gradebook.cases.scenario import PlainCase, Scenario, load
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, refuse

FOLDER = SCENARIOS / "alarms"
AlarmStatus = Literal["open", "closed", "answered", "disputed"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AlarmEvidence(schema.FilePart):
    """Numbers that help to settle the report.

    says      what the numbers are, in a phrase
    show      what is computed, as gradebook.analysis.report_numbers names it
    settings  settings that differ from the report's
    rows      another batch than the report's
    bug       runs the engine with this bug instead of the correct one
    expected  the numbers worked out by hand or given by the trainer
    """

    says: str
    show: str
    expected: schema.Values
    settings: schema.SomeSettings = field(default_factory=dict)
    rows: schema.Rows | None = None
    bug: schema.BugName = ""

    def batch(self, batch: Batch) -> Batch:
        if self.rows is not None:
            batch = self.rows.batch(batch.settings)
        return batch.under(replace(batch.settings, **self.settings))


@dataclass(frozen=True, eq=False, kw_only=True)
class Alarm(schema.Reported):
    """A report that looked like a bug and was none: the keys of its file, and its name.

    trainers  whose computation the report is about
    status    what became of the report; `statuses` of each trainer if they differ
    teaser    one sentence that sets the scene, shown with the claim
    claim     what the report says is wrong
    verdict   why it is no bug
    lesson    what to remember, in one sentence
    picture   what the board shows: advantages, or the parts of the gradient
    note      what was inferred or emulated

    Raises GradebookError if a batch of it cannot be read.
    """

    name: str
    trainers: Annotated[tuple[str, ...], schema.between(1)]
    status: AlarmStatus
    statuses: tuple[AlarmStatus, ...] = ()
    teaser: str
    claim: str
    verdict: str
    lesson: str
    settings: schema.SettingsTable
    rows: schema.Rows
    evidence: Annotated[tuple[AlarmEvidence, ...], schema.between(1)]
    focus: schema.Count = 0
    picture: Literal["advantage", "gradient"] = "advantage"
    note: str = ""

    def __post_init__(self) -> None:
        schema.check_index("focus", self.focus, len(self.rows), "rows")
        trainers = len(self.trainers)
        if self.statuses and len(self.statuses) != trainers:
            raise refuse(f"{trainers} values", len(self.statuses), "statuses")
        for place, evidence in enumerate(self.evidence):
            try:
                evidence.batch(self.batch())
            except GradebookError as error:
                raise error.at(key=f"evidence[{place}].{error.key}") from None

    def batch(self) -> Batch:
        return self.rows.batch(self.settings)

    @property
    def is_disputed(self) -> bool:
        return self.status == "disputed"

    @property
    def standing(self) -> str:
        """'TRL · closed', or if statuses differ 'TRL closed · ms-swift open'."""
        if not self.statuses:
            return f"{', '.join(self.trainers)} · {self.status}"
        return " · ".join(map(" ".join, zip(self.trainers, self.statuses)))


@cache
def alarms() -> tuple[Alarm, ...]:
    """Every shipped false alarm. Raises GradebookError with file, key and row."""
    paths = sorted(FOLDER.glob("*.toml"))
    return tuple(schema.read_part(Alarm, path, name=path.stem) for path in paths)


# The game


ROUNDS = 12
"""Reports of a game."""
CHOICES = ("A bug", "Not a bug")
UNSETTLED = ("disputed", "not confirmed")
"""The states of reports that are not asked about as bugs."""


@dataclass(frozen=True)
class Report:
    """A report to judge, at a place in the game of a seed. Its `source` is a bug's
    scenario, or a false alarm."""

    number: int
    seed: str
    source: Scenario | Alarm

    @property
    def is_bug(self) -> bool:
        return isinstance(self.source, Scenario)

    @property
    def truth(self) -> int | None:
        """The right answer, an index into CHOICES; None for a disputed report."""
        if self.source.is_disputed:
            return None
        return 0 if self.is_bug else 1

    @property
    def complaint(self) -> str:
        """What the reporter says is wrong."""
        source = self.source
        return source.complaint if isinstance(source, Scenario) else source.claim

    @property
    def picture(self) -> str:
        """What the board shows, as Telltale.kind."""
        source = self.source
        return source.telltale.kind if isinstance(source, Scenario) else source.picture

    @property
    def question(self) -> str:
        """The report's name in a room. It says nothing about the answer."""
        return f"report-{self.seed}-{self.number}"

    def case(self, answered: bool) -> PlainCase:
        """The report's batch. Before the answer it names no bug, and a bug's batch is
        like any other."""
        source = self.source
        case = PlainCase(
            name=self.question,
            title=f"Report {self.number + 1}",
            rows=source.rows,
            settings=source.settings,
            focus=source.focus,
        )
        if not answered or not isinstance(source, Scenario):
            return case
        return replace(
            case,
            name=f"{self.question}-answered",
            title=source.title,
            bugs=source.bugs,
            engine_names=source.engine_names,
        )


def game(seed: str) -> tuple[Report, ...]:
    """The reports of a game, in order. About half are bugs."""

    def shuffled(kind: str, sources: Iterable[Scenario | Alarm]) -> list[Any]:
        return sorted(sources, key=lambda source: draw(seed, kind, source.name))

    real = [
        case
        for case in map(load, BUGS)
        if all(report.state not in UNSETTLED for report in case.status)
    ]
    bugs = ROUNDS // 2 + int(draw(seed, "share"), 16) % 3 - 1
    lures = shuffled("alarm", alarms())[: ROUNDS - bugs]
    chosen = shuffled("order", [*lures, *shuffled("bug", real)[:bugs]])
    return tuple(Report(number, seed, source) for number, source in enumerate(chosen))


def named(question: str) -> Report | None:
    _, seed, *_ = f"{question}-".split("-")
    return next((r for r in game(seed) if r.question == question), None)


def draw(*parts: str) -> str:
    """Hex digits that look like chance, the same on every machine."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
