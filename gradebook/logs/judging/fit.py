"""Fit: how far a computation is from the log, and how far it may be.

A step fits at a level: exactly; with what float32 scores lose; with the
advantages' own rounding; with the rewards' rounding. Letters: R rows, S
steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from gradebook.core import tolerance
from gradebook.core.tolerance import BASE, NEAR
from gradebook.logs.judging.rounding import Rounding, rounding_of
from gradebook.logs.logged_steps import LoggedSteps

EXACT, SCORES, WRITTEN, REWARDS, NONE = range(5)
"""The levels, best first; NONE is no fit."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """What a computation gives, [R] each: advantages, what the reward was compared
    with, what the distance was divided by in all, the groups of an engine, and the
    spread to which eps is added, None if it is not."""

    values: np.ndarray
    baseline: np.ndarray
    scale: np.ndarray
    group: np.ndarray | None = None
    spread: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """How a computation compares with the log, [S].

    level     the level at which all rows of the step fit, or NONE
    residual  the largest distance of a row, NaN if rounding lost it
    near      the share of the step's rows that are near, whatever eps is
    fitting   how many of the step's rows fit at the WRITTEN level
    slack     the most that the rewards' rounding may move a row of the step
    """

    level: np.ndarray
    residual: np.ndarray
    near: np.ndarray
    fitting: np.ndarray
    slack: np.ndarray

    @property
    def good(self) -> np.ndarray:
        """bool [S] the step fits, but for rounding of the rewards."""
        return self.level <= WRITTEN


@dataclass(frozen=True, eq=False)
class Ruler:
    """Measures how far a computation is from the log on some steps, and how far
    rounding allows it to be. `ignored`, bool [R], marks rows that need not fit."""

    steps: LoggedSteps
    advantage: Rounding = Rounding()
    reward: Rounding = Rounding()
    ignored: np.ndarray | None = None

    @cached_property
    def size(self) -> np.ndarray:
        logged = self.steps.advantage
        return 1 + np.abs(np.where(np.isfinite(logged), logged, 0))

    @cached_property
    def base(self) -> np.ndarray:
        return BASE * self.size

    @cached_property
    def written(self) -> np.ndarray:
        return self.advantage.of(self.steps.advantage)

    @cached_property
    def exact(self) -> np.ndarray:
        """What a row may be off if it fits exactly. [R]

        Rounding that is finer than what is always allowed tells nothing, so it is
        allowed, too. Numbers rounded more coarsely are off by a random part of it: a
        computation fits them exactly only if its own numbers are that short, and then
        it is off by far less."""
        is_fine = self.written <= self.base
        short = np.minimum(self.base, self.written / tolerance.SHORT_BY_NATURE)
        return np.where(is_fine, self.base + self.written, short)

    @cached_property
    def moved(self) -> np.ndarray:
        """Largest change of an undivided row by rounding of its step's rewards. [R]"""
        largest = self.steps.worst(np.abs(self.steps.reward))[self.steps.step_of]
        return self.reward.of(largest) * (1 + self.size)

    @cached_property
    def exact_scores(self) -> np.ndarray:
        """bool [R]: float32 sums over the row's group are exact, or the
        group's rewards are equal."""
        reward, group = self.steps.reward, self.steps.prompt
        short = (reward * 1024 == np.round(reward * 1024)) & (np.abs(reward) < 4096)
        first = reward[self.steps.groups.first][group]
        exact = np.bincount(group, ~short) == 0
        return (exact | (np.bincount(group, reward != first) == 0))[group]

    def score_slack(self, computed: Numbers) -> np.ndarray:
        """float64 [R] the largest error from float32 scores; 0 if a score equals its
        baseline, because a divisor cannot magnify a distance of 0."""
        with np.errstate(all="ignore"):
            sizes = np.abs(self.steps.reward) + np.abs(computed.baseline)
            slack = tolerance.SCORES * sizes
            slack *= np.maximum(self.size - 1, 1) / np.abs(computed.scale)
        apart = np.abs(self.steps.reward - computed.baseline) > tolerance.SAME * sizes
        rounded = np.isfinite(slack) & ~self.exact_scores & apart
        return np.where(rounded, np.minimum(slack, tolerance.MOST_SCORES), 0)

    def limit(self, computed: Numbers) -> np.ndarray:
        """float64 [R] how far a row may be off if it fits, but for rounding of the
        rewards."""
        return self.base + self.written + self.score_slack(computed)

    def reward_slack(self, computed: Numbers) -> np.ndarray:
        """float64 [R] the largest change by rounding of the rewards. Rewards that are
        equal as logged may have differed, so that a tiny deviation explains any number;
        but not of a row without siblings."""
        with np.errstate(all="ignore"):
            slack = self.moved / np.abs(computed.scale)
        is_alone = (self.steps.groups.size == 1)[self.steps.prompt]
        most = np.where(is_alone, tolerance.MOST_SCORES, np.inf)
        return np.where(np.isnan(slack), 0, np.minimum(slack, most))

    def fit(self, computed: Numbers) -> Fit:
        away = self._away(computed)
        level = np.where(self._all(away <= self.exact), EXACT, NONE)
        near = self.steps.total(away <= NEAR * self.size)
        written, rewards = self.base + self.written, self.reward_slack(computed)
        possible = self._all(away <= written + tolerance.MOST_SCORES + rewards)
        if possible.any() and (level == NONE).any():
            scores = self.score_slack(computed)
            written = written + scores
            limits = self.exact + scores, written, written + rewards
            for each, limit in zip((SCORES, WRITTEN, REWARDS), limits):
                fits = self._all(away <= limit)
                level = np.minimum(level, np.where(fits, each, NONE))
        near = near / self.steps.batch.rows_per_step.numpy()
        fitting = self.steps.total(away <= written)
        worst, slack = self.steps.worst(away), self.steps.worst(rewards)
        return Fit(level, worst, near, fitting, slack)

    def beyond(self, computed: Numbers) -> np.ndarray:
        """float64 [S] how many times further than rounding allows the worst row of each
        step is."""
        away = self._away(computed)
        limit = self.limit(computed) + self.reward_slack(computed)
        times = np.divide(
            away, limit, out=np.zeros_like(away), where=np.isfinite(limit)
        )
        return self.steps.worst(times)

    def out_of_reach(self, computed: Numbers, whitened: bool) -> np.ndarray:
        """bool [S]: a row of the step is so far that no usual eps brings it near. False
        for every step if no eps is added. `whitened`: a second normalization
        follows, which spreads what eps moves over the step."""
        if computed.spread is None:
            return np.zeros(self.steps.step_count, dtype=bool)
        with np.errstate(all="ignore"):
            share = tolerance.MOST_EPS / computed.spread
            share = np.maximum(share, tolerance.MOST_INSIDE / (2 * computed.spread**2))
        share = np.where(np.isnan(share), 0, share)
        if whitened:
            share = 3 * self.steps.worst(share)[self.steps.step_of]
        limit = self.limit(computed) + self.reward_slack(computed)
        limit += share * self.size
        return ~self._all(self._away(computed) <= limit)

    def of_steps(self, at: np.ndarray) -> Self:
        """The ruler on the steps `at`, bool [S]."""
        if at.all():
            return self
        rows = self.steps.rows_of(at)
        ignored = None if self.ignored is None else self.ignored[rows]
        return replace(self, steps=self.steps.of_steps(at), ignored=ignored)

    def _away(self, computed: Numbers) -> np.ndarray:
        """float64 [R] how far each row is from the log; 0 if it is ignored."""
        away = distance(computed.values, self.steps.advantage)
        return away if self.ignored is None else np.where(self.ignored, 0, away)

    def _all(self, near: np.ndarray) -> np.ndarray:
        return np.logical_and.reduceat(near, self.steps.starts)


def distance(values: np.ndarray, logged: np.ndarray) -> np.ndarray:
    """|values - logged|; 0 if both are not finite, inf if exactly one is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(values - logged)
    odd = ~np.isfinite(away)
    if odd.any():
        same = np.isfinite(values[odd]) == np.isfinite(logged[odd])
        away[odd] = np.where(same, 0.0, np.inf)
    return away


def ruler_of(
    steps: LoggedSteps, kinds: Mapping[str, str], places: int | None = None
) -> Ruler:
    """The ruler of a log: `kinds` are the types of its columns, `places` the
    decimals that advantages were rounded to."""
    if places is None:
        advantage = rounding_of(steps.advantage, kinds.get("advantage", ""))
    else:
        advantage = Rounding.to(places)
    quarters = steps.reward * 64
    if (quarters == np.round(quarters)).all():
        return Ruler(steps, advantage)  # quarters and the like: nobody rounded them
    return Ruler(steps, advantage, rounding_of(steps.reward, kinds.get("reward", "")))
