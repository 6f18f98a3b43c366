"""Training runs as pictures (SVG) and as CSV. Numbers in, text out.

The pictures are drawn again with every frame, so they are plain SVG: nothing
is loaded for them, and what the page shows is the file that is saved.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gradebook.output.figures.base import CORRECT, FAULTY
from gradebook.output.rendering import rendered

WIDTH, NARROW, HEIGHT = 560, 480, 330
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 30, 46
MARKED = 25
"""Updates from one mark on a mean to the next."""


@dataclass(frozen=True)
class Curves:
    """The policies' measure over the updates.

    names   of the runs: correct, faulty, and a third one where there is one
    seeds   for each run a list for each seed
    reach   the lowest and the highest value of the axis
    last    the last update of a whole run
    """

    title: str
    axis: str
    names: Sequence[str]
    updates: Sequence[int]
    seeds: Sequence[Sequence[Sequence[float]]]
    reach: tuple[float, float]
    last: int


@dataclass(frozen=True)
class Dose:
    """The paired difference at each setting tried.

    points  (slider value, difference, half-width of its interval)
    reach   the slider's lowest and highest value
    at      the value that stands on the slider
    """

    title: str
    axis: str
    across: str
    points: Sequence[tuple[float, float, float]]
    reach: tuple[float, float]
    at: float


STROKES = ((CORRECT, ""), (FAULTY, "7 4"), ("currentColor", "2 4"))
"""Colour and dashes of each run's line."""


def curves_svg(picture: Curves, alone: str = "") -> str:
    """Thin lines for seeds, thick ones for means: the correct one solid
    with filled circles, the faulty one dashed with open diamonds, a third
    one dotted in ink with open squares.

    alone  the title of the picture as a file of its own, dark ink on white
    """
    scale = _Scale((0, picture.last), picture.reach)
    runs = []
    at: float = LEFT + 10
    for name, seeds, stroke in zip(picture.names, picture.seeds, STROKES):
        means = [_mean(values) for values in zip(*seeds)]
        marked = [
            (scale.x(update), scale.y(value))
            for update, value in zip(picture.updates, means)
            if update % MARKED == 0 and math.isfinite(value)
        ]
        runs.append(
            {
                "name": name,
                "at": at,
                "stroke": stroke,
                "seeds": [scale.path(picture.updates, one) for one in seeds],
                "mean": scale.path(picture.updates, means),
                "marks": marked,
            }
        )
        at += 40 + 8 * len(name)
    return _drawn(picture, scale, "updates", alone, runs=runs)


def dose_svg(picture: Dose) -> str:
    """The difference at each setting tried, with its interval; the setting
    that stands on the slider is filled."""
    ends = [
        value
        for _, size, half in picture.points
        for value in (size - half, size + half)
        if math.isfinite(value)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.08 * (high - low) or 1.0
    scale = _Scale(picture.reach, (low - room, high + room), NARROW)
    points = []
    for value, size, half in sorted(picture.points):
        if math.isfinite(size):
            known = math.isfinite(half)
            points.append(
                (
                    scale.x(value),
                    scale.y(size),
                    scale.y(size - half) if known else None,
                    scale.y(size + half) if known else None,
                    math.isclose(value, picture.at, abs_tol=1e-9),
                )
            )
    zero = scale.y(0)
    return _drawn(picture, scale, picture.across, zero=zero, points=points)


def _drawn(
    picture: Curves | Dose,
    scale: _Scale,
    below: str,
    alone: str = "",
    **drawn: Any,
) -> str:
    """The picture on its axes, whose titles and numbers have words."""
    return rendered(
        "curves.svg.jinja",
        picture=picture,
        alone=alone,
        width=scale.right + RIGHT,
        height=HEIGHT,
        left=LEFT,
        right=scale.right,
        foot=HEIGHT - BOTTOM,
        below=below,
        up=[(scale.y(v), _number(v)) for v in ticks(*scale.up)],
        across=[(scale.x(v), _number(v)) for v in ticks(*scale.across)],
        **{"runs": (), **drawn},
    )


def curves_csv(
    frames: Iterable[tuple[int, Mapping[str, Sequence[Sequence[float]]]]],
    names: Sequence[str],
) -> str:
    """One line for each update, measure, engine and seed.

    frames  (update, measure -> values [engine][seed])
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["update", "measure", "engine", "seed", "value"])
    for update, values in frames:
        for measure, engines in values.items():
            for name, seeds in zip(names, engines):
                for seed, value in enumerate(seeds):
                    writer.writerow([update, measure, name, seed, value])
    return text.getvalue()


class _Scale:
    """Data to pixels."""

    def __init__(
        self,
        across: tuple[float, float],
        up: tuple[float, float],
        width: int = WIDTH,
    ) -> None:
        self.across, self.up, self.right = across, up, width - RIGHT

    def x(self, value: float) -> float:
        low, high = self.across
        share = (value - low) / ((high - low) or 1)
        return LEFT + share * (self.right - LEFT)

    def y(self, value: float) -> float:
        low, high = self.up
        share = (value - low) / ((high - low) or 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """A line through the finite points; it breaks at the others."""
        steps, pen = [], "M"
        for x, y in zip(xs, ys):
            if not math.isfinite(y):
                pen = "M"
                continue
            steps.append(f"{pen}{self.x(x):.1f} {self.y(y):.1f}")
            pen = "L"
        return "".join(steps)


def ticks(low: float, high: float) -> list[float]:
    """Four to nine round numbers from `low` to `high`."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    for factor in (5, 2):
        if (high - low) / (step * factor) >= 4:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 10) for n in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _mean(values: Sequence[float]) -> float:
    """Over the seeds that have not diverged; NaN where none is left."""
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan
