"""The space: every computation of advantages that somebody uses on purpose.

Letters: R rows, S steps, G groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.fit import Numbers
from gradebook.logs.judging.reading import Reading

EPS = (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 1e-10, 0.0)
"""What is added to a deviation, the usual one first."""

Choice = tuple[float, str]
"""An eps and its place."""

EPS_PLACES: tuple[Choice, ...] = (
    *((eps, "after") for eps in EPS),
    *((eps, "inside") for eps in (1e-8, 1e-6, 1e-5, 1e-4)),
    *((eps, "least") for eps in (1e-6, 1e-4, 1e-3)),
)

WHITENING_EPS = 1e-8
"""What is added to the variance of a second normalization."""

SECONDS = ("rows 0", "rows 1", "tokens 1", "tokens 0", "transitions 0", "rows/eps 1")
"""A second normalization over the step: what is weighed, and ddof. With /eps
the reading's eps is added after the root."""

ROWS = ("flagged", "ended", "all")
"""Which rows count: scored rows with tokens, each rollout once; those of
them that ended; or all rows."""


class Sums:
    """Statistics of the rows that count, by group or by step, at each row."""

    def __init__(self, of: np.ndarray, counted: np.ndarray) -> None:
        self.of, self.counted = of, counted
        self.size = int(of.max(initial=-1)) + 1
        self.n = self.sum(np.ones(len(of)))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum of each row's set. [R]"""
        kept = np.where(self.counted, values, 0.0)
        return np.bincount(self.of, kept, self.size)[self.of]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Mean of each row's set, 0 for none. [R]"""
        return self.sum(values) / np.maximum(self.n, 1)

    def spread(
        self, values: np.ndarray, ddof: int, about: np.ndarray | None = None
    ) -> np.ndarray:
        """Standard deviation of each row's set, about its mean or `about`; 1
        where one row has none (ddof 1). [R]"""
        center = self.mean(values) if about is None else about
        square = self.sum((values - center) ** 2)
        spread = np.sqrt(square / np.maximum(self.n - ddof, 1))
        return np.where(self.n <= ddof, 1.0, spread) if ddof else spread

    def weighted(
        self, values: np.ndarray, weight: np.ndarray, ddof: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each row's set, each row as often as it weighs. [R]"""
        total = np.maximum(self.sum(weight), 1e-300)
        mean = self.sum(weight * values) / total
        square = self.sum(weight * (values - mean) ** 2)
        return mean, square / np.maximum(total - ddof, 1)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Largest value of each row's set, -inf for none. [R]"""
        most = np.full(self.size, -np.inf)
        np.maximum.at(most, self.of[self.counted], values[self.counted])
        return most[self.of]


@dataclass(frozen=True, eq=False)
class Computed(Numbers):
    """What a reading gives."""

    reading: Reading


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of whole steps under one grouping, as readings see them."""

    steps: LoggedSteps
    rows: str = "flagged"
    grouping: str = "prompt"
    group: np.ndarray | None = None
    clip: float | None = None
    choices: tuple[Choice, ...] = EPS_PLACES

    @cached_property
    def score(self) -> np.ndarray:
        """float64 [R]"""
        reward = self.steps.batch.reward.numpy().astype("float64")
        return reward if self.clip is None else reward.clip(-self.clip, self.clip)

    @cached_property
    def credited(self) -> np.ndarray:
        """bool [R] the row may earn an advantage."""
        b = self.steps.batch
        if self.rows == "all":
            return np.ones(self.steps.rows, dtype=bool)
        earns = (b.tokens > 0) & b.scored
        if self.rows == "ended":
            earns &= b.eos
        return earns.numpy()

    @cached_property
    def vote(self) -> np.ndarray:
        """int64 [R] the row that speaks for the row's rollout."""
        own = np.arange(self.steps.rows)
        if self.rows == "all":
            return own
        rollout = self.steps.batch.rollout_index.numpy()
        first = np.full(int(rollout.max(initial=0)) + 1, len(own))
        np.minimum.at(first, rollout[self.credited], own[self.credited])
        return np.where(self.credited, first[rollout], own)

    @cached_property
    def counted(self) -> np.ndarray:
        """bool [R] the row enters a statistic."""
        return self.credited & (self.vote == np.arange(self.steps.rows))

    @cached_property
    def groups(self) -> Sums:
        """Statistics by group."""
        of = self.steps.batch.prompt_index.numpy() if self.group is None else self.group
        return Sums(of, self.counted)

    @cached_property
    def batch(self) -> Sums:
        """Statistics by step."""
        return Sums(self.steps.step_of, self.counted)

    @cached_property
    def tokens(self) -> np.ndarray:
        """float64 [R]"""
        b = self.steps.batch
        tokens = b.all_tokens if self.rows == "all" else b.tokens
        return tokens.numpy().astype("float64")

    @cached_property
    def seconds(self) -> dict[str, np.ndarray]:
        """The second normalizations that the log's columns allow, each with what
        a row weighs in it, float64 [R]."""
        has = self.steps.has
        weights = {"rows": np.ones(self.steps.rows)}
        if "length" in has:
            weights["tokens"] = self.tokens
        if {"steps", "kept_steps"} & has:
            weights["transitions"] = self.steps.batch.kept_steps.numpy().astype(float)
        over = {s: s.split(" ")[0].removesuffix("/eps") for s in SECONDS}
        return {s: weights[name] for s, name in over.items() if name in weights}

    def others(self, sums: Sums) -> np.ndarray:
        """How many rows of its set a row is compared with. [R]"""
        return sums.n - sums.counted[self.vote]

    def others_mean(self, sums: Sums) -> np.ndarray:
        """Mean of the other rows of the set, 0 for none. [R]"""
        own = np.where(sums.counted[self.vote], self.score[self.vote], 0)
        return (sums.sum(self.score) - own) / np.maximum(self.others(sums), 1)

    def baseline(self, name: str, lone_row: str) -> np.ndarray:
        """What the score is compared with. float64 [R]"""
        x, groups = self.score, self.groups
        alone = np.zeros_like(x) if lone_row == "raw" else x
        if name == "none":
            return np.zeros_like(x)
        if name == "batch_mean":
            return self.batch.mean(x)
        if name == "batch_others":
            return self.others_mean(self.batch)
        if name == "batch_tokens":
            weight = self.batch.sum(self.tokens)
            total = self.batch.sum(self.tokens * x)
            return total / np.where(weight > 0, weight, 1)
        if name == "leave_one_out":
            few = self.others(groups) < 1
            return np.where(few, alone, self.others_mean(groups))
        if name == "second_best":
            return self._second_best()
        if name == "length_weighted_mean":
            weight = groups.sum(self.tokens)
            mean = groups.sum(self.tokens * x) / np.where(weight > 0, weight, 1)
        else:
            mean = groups.mean(x)
        return np.where(groups.n <= 1, alone, mean)

    def _second_best(self) -> np.ndarray:
        x, groups = self.score, self.groups
        best = groups.largest(x)
        top = self.counted & (x == best)
        next_best = groups.largest(np.where(top, -np.inf, x))
        tied = groups.sum(top.astype(float)) > 1
        wins = top & (groups.n > 1)
        return np.where(wins, np.where(tied, best, next_best), x)

    def spread(
        self, name: str, ddof: int, about: str, baseline: np.ndarray
    ) -> np.ndarray:
        """A standard deviation without eps. float64 [R]"""
        x = self.score
        center = baseline if about == "baseline" else None
        if name == "group_std":
            return self.groups.spread(x, ddof, center)
        if name == "batch_std":
            return self.batch.spread(x, ddof, center)
        if name == "advantage_std":
            return self.batch.spread(x - baseline, ddof)
        rest = self.others(self.groups)
        own = self.score[self.vote]
        away = own - self.groups.mean(x)
        n = np.maximum(self.groups.n, 2)
        square = self.groups.sum((x - self.groups.mean(x)) ** 2)
        left = np.maximum(square - away * away * n / (n - 1), 0)
        left[left <= 1e-12 * np.maximum(square, x * x)] = 0
        spread = np.sqrt(left / np.maximum(rest - ddof, 1))
        return np.where((rest >= 2) & (spread > 1e-8), spread, np.nan)

    def divisor(self, r: Reading, baseline: np.ndarray) -> np.ndarray:
        """What divides the first normalization, without eps; NaN where nothing
        does. float64 [R]"""
        x = self.score
        if r.scale == "none":
            return np.ones_like(x)
        if r.scale == "nonzero_share":
            share = self.batch.mean((x != 0).astype(float))
            return np.maximum(share, 1 / np.maximum(self.batch.n, 1))
        if r.scale == "group_mean":
            return self.groups.mean(x)
        spread = self.spread(r.scale, r.ddof, r.about, baseline)
        if r.lone_row == "raw":
            # A lone row that keeps its reward as it is: no trainer's rule divides
            # it by eps alone, a cut by position does.
            spread = np.where(self.groups.n <= 1, np.nan, spread)
        return spread

    def compute(self, r: Reading) -> Computed:
        """The advantages of a reading."""
        baseline = self.baseline(r.baseline, r.lone_row)
        return self.divided(r, baseline, self.divisor(r, baseline))

    def divided(
        self, r: Reading, baseline: np.ndarray, divisor: np.ndarray
    ) -> Computed:
        """The advantages of a reading over its divisor, with its eps."""
        if r.adds_eps:
            if r.eps_at == "inside":
                divisor = np.sqrt(divisor * divisor + r.eps)
            elif r.eps_at == "least":
                divisor = np.maximum(divisor, r.eps)
            else:
                divisor = divisor + r.eps
            divisor = np.nan_to_num(divisor, nan=1.0)
        return self.finished(r, baseline, divisor)

    def finished(self, r: Reading, baseline: np.ndarray, scale: np.ndarray) -> Computed:
        """The advantages of a baseline and a scale."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            away = self.score - baseline
            values = np.where(away == 0, 0, away / scale)
            values = np.where(self.credited, values, 0)
            if r.second:
                values, more = self._again(values, r)
                scale = scale * more
        lost = self.steps.batch.kept_steps.numpy() <= 0
        values = np.where(lost, np.nan, values) if lost.any() else values
        return Computed(values, baseline, scale, r)

    def _again(self, values: np.ndarray, r: Reading) -> tuple[np.ndarray, np.ndarray]:
        """Values normalized once more over the step, and the divisor."""
        steps = Sums(self.steps.step_of, self.credited)
        mean, variance = steps.weighted(
            values, self.seconds[r.second], int(r.second[-1])
        )
        after = "/eps" in r.second
        more = np.sqrt(variance + (0 if after else WHITENING_EPS))
        more = more + (r.eps if after else 0)
        return np.where(self.credited, (values - mean) / more, 0), more


BASELINES = (
    "group_mean",
    "leave_one_out",
    "batch_mean",
    "none",
    "second_best",
    "length_weighted_mean",
    "batch_others",
    "batch_tokens",
)
SCALES = (
    "group_std",
    "none",
    "batch_std",
    "others_std",
    "advantage_std",
    "nonzero_share",
    "group_mean",
)
WHOLE_STD = ("group_std", "batch_std")
"""Deviations that may be measured from the baseline."""
Wanted = Callable[[Reading], bool]
"""What was declared, as a question to a reading."""


def anything(reading: Reading) -> bool:
    """Nothing was declared."""
    return True


def families(rows: Rows, only: Wanted = anything) -> Iterator[list[Computed]]:
    """Every baseline over every scale: the advantages with each eps in each
    place, the usual one first."""
    by_length = ("length_weighted_mean", "batch_tokens")
    alone = ("group_mean", "leave_one_out", "length_weighted_mean")
    lone = bool((rows.groups.n <= 1).any())
    view: dict[str, Any] = {
        "rows": rows.rows,
        "grouping": rows.grouping,
        "clip": rows.clip,
    }
    for name in BASELINES:
        if name in by_length and "length" not in rows.steps.has:
            continue
        means = name not in ("group_mean", "second_best")
        details: list[dict[str, Any]] = [
            {"scale": scale, "about": about, "ddof": ddof}
            for scale in SCALES
            for about in ("mean", "baseline")[: 1 + (means and scale in WHOLE_STD)]
            for ddof in ((1, 0) if scale.endswith("_std") else (1,))
        ]
        for lone_row in ("zero", "raw") if lone and name in alone else ("",):
            baseline = rows.baseline(name, lone_row)
            for detail in details:
                reading = Reading(name, lone_row=lone_row, **detail, **view)
                if only(reading):
                    divisor = rows.divisor(reading, baseline)
                    choices = rows.choices if reading.adds_eps else ((0.0, "after"),)
                    with_eps = [replace(reading, eps=e, eps_at=p) for e, p in choices]
                    yield [rows.divided(r, baseline, divisor) for r in with_eps]


def again(first: Computed, rows: Rows, second: str) -> Computed:
    """A reading normalized once more."""
    reading = replace(first.reading, second=second)
    return rows.finished(reading, first.baseline, first.scale)
