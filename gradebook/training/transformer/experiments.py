"""What is trained for each bug: scenarios/transformer/<bug>.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Annotated, Any

from gradebook.bugs import BUGS, swap
from gradebook.cases import schema
from gradebook.cases.scenario import FOLDER
from gradebook.cases.schema import (
    BugName,
    Count,
    FilePart,
    Flag,
    Lesson,
    Number,
    Whole,
    one_of,
)
from gradebook.core.errors import choice, refuse
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT
from gradebook.training.study import KINDS
from gradebook.training.transformer.grpo import Arm, TransformerConditions

EXPERIMENTS = FOLDER / "transformer"
Text = Annotated[str, schema.Field(min_length=0)]
SomeConditions = dict[
    Annotated[str, one_of(*(f.name for f in fields(TransformerConditions)))],
    Flag | Whole | Number,
]


@dataclass(frozen=True)
class Dose(FilePart):
    """One value of the condition that turns the effect on, added to the experiment's
    own conditions and settings."""

    name: str  # "5 %", as it is chosen on the page
    conditions: SomeConditions = field(default_factory=dict)
    settings: schema.SomeSettings = field(default_factory=dict)
    correct: Text = ""  # see `correct_name`
    phrase: Text = ""  # if the experiment's own does not fit
    tables: Number | None = None  # the same dose on the slider of the tables' study


@dataclass(frozen=True, kw_only=True)
class Experiment(FilePart):
    """The transformers of one bug.

    label     what a dose is a value of
    phrase    how a sentence about a dose begins, with {} for its name
    shown     the dose that is asked about first
    why       what explains the result, shown after the prediction
    tables    how the tables' result compares, and why; "" if nothing needs to be said
    shares_correct  one correct run serves every dose, since the correct engine
              gives the same at all of them
    says      by how the faulty run compares, what the policies have learnt, with
              {correct} and {faulty} for their shares of answers that do not end
    correct_of  the bug whose correct run serves here too, or ""
    """

    bug: BugName
    order: Count
    label: str
    phrase: str
    shown: str
    why: str
    doses: Annotated[tuple[Dose, ...], schema.between(1)]
    tables: Text = ""
    note: Text = ""
    shares_correct: Flag = False
    correct_of: Text = ""
    says: dict[Annotated[str, one_of(*KINDS)], str] = field(default_factory=dict)
    rollouts: Count = 8
    plan: Lesson | None = None  # if it is a step of the session
    conditions: SomeConditions = field(default_factory=dict)
    settings: schema.SomeSettings = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice(self.shown, self.names, "shown")
        if len(set(self.names)) < len(self.names):
            raise refuse("doses with different names", self.names, "doses")
        if self.correct_of:
            choice(self.correct_of, BUGS, "correct_of")
        if self.plan is not None:
            schema.check_index("plan.usual", self.plan.usual, len(KINDS), "choices")
        for dose in self.doses:
            choice(dose.correct or dose.name, self.names, "correct")
            self.arm(dose.name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dose.name for dose in self.doses)

    def dose(self, name: str) -> Dose:
        """Raises GradebookError for a name that no dose has."""
        return self.doses[self.names.index(choice(name, self.names, "dose"))]

    def in_words(self, name: str) -> str:
        """How a sentence about a dose begins: 'With 5 % of the rollouts lost'."""
        return self.dose(name).phrase or self.phrase.format(name)

    def arm(self, name: str) -> Arm:
        """The faulty engine at a dose."""
        dose = self.dose(name)
        return self._arm(swap(self.bug).engine, dose.conditions, dose.settings)

    def correct_arm(self, name: str) -> Arm:
        """The correct engine at that dose. If one run serves every dose, it is trained
        without a dose."""
        if self.shares_correct:
            return self._arm(CORRECT, {}, {})
        return replace(self.arm(self.correct_name(name)), engine=CORRECT)

    def _arm(self, engine: Any, *more: Mapping[str, Any]) -> Arm:
        conditions, settings = more
        return Arm(
            engine=engine,
            settings=Settings(**{**self.settings, **settings}),
            conditions=TransformerConditions(**{**self.conditions, **conditions}),
            rollouts=self.rollouts,
        )

    def correct_name(self, name: str) -> str:
        """What the correct run beside a dose is called: the same for doses that share
        it, by what the experiment or the dose says."""
        return "every dose" if self.shares_correct else self.dose(name).correct or name


@lru_cache
def experiment(bug: str) -> Experiment:
    """Raises GradebookError, for a file with its key."""
    path = EXPERIMENTS / f"{bug}.toml"
    if bug not in BUGS or not path.exists():
        raise refuse("a bug that a transformer was trained with", bug, "bug")
    return schema.read_part(Experiment, path, bug=bug)


@lru_cache
def experimented() -> tuple[str, ...]:
    """The bugs with an experiment, the most telling first."""
    bugs = [path.stem for path in EXPERIMENTS.glob("*.toml")]
    return tuple(sorted(bugs, key=lambda bug: experiment(bug).order))
