"""The space: every computation of advantages that somebody uses on purpose.

Letters: R rows, S steps, G groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.reading import Reading

EPS = (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 1e-10, 0.0)
"""What is added to a deviation, the usual one first."""

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
class Computed:
    """What a reading gives.

    values    float64 [R] the advantages
    baseline  float64 [R] what the reward was compared with
    scale     float64 [R] what the distance was divided by, in all
    """

    reading: Reading
    values: np.ndarray
    baseline: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of whole steps under one grouping, as readings see them."""

    steps: LoggedSteps
    rows: str = "flagged"
    grouping: str = "prompt"
    group: np.ndarray | None = None
    clip: float | None = None

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
        return self.steps.batch.tokens.numpy().astype("float64")

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

    def scale(self, r: Reading, baseline: np.ndarray) -> np.ndarray:
        """The divisor of the first normalization. float64 [R]"""
        x = self.score
        if r.scale == "none":
            return np.ones_like(x)
        if r.scale == "nonzero_share":
            share = self.batch.mean((x != 0).astype(float))
            return np.maximum(share, 1 / np.maximum(self.batch.n, 1))
        if r.scale == "group_mean":
            return _with_eps(self.groups.mean(x), r.eps, r.eps_at)
        spread = self.spread(r.scale, r.ddof, r.about, baseline)
        scale = _with_eps(self.undivided(spread, r.lone_row), r.eps, r.eps_at)
        return np.where(np.isnan(scale), 1.0, scale)

    def undivided(self, spread: np.ndarray, lone_row: str) -> np.ndarray:
        """The deviation, NaN for a lone row that keeps its reward as it is: no
        trainer's rule divides it by eps alone, a cut by position does."""
        if lone_row != "raw":
            return spread
        return np.where(self.groups.n <= 1, np.nan, spread)

    def compute(self, r: Reading) -> Computed:
        """The advantages of a reading."""
        baseline = self.baseline(r.baseline, r.lone_row)
        scale = self.scale(r, baseline)
        return self.finished(r, baseline, scale)

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
        return Computed(r, values, baseline, scale)

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


def _with_eps(spread: np.ndarray, eps: float, eps_at: str) -> np.ndarray:
    if eps_at == "inside":
        return np.sqrt(spread * spread + eps)
    if eps_at == "least":
        return np.maximum(spread, eps)
    return spread + eps


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
EPS_PLACES = (
    *((eps, "after") for eps in EPS),
    *((eps, "inside") for eps in (1e-8, 1e-6, 1e-5, 1e-4)),
    *((eps, "least") for eps in (1e-6, 1e-4, 1e-3)),
)

Choice = tuple[float, str]
"""An eps and its place."""

Wanted = Callable[[Reading], bool]
"""What was declared, as a question to a reading."""


def anything(reading: Reading) -> bool:
    """Nothing was declared."""
    return True


@dataclass(frozen=True, eq=False)
class Shape:
    """A computation but for eps: its reading, what the reward is compared
    with, and the deviation that divides it. Where eps takes no part, `spread`
    is None and `scale` the divisor."""

    rows: Rows
    reading: Reading
    baseline: np.ndarray
    spread: np.ndarray | None
    scale: np.ndarray

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every eps and its place, [E]."""
        return EPS_PLACES if self.spread is not None else ((0.0, ""),)

    def scales(self, at: np.ndarray) -> np.ndarray:
        """The divisors of some rows with each eps. float64 [E, ...]"""
        if self.spread is None:
            return self.scale[at][None]
        spread = self.spread[at]
        return np.nan_to_num([_with_eps(spread, *c) for c in self.choices], nan=1.0)

    def computed(self, eps: float, eps_at: str) -> Computed:
        """The advantages with an eps."""
        if self.spread is None:
            return self.rows.finished(self.reading, self.baseline, self.scale)
        reading = replace(self.reading, eps=eps, eps_at=eps_at)
        scale = np.nan_to_num(_with_eps(self.spread, eps, eps_at), nan=1.0)
        return self.rows.finished(reading, self.baseline, scale)

    def with_each_eps(self) -> Iterator[Computed]:
        """The advantages with every eps in every place."""
        for choice in self.choices:
            yield self.computed(*choice)


def shapes(rows: Rows) -> Iterator[Shape]:
    """Every baseline over every scale."""
    by_length = ("length_weighted_mean", "batch_tokens")
    alone = ("group_mean", "leave_one_out", "length_weighted_mean")
    lone = bool((rows.groups.n <= 1).any())
    for name in BASELINES:
        if name in by_length and "length" not in rows.steps.has:
            continue
        for lone_row in ("zero", "raw") if lone and name in alone else ("",):
            baseline = rows.baseline(name, lone_row)
            first = Reading(name, "none", lone_row=lone_row)
            first = replace(
                first, rows=rows.rows, grouping=rows.grouping, clip=rows.clip
            )
            for scale in SCALES:
                yield from _scaled(rows, replace(first, scale=scale), baseline)


def _scaled(rows: Rows, r: Reading, baseline: np.ndarray) -> Iterator[Shape]:
    """A baseline over one scale, with every ddof and center."""
    if r.scale in ("none", "nonzero_share"):
        yield Shape(rows, r, baseline, None, rows.scale(r, baseline))
        return
    if r.scale == "group_mean":
        mean = rows.groups.mean(rows.score)
        yield Shape(rows, r, baseline, mean, mean)
        return
    centers = r.scale in ("group_std", "batch_std") and r.baseline != "group_mean"
    for about in ("mean", "baseline") if centers else ("mean",):
        for ddof in (1, 0):
            spread = rows.spread(r.scale, ddof, about, baseline)
            spread = rows.undivided(spread, r.lone_row)
            yield Shape(
                rows, replace(r, ddof=ddof, about=about), baseline, spread, spread
            )


def again(first: Computed, rows: Rows, second: str) -> Computed:
    """A reading normalized once more."""
    reading = replace(first.reading, second=second)
    return rows.finished(reading, first.baseline, first.scale)


def rows_that_count(steps: LoggedSteps, declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of ROWS are different on these rows."""
    if "mask_no_eos" in declared:
        first = "ended" if declared["mask_no_eos"] else "flagged"
        return (first, "all") if not declared["mask_no_eos"] else (first,)
    names = ["flagged"]
    plain = Rows(steps)
    if not bool(steps.batch.eos.all()):
        names.append("ended")
    if not plain.counted.all():
        names.append("all")
    return tuple(names)
