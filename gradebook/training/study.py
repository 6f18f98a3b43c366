"""What is trained to see what a bug does: one file for each bug.

scenarios/consequences/<bug>.toml names the task, the trainer's settings,
the one slider and the words around them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

from torch import optim

from gradebook.bugs import BUGS
from gradebook.cases.case import Lesson, SettingsTable
from gradebook.cases.scenario import FOLDER
from gradebook.cases.schema import (
    Count,
    Flag,
    Number,
    Part,
    Text,
    between,
    check_index,
    one_of,
    read_part,
)
from gradebook.core.errors import refuse
from gradebook.core.settings import AT_LEAST_ONE, Settings
from gradebook.training.environments import (
    ENVIRONMENTS,
    KINDS,
    MEASURES,
    Environment,
    Measure,
)

STUDIES = FOLDER / "consequences"
UPDATES = 200
SEEDS = (8, 16, 32)


@dataclass(frozen=True)
class Optimizer:
    """Of torch; gradients longer than 1 are shortened to 1."""

    title: str
    kind: Callable[..., optim.Optimizer]
    rate: float


OPTIMIZERS = {
    "adam": Optimizer("Adam 0.05", optim.Adam, 0.05),
    "sgd": Optimizer("SGD 1", optim.SGD, 1.0),
    "sgd5": Optimizer("SGD 5", optim.SGD, 5.0),
}


@dataclass(frozen=True)
class Conditions(Part):
    """What happens to rollouts between the policy and the trainer.

    lost       share of the rollouts that never arrive
    sampler    standard deviation of the noise in the sampler's logits;
               above 0, a rollout whose sequence ratio is outside
               [1/2, 2] is rejected: its whole mask is 0
    bonus      reward added to rejected rollouts
    unscored   share of the rollouts that no reward function scores; each
               gets 0 as a filler
    cut        share of the rollouts that are cut into one row a token
    """

    lost: Number = 0.0
    sampler: Number = 0.0
    bonus: Number = 0.0
    unscored: Number = 0.0
    cut: Number = 0.0


@dataclass(frozen=True)
class Slider(Part):
    """The one condition that a learner moves.

    name     of a setting, of a condition or of the task's own argument
    percent  the slider shows percent; the condition is a share
    phrase   how a sentence about a value begins, with {} for the value
    """

    name: Text
    label: Text
    phrase: Text
    least: Number
    most: Number
    step: Number
    default: Number
    percent: Flag = False

    def in_words(self, value: float) -> str:
        """How a sentence begins: 'With 5 % of the rollouts lost'."""
        return self.phrase.format(f"{value:g}".replace("-", "−"))

    def nearest(self, value: float) -> float:
        """The nearest value that the slider can stand at."""
        steps = round((value - self.least) / self.step)
        steps = max(0, min(steps, round((self.most - self.least) / self.step)))
        return round(self.least + steps * self.step, 6)


@dataclass(frozen=True, kw_only=True)
class Study(Part):
    """The training runs of one bug, as its file has them.

    order     the place on the page
    task      what is trained on, and what a success is
    why       what explains the result, shown after the prediction
    found     how the conditions were found
    answer    what the faulty run's measure is at the slider's default
    report    the updates after which results are given; the headline is
              about the first one
    plan      what a lead says about it, where it is a step of the session
    """

    order: Count
    task: Text
    why: Text
    found: Text
    answer: Annotated[str, one_of(*KINDS)]
    environment: Annotated[str, one_of(*ENVIRONMENTS)]
    measure: Annotated[str, one_of(*MEASURES)]
    slider: Slider
    rollouts: Count = 8
    report: Annotated[tuple[Count, ...], between(1)] = (UPDATES,)
    arguments: dict[str, int | float] = field(default_factory=dict)
    conditions: Conditions = Conditions()
    settings: SettingsTable = Settings()
    plan: Lesson | None = None

    def __post_init__(self) -> None:
        if self.plan is not None:
            check_index("plan.usual", self.plan.usual, len(KINDS), "choices")

    @property
    def measured(self) -> Measure:
        """What the headline is about."""
        return MEASURES[self.measure]

    def at(self, value: float) -> tuple[Environment, Conditions, Settings]:
        """The task, the conditions and the settings with the slider at
        `value`."""
        name = self.slider.name
        moved: dict[str, Any] = {name: value / 100 if self.slider.percent else value}
        arguments, conditions, settings = {}, self.conditions, self.settings
        if name in tuple(settings):
            if name in AT_LEAST_ONE:
                moved = {name: int(value)}
            settings = replace(settings, **moved)
        elif hasattr(conditions, name):
            conditions = replace(conditions, **moved)
        else:
            arguments = moved
        task = ENVIRONMENTS[self.environment](**self.arguments | arguments)
        return task, conditions, settings


@dataclass(frozen=True)
class Run:
    """What is trained. Equal runs give equal curves."""

    bug: str
    value: float
    optimizer: str = "adam"
    seeds: int = 16


def default_run(bug: str) -> Run:
    """The run that a bug's study begins with."""
    return Run(bug, study(bug).slider.default)


@lru_cache
def studied() -> tuple[str, ...]:
    """The bugs that have a study, in the order of the page."""
    bugs = [path.stem for path in STUDIES.glob("*.toml")]
    return tuple(sorted(bugs, key=lambda bug: study(bug).order))


@lru_cache
def study(bug: str) -> Study:
    """The study of the bug. Raises GradebookError for a bug without one,
    and for a file that is not one, with the key, what was expected and what
    was found."""
    path = STUDIES / f"{bug}.toml"
    if bug not in BUGS or not path.exists():
        raise refuse("a bug that has training runs", bug, "bug")
    return read_part(Study, path)
