"""The keys of a scenario file and of its tables, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import PlainValidator

from gradebook.bugs import BUGS
from gradebook.cases.challenge import Challenge, SettingName
from gradebook.cases.schema import (
    MOST_ROWS,
    Commit,
    Count,
    Flag,
    Limit,
    Number,
    NumberOrNone,
    Part,
    Rows,
    Text,
    Url,
    Whole,
    between,
    check_index,
    one_of,
    read,
)
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings

KINDS = ("shows", "face", "hides")
"""Shows the bug, another face of it, or hides it; in teaching order."""
CONTROLS = (*Settings().keys(), "estimator", "padded_width")

BugName = Annotated[str, one_of(*BUGS)]
Status = Literal["fixed", "open", "closed", "disputed", "by design", "not confirmed"]


@dataclass(frozen=True)
class Source(Part):
    """Where the bug was reported or fixed."""

    label: Text
    url: Url = ""
    commit: Commit = ""
    note: Text = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported(Part):
    """What a report is about.

    trainer   the trainers that it is about, joined by ", "
    statuses  the status in each of these trainers, where they differ
    """

    title: Text
    trainer: Text
    status: Status
    statuses: tuple[Status, ...] = ()
    sources: Annotated[tuple[Source, ...], between(1)]

    @property
    def trainers(self) -> tuple[str, ...]:
        return tuple(self.trainer.split(", "))

    @property
    def standing(self) -> str:
        """Where the report stands: 'AReaL · fixed', or each trainer with its
        own status, 'slime fixed · miles open'."""
        if not self.statuses:
            return f"{self.trainer} · {self.status}"
        return " · ".join(map(" ".join, zip(self.trainers, self.statuses)))


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
    keys: Annotated[tuple[Text, ...], between(1)]
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
    """The question to ask before the faulty engine is shown.

    said     one sentence per choice, shown after the answer
    places   one number per choice: where it puts the guess on the advantage
             axis. Without it the question is no place on the axis.
    regions  [low, high] per choice: the first that holds a guess on the axis
             is its choice. Without it the nearest place is.
    """

    question: Text
    choices: Annotated[tuple[Text, ...], between(2, 4)]
    answer: Whole
    why: Text
    said: tuple[Text, ...]
    places: tuple[Number, ...] = ()
    regions: tuple[Annotated[tuple[Limit, ...], between(2, 2)], ...] = ()

    def __post_init__(self) -> None:
        check_index("answer", self.answer, len(self.choices), "choices")
        for key in ("said", "places", "regions"):
            values = getattr(self, key)
            if (values or key == "said") and len(values) != len(self.choices):
                raise refuse(f"{len(self.choices)} values", len(values), key)


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

    kind: Literal["sign", "scale", "influence", "gradient"]
    text: Text


@dataclass(frozen=True, kw_only=True)
class Record(Part):
    """What the check of a log and the laws must know about a bug.

    columns          log columns that the check needs to try the bug; a tuple
                     inside stands for one of several
    in_advantages    False: the bug leaves no trace in advantages
    couples_prompts  a row's faulty advantage may depend on the rows of other
                     prompts, whatever the settings are
    phrase, correct_phrase  what a verdict calls the two computations
    tells            what a log must hold for the bug to be tried
    would_tell       what a step must hold for the bug to show
    laws             names of laws in analysis/laws, the first to show first
    proof            what proves the bug in a log: numbers that no correct
                     computation gives, a column whose meaning is certain, or
                     what the trainer was asked for
    loses            the number that a number type cannot hold, where that is
                     the bug
    guesses          setting -> values to try in the check; "strides" and
                     "prompts" stand for the group sizes and the prompts of a
                     step that the rows of a log suggest
    """

    columns: tuple[Text | Annotated[tuple[Text, ...], between(2)], ...]
    in_advantages: Flag
    couples_prompts: Flag
    phrase: Text
    correct_phrase: Text
    tells: Text
    would_tell: Text
    laws: Annotated[tuple[Text, ...], between(1)]
    proof: Literal["structure", "column", "declaration"] = "declaration"
    loses: Literal["", "float32 mean", "float32 variance", "bfloat16 mean"] = ""
    guesses: Mapping[SettingName, Annotated[tuple[Any, ...], between(1)]] = field(
        default_factory=dict
    )


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
        if all(value is None for value in vars(self).values()):
            raise GradebookError(expected="a value", found="none")


SomeSettings = dict[SettingName, Any]
SettingsTable = Annotated[
    Settings,
    PlainValidator(
        lambda value: (
            value
            if isinstance(value, Settings)
            else Settings(**read(SomeSettings, value))
        )
    ),
]
"""A table of settings, the others at their defaults."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BugReport(Reported):
    """What a variant may leave to its bug's main file.

    engine_names  what the two engines are called where "correct" and
                  "faulty" would take a side
    kin           relatives of the bug that have no page
    """

    status_note: Text
    affected: Affected
    rule: Text
    controls: Annotated[tuple[Annotated[str, one_of(*CONTROLS)], ...], between(1)]
    telltale: Telltale
    record: Record
    engine_names: Annotated[tuple[Text, ...], between(2, 2)] = ("correct", "faulty")
    dispute: Dispute | None = None
    kin: tuple[Kin, ...] = ()


FROM_MAIN = tuple(field.name for field in fields(BugReport) if field.name != "title")
"""The keys that a variant need not have; settings are its own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case(BugReport):
    """The keys of a scenario file.

    teaser  one sentence that sets the scene, shown before the answer
    claim   one sentence that says what goes wrong, shown after it
    also    bugs that are on together with `bug`: a combination
    """

    bug: BugName
    kind: Annotated[str, one_of(*KINDS)]
    claim: Text
    story: Text
    lesson: Text
    settings: SettingsTable
    rows: Rows
    focus: Whole
    prediction: Prediction
    expected: Expected
    teaser: Text = ""
    also: Annotated[tuple[BugName, ...], between(1)] = ()
    plan: Lesson | None = None
    challenges: Annotated[tuple[Challenge, ...], between(1)] = ()

    @property
    def bugs(self) -> tuple[str, ...]:
        """What the faulty engine has."""
        return (self.bug, *self.also)
