"""The space: every computation of advantages that somebody uses on purpose, and
the rows of a log as it may see them.

Letters: R rows, S steps, G groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np

from gradebook.core.batch import codes
from gradebook.core.vocabulary import BASELINES, SCALES
from gradebook.logs.judging.fit import Numbers
from gradebook.logs.judging.reading import Reading
from gradebook.logs.logged_steps import LoggedSteps

EPS_PLACES = (
    *((eps, "after") for eps in (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 1e-10, 0.0)),
    *((eps, "inside") for eps in (1e-8, 1e-6, 1e-5, 1e-4)),
    *((eps, "least") for eps in (1e-6, 1e-4, 1e-3)),
)
"""What is added to a deviation, and its place, the usual one first."""

SECONDS = ("rows 0", "rows 1", "tokens 1", "tokens 0", "transitions 0", "rows/eps 1")
"""A second normalization over the step: what is weighed, and ddof. With /eps
the reading's eps is added after the root."""

COPIES = "by prompt, without the copies that fill a step"
"""A grouping that is no other, but of fewer rows."""

DRAWS = "by draw: equal prompts that stand together"
DRAWS_OF = "by draw, {} rows each"

OF_MEAN = ("group_std", "batch_std")
"""Deviations that somebody measures from another baseline than the mean."""


class Sums:
    """Statistics of sets of rows, at each row; a row counts as it weighs, [R]."""

    def __init__(self, of: np.ndarray, weight: np.ndarray) -> None:
        self.of, self.weight = of, weight.astype(float)
        self.size = int(of.max(initial=-1)) + 1
        self.n = self.sum(np.ones(len(of)))

    def sum(self, values: np.ndarray) -> np.ndarray:
        kept = np.where(self.weight > 0, values, 0.0) * self.weight
        return np.bincount(self.of, kept, self.size)[self.of]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """0 where none counts."""
        return self.sum(values) / np.maximum(self.n, 1)

    def variance(
        self, values: np.ndarray, ddof: int, about: np.ndarray | None = None
    ) -> np.ndarray:
        center = self.mean(values) if about is None else about
        return self.sum((values - center) ** 2) / np.maximum(self.n - ddof, 1)

    def spread(
        self, values: np.ndarray, ddof: int, about: np.ndarray | None = None
    ) -> np.ndarray:
        """The variance's root; 1 where one row has none (ddof 1)."""
        spread = np.sqrt(self.variance(values, ddof, about))
        return np.where(self.n <= ddof, 1.0, spread) if ddof else spread

    def largest(self, values: np.ndarray) -> np.ndarray:
        most, counted = np.full(self.size, -np.inf), self.weight > 0
        np.maximum.at(most, self.of[counted], values[counted])
        return most[self.of]


@dataclass(frozen=True, eq=False)
class Rows:
    """Whole steps as a reading like `view` sees them."""

    steps: LoggedSteps
    view: Reading = Reading("none", "none")
    _kept: dict[tuple, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def score(self) -> np.ndarray:
        reward, clip = self.steps.reward, self.view.clip
        return reward if clip is None else reward.clip(-clip, clip)

    @cached_property
    def credited(self) -> np.ndarray:
        """bool [R] the row may earn an advantage."""
        b = self.steps.batch
        if self.view.rows == "all":
            return np.ones(self.steps.rows, dtype=bool)
        earns = (b.tokens > 0) & b.scored
        return (earns & b.eos if self.view.rows == "ended" else earns).numpy()

    @cached_property
    def original(self) -> np.ndarray:
        """int64 [R] the row that the row is a copy of; itself for most."""
        if self.view.grouping == COPIES:
            return originals(self.steps)
        return np.arange(self.steps.rows)

    @cached_property
    def vote(self) -> np.ndarray:
        """int64 [R] the row that speaks for the row's rollout."""
        rows = np.arange(self.steps.rows)
        if self.view.rows == "all":
            return self.original
        rollout = self.steps.batch.rollout_index.numpy()
        first = np.full(int(rollout.max(initial=0)) + 1, len(rows))
        np.minimum.at(first, rollout[self.credited], rows[self.credited])
        return np.where(self.credited, first[rollout], rows)[self.original]

    @cached_property
    def counted(self) -> np.ndarray:
        """bool [R] the row enters a statistic."""
        return self.credited & (self.vote == np.arange(self.steps.rows))

    @cached_property
    def groups(self) -> Sums:
        return Sums(grouped(self.steps, self.view.grouping), self.counted)

    @cached_property
    def batch(self) -> Sums:
        return Sums(self.steps.step_of, self.counted)

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """What a second normalization may weigh in this log. float64 [R]"""
        b, has = self.steps.batch, self.steps.has
        tokens = b.all_tokens if self.view.rows == "all" else b.tokens
        weights = {"rows": np.ones(self.steps.rows)}
        if "length" in has:
            weights["tokens"] = tokens.numpy().astype("float64")
        if {"steps", "kept_steps"} & has:
            weights["transitions"] = b.kept_steps.numpy().astype("float64")
        return weights

    def _others(self, sums: Sums) -> tuple[np.ndarray, np.ndarray]:
        """How many rows of its set a row is compared with, and their mean, 0 for
        none. [R]"""
        has_own = self.counted[self.vote]
        its_score = np.where(has_own, self.score[self.vote], 0)
        n = sums.n - has_own
        return n, (sums.sum(self.score) - its_score) / np.maximum(n, 1)

    def baseline(self, r: Reading) -> np.ndarray:
        x, groups = self.score, self.groups
        alone = np.zeros_like(x) if r.lone_row == "raw" else x
        if r.baseline == "none":
            return np.zeros_like(x)
        if r.baseline == "batch_mean":
            return self.batch.mean(x)
        if r.baseline == "batch_others":
            return self._others(self.batch)[1]
        if r.baseline == "leave_one_out":
            n, mean = self._others(groups)
            return np.where(n < 1, alone, mean)
        if r.baseline == "second_best":
            top = (self.counted & (x == groups.largest(x)))[self.original]
            second = groups.largest(np.where(top, -np.inf, x))
            second = np.where(groups.sum(top) > 1, x, second)
            return np.where(top & (groups.n > 1), second, x)
        if r.baseline == "length_weighted_mean":
            by_token = Sums(groups.of, self.counted * self.weights.get("tokens", 1))
            return np.where(groups.n <= 1, alone, by_token.mean(x))
        return np.where(groups.n <= 1, alone, groups.mean(x))

    def divisor(self, r: Reading, baseline: np.ndarray) -> np.ndarray:
        """What divides the first normalization, without eps; NaN where nothing
        does. float64 [R]"""
        x = self.score
        center = baseline if r.about == "baseline" else None
        if r.scale == "none":
            return np.ones_like(x)
        if r.scale == "nonzero_share":
            return np.maximum(self.batch.mean(x != 0), 1 / np.maximum(self.batch.n, 1))
        if r.scale == "group_mean":
            return self.groups.mean(x)
        if r.scale in OF_MEAN:
            rows = self.groups if r.scale == "group_std" else self.batch
            spread = rows.spread(x, r.ddof, center)
        elif r.scale == "advantage_std":
            spread = self.batch.spread(x - baseline, r.ddof)
        else:
            spread = self._others_spread(r.ddof)
        if r.lone_row == "raw":
            # A lone row that keeps its reward as it is: no trainer's rule divides
            # it by eps alone, a cut by position does.
            spread = np.where(self.groups.n <= 1, np.nan, spread)
        return spread

    def _others_spread(self, ddof: int) -> np.ndarray:
        """Deviation of the other rows of the group, NaN for none. float64 [R]"""
        x, rest = self.score, self._others(self.groups)[0]
        mean, n = self.groups.mean(x), np.maximum(self.groups.n, 2)
        away = x[self.vote] - mean
        square = self.groups.sum((x - mean) ** 2)
        left = np.maximum(square - away * away * n / (n - 1), 0)
        left[left <= 1e-12 * np.maximum(square, x * x)] = 0
        spread = np.sqrt(left / np.maximum(rest - ddof, 1))
        return np.where((rest >= 2) & (spread > 1e-8), spread, np.nan)

    def compute(self, r: Reading) -> Numbers:
        shape = r.baseline, r.scale, r.ddof, r.about, r.lone_row
        if shape not in self._kept:
            self._kept.clear()
            baseline = self.baseline(r)
            self._kept[shape] = baseline, self.divisor(r, baseline)
        baseline, scale = self._kept[shape]
        if r.adds_eps:
            if r.eps_at == "inside":
                scale = np.sqrt(scale * scale + r.eps)
            elif r.eps_at == "least":
                scale = np.maximum(scale, r.eps)
            else:
                scale = scale + r.eps
            scale = np.where(np.isnan(scale), 1.0, scale)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            away = self.score - baseline
            values = np.where(away == 0, 0, away / scale)
            values = np.where(self.credited, values, 0)
            if r.second:
                kept = self.credited & (self.original == np.arange(self.steps.rows))
                steps = Sums(self.steps.step_of, kept * self.weights.get(r.over, 1))
                variance = steps.variance(values, int(r.second[-1]))
                if "/eps" in r.second:
                    more = np.sqrt(variance) + r.eps
                else:
                    more = np.sqrt(variance + 1e-8)
                values = (values - steps.mean(values)) / more
                values, scale = np.where(self.credited, values, 0), scale * more
        lost = self.steps.batch.kept_steps.numpy() <= 0
        values = np.where(lost, np.nan, values) if lost.any() else values
        return Numbers(values, baseline, scale)


def families(rows: Rows, eps: float | None = None) -> Iterator[Iterator[Reading]]:
    """Every baseline over every scale, once and normalized again: the readings
    with each eps in each place, the usual one first; `eps` also takes part."""
    choices = dict.fromkeys((*EPS_PLACES, (eps or 0.0, "after")))
    lone = bool((rows.groups.n <= 1).any())
    seconds = [s for s in SECONDS if s.startswith(tuple(rows.weights))]
    has_length = "length" in rows.steps.has
    firsts = [
        replace(
            rows.view,
            baseline=baseline,
            scale=scale,
            ddof=ddof,
            about=about,
            lone_row=lone_row,
        )
        for baseline, compared in BASELINES.items()
        if has_length or "length" not in compared.needs
        for lone_row in (
            ("zero", "raw") if lone and "lone_row" in compared.reads else ("",)
        )
        for scale, divisor in SCALES.items()
        for about in ("mean", "baseline")
        if about == "mean" or (compared.centers and "spread_about" in divisor.reads)
        for ddof in ((1, 0) if divisor.is_std else (1,))
    ]
    for first, second in product(firsts, ("", *seconds)):
        yield (
            replace(first, eps=eps, eps_at=place, second=second)
            for eps, place in (choices if first.adds_eps else ((0.0, "after"),))
        )


def groupings(steps: LoggedSteps) -> list[str]:
    """Names of the ways to group these rows, by prompt first: by draw, where a
    prompt was drawn twice, by text, and without copies."""
    drawn = np.bincount(grouped(steps, DRAWS))
    sizes = np.bincount(drawn).argmax(), np.gcd.reduce(drawn), drawn.min()
    names = ["by id and text", DRAWS, *(DRAWS_OF.format(n) for n in sizes if n > 1)]
    if (steps.groups.size == 1).all():
        # An id that names no row names prompts better than texts.
        names = ["by prompt text", *names]
    groups = {"by prompt": steps.prompt}
    for name in names:
        of = grouped(steps, name)
        if not any(np.array_equal(of, other) for other in groups.values()):
            groups[name] = of
    copied = (originals(steps) != np.arange(steps.rows)).any()
    return [*groups, COPIES] if copied else [*groups]


def grouped(steps: LoggedSteps, name: str) -> np.ndarray:
    """The rows' groups by a name of `groupings`. int64 [R]"""
    prompt, text = steps.prompt, steps.batch.text.numpy()
    if name == "by prompt text":
        return _pairs(steps.step_of, text)
    if name == "by id and text":
        return _pairs(prompt, text)
    if not name.startswith("by draw"):
        return prompt
    new = np.diff(prompt, prepend=-1) != 0
    run = np.cumsum(new) - 1
    if name == DRAWS:
        return run
    place = np.arange(len(run)) - np.flatnonzero(new)[run]
    return _pairs(run, place // int(name.split()[2]))


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers 0.. of the pairs, in order of appearance. int64 [R]"""
    return codes(first * (int(second.max(initial=0)) + 1) + second)


def originals(steps: LoggedSteps) -> np.ndarray:
    """The row that each row is a copy of, or itself: a step's end may repeat its
    first row, or its first rows in order. int64 [R]"""
    b = steps.batch
    columns = steps.prompt, steps.reward, b.tokens.numpy()
    cells = np.stack([*columns, steps.advantage], axis=1)
    original = np.arange(steps.rows)
    for start, rows in zip(steps.starts, np.split(cells, steps.starts[1:])):
        other = np.flatnonzero((rows != rows[0]).any(1))
        last = max(2, 1 + int(other.max(initial=0)))
        if last < len(rows):
            original[start + last : start + len(rows)] = start
            continue
        several = range(len(rows) // 2, 1, -1)
        n = next((n for n in several if (rows[-n:] == rows[:n]).all()), 0)
        original[start + len(rows) - n : start + len(rows)] = start + np.arange(n)
    return original
