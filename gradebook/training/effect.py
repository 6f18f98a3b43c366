"""What a training run shows: the paired difference between both engines,
its interval, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from gradebook.training.environments import LESS, MORE, SAME
from gradebook.training.study import Study

NAMES = ("correct", "faulty")
"""Engine names that stand before the noun."""


@dataclass(frozen=True)
class Effect:
    """Faulty minus correct, over the seeds in which neither run diverged.

    correct, faulty  means over these seeds
    difference       mean of the paired differences
    half_width       of its 95 % interval (Student's t); 0 where every
                     difference is the same, NaN with fewer than two seeds
    seeds            how many there are
    diverged         how many are left out
    exact            every difference is exactly 0
    """

    correct: float
    faulty: float
    difference: float
    half_width: float
    seeds: int
    diverged: int
    exact: bool

    @property
    def kind(self) -> str:
        """MORE or LESS where the interval lies on one side of 0."""
        if self.difference - self.half_width > 0:
            return MORE
        if self.difference + self.half_width < 0:
            return LESS
        return SAME


def effect(correct: Sequence[float], faulty: Sequence[float]) -> Effect:
    """The paired difference of two runs, one value for each seed."""
    pairs = [
        (c, f) for c, f in zip(correct, faulty) if math.isfinite(c) and math.isfinite(f)
    ]
    diverged = len(correct) - len(pairs)
    if not pairs:
        nothing = math.nan
        return Effect(nothing, nothing, nothing, nothing, 0, diverged, exact=False)
    differences = [f - c for c, f in pairs]
    half_width = math.nan
    if len(pairs) > 1:
        error = stdev(differences) / math.sqrt(len(pairs))
        half_width = t_quantile(0.975, len(pairs) - 1) * error
    return Effect(
        correct=fmean(c for c, _ in pairs),
        faulty=fmean(f for _, f in pairs),
        difference=fmean(differences),
        half_width=half_width,
        seeds=len(pairs),
        diverged=diverged,
        exact=not any(differences),
    )


def t_quantile(level: float, freedom: int) -> float:
    """Student's t, by the expansion about the normal distribution
    (Abramowitz and Stegun 26.7.5); within 0.005 from 5 degrees on."""
    z = NormalDist().inv_cdf(level)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / freedom**n for n, term in enumerate(terms))


def run_name(engine: str) -> str:
    """What the run of an engine is called: 'the faulty run', or 'the run with
    the guard' if the engine is named for what it does."""
    return f"the {engine} run" if engine in NAMES else f"the run {engine}"


def question(study: Study, value: float, names: Sequence[str], update: int) -> str:
    """What to predict; `names` of the engines, the correct one first."""
    correct, faulty = map(run_name, names)
    asked = study.measured.question.format(faulty, correct)
    return f"{study.slider.in_words(value)}: after {update} updates, {asked}"


def sentence(
    study: Study, value: float, effect: Effect, update: int, faulty: str
) -> str:
    """The result in words, with its interval. `faulty` names the engine."""
    setting, when = study.slider.in_words(value), f"after {update} updates"
    measure = study.measured

    def size(value: float) -> str:
        value = abs(value * measure.factor)
        if measure.factor == 1:
            return f"{value:.2f}"
        return f"{value:.0f}" if value >= 10 else f"{value:.1f}"

    low = effect.difference - effect.half_width
    high = effect.difference + effect.half_width
    if effect.seeds < 2:
        return f"{setting}, the run diverged: no number is left to compare."
    if effect.exact:
        return f"{setting}, the runs are identical {when}, to the last digit."
    if effect.kind == SAME:
        least, most = (("−" if end < 0 else "+") + size(end) for end in (low, high))
        return (
            f"{setting}, {effect.seeds} seeds show no difference {when}"
            f" (95 % interval {least} to {most} {measure.unit})."
        )
    words = measure.more if effect.kind == MORE else measure.less
    least, most = map(size, sorted((low, high), key=abs))
    return (
        f"{setting}, {words.format(run_name(faulty), size(effect.difference))}"
        f" {when} (95 % interval {least} to {most})."
    )
