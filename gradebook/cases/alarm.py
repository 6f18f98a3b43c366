"""False alarms: reports that looked like a bug and were none, as data.

scenarios/alarms/<name>.toml holds one report with the batch that settles it.
Its numbers are computed by gradebook.analysis.evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from gradebook.cases.case import (
    BugName,
    SettingsTable,
    SomeSettings,
    Source,
    standing,
)
from gradebook.cases.rows import MOST_ROWS, Rows
from gradebook.cases.scenario import FOLDER as SCENARIOS
from gradebook.cases.schema import (
    Count,
    NumberOrNone,
    Part,
    Text,
    between,
    check_index,
    one_of,
    under,
)
from gradebook.cases.table import Table
from gradebook.cases.toml_file import read_part
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import STAGES

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
        for place, one in enumerate(self.evidence):
            try:
                one.batch(self.batch())
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
