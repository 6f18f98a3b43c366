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
from html import escape
from statistics import fmean

from gradebook.output.figures.base import CORRECT, FAULTY

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


def curves_svg(picture: Curves) -> str:
    """Thin lines for seeds, thick ones for means: the correct one solid
    with filled circles, the faulty one dashed with open diamonds, a third
    one dotted in ink with open squares."""
    scale = _Scale((0, picture.last), picture.reach)
    parts = [_frame(scale, picture.axis, "updates")]
    for seeds, (colour, _) in zip(picture.seeds, STROKES):
        for values in seeds:
            line = scale.path(picture.updates, values)
            parts.append(_line(line, colour, 1, opacity=0.22))
    named = zip(picture.names, picture.seeds, STROKES)
    x: float = LEFT + 10
    for at, (name, seeds, (colour, dash)) in enumerate(named):
        means = [_mean(values) for values in zip(*seeds)]
        line = scale.path(picture.updates, means)
        parts.append(_line(line, colour, 3, dash))
        marked = [
            (update, value)
            for update, value in zip(picture.updates, means)
            if update % MARKED == 0 and math.isfinite(value)
        ]
        for update, value in marked:
            parts.append(_mark(at, scale.x(update), scale.y(value)))
        parts += [_mark(at, x, 14), _text(x + 12, 18, name)]
        x += 40 + 8 * len(name)
    return _svg(parts, picture.title)


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
    parts = [_frame(scale, picture.axis, picture.across)]
    parts.append(
        f'<line x1="{LEFT}" x2="{scale.right}" y1="{scale.y(0):.1f}"'
        f' y2="{scale.y(0):.1f}" stroke="currentColor" stroke-width="1.5"/>'
    )
    for value, size, half in sorted(picture.points):
        if not math.isfinite(size):
            continue
        x, y = scale.x(value), scale.y(size)
        if math.isfinite(half):
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}"'
                f' y1="{scale.y(size - half):.1f}"'
                f' y2="{scale.y(size + half):.1f}"'
                ' stroke="currentColor" stroke-width="2"/>'
            )
        here = math.isclose(value, picture.at, abs_tol=1e-9)
        fill = "currentColor" if here else "none"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{6 if here else 4}"'
            f' fill="{fill}" stroke="currentColor" stroke-width="2"/>'
        )
    return _svg(parts, picture.title, NARROW)


def saved(svg: str, title: str) -> str:
    """The picture as a file of its own: dark ink on white, with its title
    above it."""
    tall = HEIGHT + 34
    inner = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}"'
        f' height="{tall}" viewBox="0 0 {WIDTH} {tall}" color="#222222"'
        ' font-family="sans-serif">'
        f'<rect width="{WIDTH}" height="{tall}" fill="#FFFFFF"/>'
        f'<text x="{LEFT}" y="22" font-size="15" fill="currentColor"'
        f' font-weight="600">{escape(title)}</text>'
        f'<g transform="translate(0 34)">{inner}</g></svg>\n'
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


def _frame(scale: _Scale, up: str, across: str) -> str:
    """Grid, numbers and titles of both axes."""
    parts = []
    for value in ticks(*scale.up):
        y = scale.y(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{scale.right}" y1="{y:.1f}"'
            f' y2="{y:.1f}" stroke="currentColor" opacity="0.15"/>'
        )
        parts.append(_text(LEFT - 8, y + 5, _number(value), "end"))
    foot = HEIGHT - BOTTOM
    for value in ticks(*scale.across):
        x = scale.x(value)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{foot}" y2="{foot + 5}"'
            ' stroke="currentColor" opacity="0.5"/>'
        )
        parts.append(_text(x, foot + 20, _number(value), "middle"))
    middle = (LEFT + scale.right) / 2
    parts.append(_text(middle, HEIGHT - 6, across, "middle"))
    parts.append(_text(scale.right, 18, up, "end"))
    return "".join(parts)


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


def _line(
    path: str, colour: str, width: float, dash: str = "", opacity: float = 1
) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}"'
        f' stroke-width="{width}" stroke-linejoin="round"'
        f' stroke-dasharray="{dash}" opacity="{opacity}"/>'
    )


def _mark(engine: int, x: float, y: float) -> str:
    """A filled circle for the correct run, an open diamond for the faulty
    one, an open square for a third."""
    if engine == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{CORRECT}"/>'
    if engine == 2:
        return (
            f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"'
            ' fill="none" stroke="currentColor" stroke-width="2"/>'
        )
    return (
        f'<path d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z" fill="none"'
        f' stroke="{FAULTY}" stroke-width="2.2"/>'
    )


def _text(x: float, y: float, said: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        f' font-size="13" fill="currentColor">{escape(said)}</text>'
    )


def _svg(parts: Sequence[str], label: str, width: int = WIDTH) -> str:
    style = "width:100%;max-width:60rem;height:auto;display:block"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img"'
        f' aria-label="{escape(label)}" viewBox="0 0 {width} {HEIGHT}"'
        f' style="{style}">{"".join(parts)}</svg>'
    )
