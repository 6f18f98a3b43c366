"""Studies: what is trained to see what a bug does, from
scenarios/consequences/<bug>.toml, and what a run shows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, Any

import torch
from torch import optim

from gradebook.bugs import BUGS
from gradebook.cases import schema
from gradebook.cases.scenario import FOLDER
from gradebook.cases.schema import Count, FilePart, Flag, Number, one_of
from gradebook.core.errors import refuse
from gradebook.core.settings import AT_LEAST_ONE, Settings
from gradebook.training.environments import ENVIRONMENTS, MEASURES, Environment, Measure

STUDIES = FOLDER / "consequences"
KINDS = MORE, LESS, SAME = "more", "less", "same"
"""What the faulty run's measure is, beside the correct one's, in the order of a
measure's choices."""
UPDATES = 200
"""Of a run, unless somebody asks for fewer: what a learner waits 1.5 s for (16 seeds on
one core, 2026-11-28). A study says after which of them its result is given."""
SEEDS = (8, 16, 32)
"""Numbers of seeds to choose from. Four times the seeds halve an interval; 32 take 1.3
to 1.4 times as long as 16 (2026-11-28)."""


OPTIMIZERS: dict[str, tuple[str, Callable[..., optim.Optimizer], float]] = {
    "adam": ("Adam 0.05", optim.Adam, 0.05),
    "sgd": ("SGD 1", optim.SGD, 1.0),
    "sgd5": ("SGD 5", optim.SGD, 5.0),
}
"""As a link names them: title, optimizer and learning rate."""


@dataclass(frozen=True)
class TabularConditions(FilePart):
    """What happens to rollouts between the policy and the trainer: shares of them are
    lost, not scored (and get 0 as a filler), or cut into one row per token.

    The sampler's logits may have noise of a standard deviation. A rollout whose
    sequence ratio is then outside [1/2, 2] is rejected: its whole mask is 0, and its
    reward has a bonus.
    """

    lost: Number = 0.0
    sampler: Number = 0.0
    bonus: Number = 0.0
    unscored: Number = 0.0
    cut: Number = 0.0


@dataclass(frozen=True)
class Slider(FilePart):
    """The one condition that a learner moves."""

    name: str  # of a setting, of a condition or of the task's own argument
    label: str
    phrase: str  # how a sentence about a value begins, with {} for the value
    least: Number
    most: Number
    step: Number
    default: Number
    percent: Flag = False  # the slider shows percent; the condition is a share

    def in_words(self, value: float) -> str:
        """'With 5 % of the rollouts lost'."""
        return self.phrase.format(f"{value:g}".replace("-", "−"))

    @property
    def values(self) -> list[float]:
        steps = range(round((self.most - self.least) / self.step) + 1)
        # 3 * 0.1 is 0.30000000000000004; no slider has more than 6 decimals.
        return [round(self.least + step * self.step, 6) for step in steps]


@dataclass(frozen=True, kw_only=True)
class Study(FilePart):
    """The training runs of one bug, as its file has them. Results are given after the
    updates of `report`; the headline is about the first."""

    order: Count
    task: str  # what is trained on, and what a success is
    why: str  # what explains the result, shown after the prediction
    found: str  # how the conditions were found
    answer: Annotated[str, one_of(*KINDS)]  # at the slider's default
    environment: Annotated[str, one_of(*ENVIRONMENTS)]
    measure: Annotated[str, one_of(*MEASURES)]
    slider: Slider
    rollouts: Count = 8
    report: Annotated[tuple[Count, ...], schema.between(1)] = (UPDATES,)
    arguments: dict[str, int | float] = field(default_factory=dict)
    conditions: TabularConditions = TabularConditions()
    settings: schema.SettingsTable = Settings()

    @property
    def measured(self) -> Measure:
        return MEASURES[self.measure]

    def at(self, value: float) -> tuple[Environment, TabularConditions, Settings]:
        """The task, the conditions and the settings with the slider at `value`."""
        name, conditions, settings = self.slider.name, self.conditions, self.settings
        number = int(value) if name in AT_LEAST_ONE else value
        moved: dict[str, Any] = {name: value / 100 if self.slider.percent else number}
        arguments = self.arguments
        if name in tuple(settings):
            settings = replace(settings, **moved)
        elif hasattr(conditions, name):
            conditions = replace(conditions, **moved)
        else:
            arguments = arguments | moved
        return ENVIRONMENTS[self.environment](**arguments), conditions, settings


@dataclass(frozen=True)
class Run:
    """What is trained. Equal runs give equal curves."""

    bug: str
    value: float
    optimizer: str = "adam"
    seeds: int = 16


def default_run(bug: str) -> Run:
    return Run(bug, study(bug).slider.default)


@lru_cache
def studied() -> tuple[str, ...]:
    """The bugs that have a study, in the order of the page."""
    bugs = [path.stem for path in STUDIES.glob("*.toml")]
    return tuple(sorted(bugs, key=lambda bug: study(bug).order))


@lru_cache
def study(bug: str) -> Study:
    """Raises GradebookError for a bug without a study, and for a file that is none."""
    path = STUDIES / f"{bug}.toml"
    if bug not in BUGS or not path.exists():
        raise refuse("a bug that has training runs", bug, "bug")
    return schema.read_part(Study, path)


# What a run shows: the paired difference between both engines


@dataclass(frozen=True)
class Effect:
    """Faulty minus correct: means over the `seeds` in which neither run diverged, and
    the half width of the difference's 95 % interval (Student's t). NaN if there are too
    few seeds."""

    correct: float
    faulty: float
    difference: float
    half_width: float
    seeds: int
    diverged: int

    @property
    def exact(self) -> bool:
        return self.difference == self.half_width == 0

    @property
    def kind(self) -> str:
        """MORE or LESS if the interval is on one side of 0."""
        if self.difference - self.half_width > 0:
            return MORE
        if self.difference + self.half_width < 0:
            return LESS
        return SAME


def effect(correct: Sequence[float], faulty: Sequence[float]) -> Effect:
    """The paired difference of two runs, one value for each seed."""
    both = torch.tensor([correct, faulty], dtype=torch.float64)
    pairs = both[:, both.isfinite().all(0)]
    differences = pairs[1] - pairs[0]
    count = len(differences)
    half_width = math.nan
    if count > 1:
        error = float(differences.std()) / math.sqrt(count)
        half_width = t_quantile(0.975, count - 1) * error
    left, right = pairs.mean(-1).tolist()
    diverged = len(correct) - count
    return Effect(left, right, float(differences.mean()), half_width, count, diverged)


def t_quantile(level: float, freedom: int) -> float:
    """Student's t (Abramowitz and Stegun 26.7.5); for the level 0.975 within 0.005
    from 3 degrees on."""
    z = NormalDist().inv_cdf(level)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    terms = (z, first, second, third, fourth)
    return sum(term / freedom**power for power, term in enumerate(terms))


def run_name(engine: str) -> str:
    """'the faulty run', or 'the run with the guard' if an engine is so named."""
    return f"the run {engine}" if " " in engine else f"the {engine} run"


def question(setting: str, updates: int, measure: Measure, names: Sequence[str]) -> str:
    """What to predict after so many updates; `names` are the engines', the correct
    one first. The setting is in words: 'With 5 % of the rollouts lost'."""
    correct, faulty = map(run_name, names)
    text = measure.question.format(faulty, correct)
    return f"{setting}: after {updates} updates, {text}"


def sentence(
    setting: str, updates: int, measure: Measure, effect: Effect, faulty: str
) -> str:
    """The result after so many updates in words, with its interval. `faulty` names the
    engine."""
    when = f"after {updates} updates"
    if effect.seeds < 2:
        return f"{setting}, the run diverged: no number is left to compare."
    if effect.exact:
        return f"{setting}, the runs are identical {when}, to the last digit."

    def size(value: float) -> str:
        value = abs(value * measure.factor)
        if measure.factor == 1:
            return f"{value:.2f}"
        return f"{value:.0f}" if value >= 10 else f"{value:.1f}"

    ends = effect.difference - effect.half_width, effect.difference + effect.half_width
    if effect.kind == SAME:
        least, most = ("−+"[end >= 0] + size(end) for end in ends)
        return (
            f"{setting}, {effect.seeds} seeds show no difference {when}"
            f" (95\u00a0% interval {least} to {most} {measure.unit})."
        )
    least, most = sorted(map(size, ends), key=float)
    way = measure.ways[KINDS.index(effect.kind)]
    result = measure.result.format(run_name(faulty), size(effect.difference), way)
    return (
        f"{setting}, {result} {when} (95\u00a0% interval {least} to {most},"
        f" {effect.seeds} seeds)."
    )
