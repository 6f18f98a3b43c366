"""Screen: which candidates cannot give any step of the log.

A step fits only if all its rows do. So three rows of each step are compared
first, for every eps at once: those with the largest and the smallest logged
advantage, and the one nearest to their middle. Letters: E values of eps,
S steps.
"""

from __future__ import annotations

import numpy as np

from gradebook.logs.judging.fit import Ruler
from gradebook.logs.judging.space import (
    WHITENING_EPS,
    Choice,
    Rows,
    Shape,
    Sums,
)

ROOM, LEAST_ROOM = 4, 2e-3
"""A step's mean and deviation may be off by so many times what a row may."""

LEAST_DIVISOR = WHITENING_EPS**0.5 / 2
"""No second normalization divides by less."""


class Screen:
    """Compares candidates on some rows with the log at three rows a step."""

    @np.errstate(all="ignore")
    def __init__(self, ruler: Ruler, rows: Rows, usable: np.ndarray) -> None:
        steps, logged = ruler.steps, ruler.steps.advantage
        shown = np.isfinite(logged) & rows.credited
        if ruler.ignored is not None:
            shown &= ~ruler.ignored
        seen = usable & (steps.total(shown) > 0)
        self.sees_nothing = not seen.any()

        def farthest(values: np.ndarray) -> np.ndarray:
            """The row of each step where these are largest. [S]"""
            values = np.where(shown, values, -np.inf)
            return steps.first_at(values, steps.worst(values))

        high, low = farthest(logged), farthest(-logged)
        middle = (logged[high] + logged[low])[steps.step_of] / 2
        third = farthest(-np.abs(logged - middle))
        self.at = np.array([high, low, third])[:, seen]  # [3, S]
        self.ruler, self.rows = ruler, rows
        self.logged = logged[self.at]
        sums = Sums(steps.step_of, rows.credited)
        self.moments = {}  # mean and deviation of the logged advantages, [S]
        for second, weight in rows.seconds.items():
            values = np.where(shown, logged, 0)
            mean, variance = sums.weighted(values, weight, int(second[-1]))
            self.moments[second] = mean[self.at[0]], np.sqrt(variance)[self.at[0]]
        self.complete = (steps.total(shown != rows.credited) == 0)[seen]

    @np.errstate(all="ignore")
    def firsts(self, shape: Shape) -> list[Choice]:
        """Each eps under which the shape may give some step."""
        values, scale = self._values(shape)
        away = np.abs(values - self.logged)
        near = (away <= self._allowed(shape, scale)).all(axis=1).any(axis=1)
        return self._chosen(shape, near)

    @np.errstate(all="ignore")
    def seconds(self, shape: Shape) -> list[tuple[str, Choice]]:
        """Each second normalization and eps under which the shape may give some
        step: whatever is subtracted from all values and divides them, the
        third row keeps its place between the two others, and the step's mean
        is 0 and its deviation 1."""
        values, scale = self._values(shape)
        high, low, third = np.moveaxis(values, 1, 0)
        most, least, middle = self.logged
        width, logged_width = np.abs(high - low), most - least
        divisor = width / logged_width
        allowed = self._allowed(shape, scale * divisor[:, None])
        moved = (middle - least) * (high - low) - (third - low) * logged_width
        in_place = np.abs(moved) <= allowed.sum(axis=1) * width + 1e-12
        in_place &= (divisor > LEAST_DIVISOR) | (width == logged_width)
        slack = ROOM * allowed.max(axis=1) + LEAST_ROOM
        by_eps = np.array([[eps] for eps, _ in shape.choices]) / divisor
        chosen = []
        for second, (mean, spread) in self.moments.items():
            short = by_eps if "/eps" in second else WHITENING_EPS / divisor**2
            normal = np.abs(mean) <= slack
            normal &= spread <= 1 + slack
            normal &= spread >= 1 - slack - np.nan_to_num(short, nan=1)
            near = (in_place & (normal | ~self.complete)).any(axis=1)
            chosen += [(second, choice) for choice in self._chosen(shape, near)]
        return chosen

    def _chosen(self, shape: Shape, near: np.ndarray) -> list[Choice]:
        return [c for c, ok in zip(shape.choices, near) if ok or self.sees_nothing]

    def _values(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """What the shape gives with each eps, and its divisors. [E, 3, S]"""
        away = (self.rows.score - shape.baseline)[self.at]
        scale = shape.scales(self.at)
        values = np.where(away == 0, 0, away / scale)
        return np.where(self.rows.credited[self.at], values, 0), scale

    def _allowed(self, shape: Shape, scale: np.ndarray) -> np.ndarray:
        return self.ruler.allowed(shape.baseline[self.at], scale, self.at)
