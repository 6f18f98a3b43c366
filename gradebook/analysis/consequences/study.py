"""What is trained to see what a bug does: one file for each bug.

scenarios/consequences/<bug>.toml names the task, the trainer's settings,
the one slider and the words around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from gradebook.analysis.consequences.environments import (
    ENVIRONMENTS,
    Environment,
)
from gradebook.analysis.consequences.measures import MEASURES, Measure
from gradebook.bugs import BUGS
from gradebook.cases.scenario import FOLDER
from gradebook.cases.toml_file import read_toml
from gradebook.core.errors import GradebookError, shown
from gradebook.core.settings import Settings

STUDIES = FOLDER / "consequences"
UPDATES = 200
SEEDS = (8, 16, 32)


@dataclass(frozen=True)
class Optimizer:
    """kind "adam" or "sgd"; gradients longer than 1 are shortened to 1."""

    title: str
    kind: str
    rate: float


OPTIMIZERS = {
    "adam": Optimizer("Adam 0.05", "adam", 0.05),
    "sgd": Optimizer("SGD 1", "sgd", 1.0),
    "sgd5": Optimizer("SGD 5", "sgd", 5.0),
}


@dataclass(frozen=True)
class Conditions:
    """What happens to rollouts between the policy and the trainer.

    lost       share of the rollouts that never arrive
    sampler    standard deviation of the noise in the sampler's logits;
               above 0, a rollout whose sequence ratio is outside
               [1/2, 2] is rejected: its whole mask is 0
    bonus      reward added to rejected rollouts
    """

    lost: float = 0.0
    sampler: float = 0.0
    bonus: float = 0.0


@dataclass(frozen=True)
class Slider:
    """The one condition that a learner moves.

    name     of a setting, of a condition or of the task's own argument
    percent  the slider shows percent; the condition is a share
    phrase   the value in a sentence, with {} for the value
    off      a value at which the bug changes nothing or helps
    """

    name: str
    label: str
    phrase: str
    least: float
    most: float
    step: float
    default: float
    off: float
    percent: bool = False

    def of(self, value: float) -> float:
        """The condition's value for the slider's."""
        return value / 100 if self.percent else value

    def said(self, value: float) -> str:
        """The value in a sentence: 'with 5 % of the rollouts lost'."""
        return self.phrase.format(f"{value:g}".replace("-", "−"))

    def nearest(self, value: float) -> float:
        """The nearest value that the slider can stand at."""
        steps = round((value - self.least) / self.step)
        steps = max(0, min(steps, round((self.most - self.least) / self.step)))
        return round(self.least + steps * self.step, 6)


@dataclass(frozen=True)
class Study:
    """The training runs of one bug.

    task      what is trained on, and what a success is
    why       what explains the result, shown after the prediction
    found     how the conditions were found
    report    the updates after which results are given; the headline is
              about the first one
    """

    bug: str
    order: int
    task: str
    why: str
    found: str
    environment: str
    measure: str
    slider: Slider
    rollouts: int = 8
    report: tuple[int, ...] = (UPDATES,)
    arguments: dict[str, float] = field(default_factory=dict)
    conditions: Conditions = Conditions()
    settings: Settings = Settings()

    @property
    def measured(self) -> Measure:
        """What the headline is about."""
        return MEASURES[self.measure]

    def at(self, value: float) -> tuple[Environment, Conditions, Settings]:
        """The task, the conditions and the settings with the slider at
        `value`."""
        name, value = self.slider.name, self.slider.of(value)
        arguments, on, settings = (
            self.arguments,
            self.conditions,
            self.settings,
        )
        if name in dict(Settings()):
            settings = replace(settings, **{name: value})
        elif hasattr(on, name):
            on = replace(on, **{name: value})
        else:
            arguments = {**arguments, name: value}
        return ENVIRONMENTS[self.environment](**arguments), on, settings


@dataclass(frozen=True)
class Run:
    """What is trained. Equal runs give equal curves."""

    bug: str
    value: float
    optimizer: str = "adam"
    seeds: int = 16


@lru_cache
def studied() -> tuple[str, ...]:
    """The bugs that have a study, in the order of the page."""
    stems = [path.stem for path in STUDIES.glob("*.toml")]
    found = [study(bug) for bug in stems if bug in BUGS]
    return tuple(one.bug for one in sorted(found, key=lambda one: one.order))


@lru_cache
def study(bug: str) -> Study:
    """The study of the bug. Raises GradebookError for a bug without one,
    and for a file with a key that is unknown or missing."""
    path = STUDIES / f"{bug}.toml"
    if bug not in BUGS or not path.exists():
        raise GradebookError(
            key="bug",
            expected="a bug that has training runs",
            found=shown(bug),
        )
    table = read_toml(path)
    try:
        return Study(bug=bug, **(table | _parts(table)))
    except TypeError as error:
        raise GradebookError(str(error), file=path.name) from None


def _parts(table: dict[str, Any]) -> dict[str, Any]:
    """The file's inner tables as the values that they stand for."""
    return {
        "slider": Slider(**table.get("slider", {})),
        "report": tuple(table.get("report", (UPDATES,))),
        "conditions": Conditions(**table.get("conditions", {})),
        "settings": Settings(**table.get("settings", {})),
    }
