"""Charts that open on demand: training curves, influence maps, a log by steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import (
    ABOVE,
    CORRECT,
    FAULTY,
    GREY,
    INK,
    NAMES,
    Figure,
    marks,
    note,
    rect,
    styled,
    symlog,
    symlog_ticks,
)

# Training runs: the curves, and the effect by setting


FRAMES = 20
"""Pictures from the start to the end of a run that plays."""


def curves_figure(
    updates: Sequence[int],
    seeds: Sequence[Sequence[Sequence[float]]],
    names: Sequence[str],
    *,
    axis: str,
    reach: tuple[float, float],
    ink: str,
) -> Figure:
    """Thin lines for seeds, thick ones for their means, with a button that
    plays the run: the correct one solid with circles, the faulty one dashed
    with open diamonds.

    seeds  [frames][E][S], NaN for a seed that diverged
    reach  the lowest and the highest value of the axis
    """
    every = max(1, (len(updates) - 1) // FRAMES)
    stops = [*range(every + 1, len(updates), every), len(updates)]
    figure = styled(
        _traces(updates, seeds, names, ink),
        ink,
        height=330,
        left=64,
        hovermode="x",
        legend=ABOVE,
        xaxis={"title": {"text": "updates"}, "range": [0, updates[-1]]},
        yaxis={"title": {"text": axis}, "range": _room(reach), "zeroline": False},
        updatemenus=[PLAY],
    )
    figure["frames"] = [
        {"data": _traces(updates[:stop], seeds[:stop], names, ink)} for stop in stops
    ]
    return figure


def dose_figure(
    points: Sequence[tuple[float, float, float]],
    *,
    axis: str,
    across: str,
    reach: tuple[float, float],
    setting: float,
    ink: str,
) -> Figure:
    """The paired difference at each setting that was trained, with its 95 %
    interval; `setting` is the filled one.

    points  (setting, difference, half-width of its interval)
    """
    points = sorted(point for point in points if math.isfinite(point[1]))
    current = [math.isclose(value, setting, abs_tol=1e-9) for value, _, _ in points]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [value for value, _, _ in points],
        "y": [size for _, size, _ in points],
        "error_y": {
            "type": "data",
            "array": [half if math.isfinite(half) else 0 for _, _, half in points],
            "color": ink,
        },
        "marker": {
            "size": 11,
            "symbol": ["circle" if now else "circle-open" for now in current],
            "color": ink,
        },
        "hovertemplate": "%{x:g}: %{y:+.3f}<extra></extra>",
    }
    return styled(
        [trace],
        ink,
        height=330,
        left=64,
        xaxis={"title": {"text": across}, "range": _room(reach)},
        yaxis={"title": {"text": axis}, "rangemode": "tozero"},
    )


def _traces(
    updates: Sequence[int],
    seeds: Sequence[Sequence[Sequence[float]]],
    names: Sequence[str],
    ink: str,
) -> list[dict[str, Any]]:
    """For each run one trace of all seeds and one of their mean."""
    styles = ((CORRECT, "solid", "circle"), (FAULTY, "dash", "diamond-open"))
    traces: list[dict[str, Any]] = []
    for engine, name in enumerate(names):
        colour, dash, symbol = styles[engine]
        values = [frame[engine] for frame in seeds]
        x: list[float | None] = []
        y: list[float | None] = []
        for seed in zip(*values):
            x += [*updates, None]
            y += [*map(_number, seed), None]
        finite = [list(filter(math.isfinite, frame)) for frame in values]
        means = [_number(fmean(left)) if left else None for left in finite]
        traces += [
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "line": {"color": colour, "width": 0.7},
                "opacity": 0.35,
                "hoverinfo": "skip",
                "showlegend": False,
            },
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": list(updates),
                "y": means,
                "name": name,
                "line": {"color": colour, "width": 3, "dash": dash},
                "marker": {"symbol": symbol, "size": 9, "maxdisplayed": 9},
                "hovertemplate": "%{y:.3f}",
            },
        ]
    return traces


AT_ONCE = {"frame": {"duration": 60, "redraw": False}, "transition": {"duration": 0}}
PLAY: dict[str, Any] = {
    "type": "buttons",
    "x": 1,
    "xanchor": "right",
    "y": 1,
    "yanchor": "bottom",
    "showactive": False,
    "buttons": [{"label": "Play", "method": "animate", "args": [None, AT_ONCE]}],
}
"""Plays the finished run."""


def _room(reach: tuple[float, float]) -> list[float]:
    margin = 0.03 * (reach[1] - reach[0])
    return [reach[0] - margin, reach[1] + margin]


def _number(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


# Who moves whom: the influence maps of both engines, side by side


LEGEND = (
    "+: the row moves up, −: down. A stronger shade: it moves more.<br>"
    "Thin frame: rows of one prompt. Thick frame: a leak."
)


@dataclass(frozen=True)
class MapPicture:
    """Who moves whom, both engines: values [row moved][row that moves it],
    which cells leak (faulty side), and the prompt of each row."""

    correct: Sequence[Sequence[float]]
    faulty: Sequence[Sequence[float]]
    leaks: Sequence[Sequence[bool]]
    prompts: Sequence[str]
    ink: str = INK["light"]
    names: tuple[str, str] = NAMES


def map_figure(picture: MapPicture) -> Figure:
    """Both maps side by side: a cell has a stronger shade the more it
    moves, with its sign; prompts in a thin frame, leaks in a thick one."""
    count = len(picture.prompts)
    cell = max(8, min(30, 380 // max(count, 1)))
    sides = (picture.correct, picture.faulty)
    sizes = [abs(v) for side in sides for line in side for v in line]
    largest = max([size for size in sizes if math.isfinite(size)] + [1e-12])
    data, axes, shapes = [], {}, []
    words = [note(LEGEND, "x", 0, -52, 12) | {"xref": "paper"}]
    for column, (name, values) in enumerate(zip(picture.names, sides)):
        axis = "x2" if column else "x"
        axes["xaxis" + axis[1:]] = _axis(count, "row that moves it") | {
            "range": [-0.5, count - 0.5],
            "domain": [0.52 * column, 0.48 + 0.52 * column],
            "anchor": "y",
        }
        leaks = picture.leaks if column else [[False] * count] * count
        data.append(
            _cells(values, leaks, largest, cell) | {"name": name, "xaxis": axis}
        )
        shapes += [
            _frame((j, j), (i, i), axis, {"color": FAULTY, "width": 3})
            for i in range(count)
            for j in range(count)
            if leaks[i][j]
        ]
        runs = _runs(picture.prompts)
        shapes += [
            _frame(b, a, axis, {"color": GREY, "width": 1.5})
            for a in runs
            for b in runs
            if picture.prompts[a[0]] == picture.prompts[b[0]]
        ]
        words.append(note(f"<b>{name}</b>", axis, 1, size=14))
    return styled(
        data,
        picture.ink,
        height=cell * count + 130,
        left=44,
        margin={"l": 44, "r": 8, "t": 34, "b": 96, "autoexpand": False},
        shapes=shapes,
        annotations=words,
        yaxis=_axis(count, "moved row") | {"range": [count - 0.5, -0.5]},
        **axes,
    )


def _axis(count: int, title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 10},
        "tickmode": "array",
        "tickvals": list(range(0, count, max(1, math.ceil(count / 16)))),
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _cells(
    values: Sequence[Sequence[float]],
    leaks: Sequence[Sequence[bool]],
    largest: float,
    cell: int,
) -> dict[str, Any]:
    """A heatmap of the root of each size, with signs where there is room."""
    written = [[signed(settled(v)) for v in line] for line in values]
    tones = ((0, 0.75), (0.5, 0), (1, 0.75))
    return {
        "type": "heatmap",
        "z": [
            [
                math.copysign(math.sqrt(min(1.0, abs(settled(v)) / largest)), v)
                if math.isfinite(v)
                else None
                for v in line
            ]
            for line in values
        ],
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[tone, f"rgba(128,128,128,{a})"] for tone, a in tones],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": [
            [text[0] if text[0] in "+−" else "" for text in line] for line in written
        ],
        "texttemplate": "%{text}" if cell >= 16 else "",
        "hovertext": [
            [
                f"row {j} moves row {i} by {text}"
                + ("<br>a leak" if leaks[i][j] else "")
                for j, text in enumerate(line)
            ]
            for i, line in enumerate(written)
        ],
        "hoverinfo": "text",
    }


def _runs(prompts: Sequence[str]) -> list[tuple[int, int]]:
    firsts = [r for r, p in enumerate(prompts) if r == 0 or prompts[r - 1] != p]
    return list(zip(firsts, [first - 1 for first in firsts[1:]] + [len(prompts) - 1]))


def _frame(
    x: tuple[int, int], y: tuple[int, int], axis: str, line: dict[str, Any]
) -> dict[str, Any]:
    across, down = ((a - 0.5, b + 0.5) for a, b in (x, y))
    return rect(across, down, axis, line=line)


# A log step by step: each step's verdict and how far it is off


@dataclass(frozen=True)
class Timeline:
    """A log step by step: its verdicts, and how far the correct numbers
    are from the logged ones."""

    steps: Sequence[str]
    verdicts: Sequence[str]
    distances: Sequence[float]
    flips: Sequence[int]
    ink: str = INK["light"]
    coloured: bool = True


VERDICTS = {
    "correct": ("circle", CORRECT),
    "matches": ("circle", CORRECT),
    "other": ("diamond", FAULTY),
    "suspect": ("diamond-open", FAULTY),
    "asks": ("square-open", "gray"),
    "none fits": ("x", "gray"),
    "cannot tell": ("line-ew-open", "gray"),
}
"""Symbol and colour of a step's verdict: the shape tells it alone."""


def timeline_figure(picture: Timeline) -> Figure:
    """One mark a step: how far the logged advantages are from the correct
    ones, on a symlog axis."""
    data = []
    for verdict, (symbol, colour) in VERDICTS.items():
        steps = [i for i, v in enumerate(picture.verdicts) if v == verdict]
        hover = [
            f"step {picture.steps[i]}: {verdict}<br>off by"
            f" {signed(picture.distances[i])}, {picture.flips[i]} flips"
            for i in steps
        ]
        colour = colour if picture.coloured else "gray"
        look = {
            "symbol": symbol,
            "color": colour,
            "size": 9,
            "line": {"width": 1.5, "color": colour},
        }
        heights = [symlog(settled(picture.distances[i])) for i in steps]
        if steps:
            named = {
                "name": verdict,
                "customdata": [[i] for i in steps],
                "marker": look,
            }
            data.append(marks(0, steps, heights, hover) | named)
    every = max(1, math.ceil(len(picture.steps) / 12))
    shown = range(0, len(picture.steps), every)
    values = [v for v in picture.distances if math.isfinite(v)] or [0.0]
    ticks = symlog_ticks(values)
    return styled(
        data,
        picture.ink,
        height=260,
        left=64,
        legend=ABOVE,
        xaxis={
            "title": {"text": "step", "standoff": 8},
            "tickmode": "array",
            "tickvals": list(shown),
            "ticktext": [picture.steps[i] for i in shown],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis=ticks
        | {
            "title": {"text": "largest difference", "standoff": 8},
            "range": [-0.2, symlog(max(values)) * 1.15 + 0.2],
            "zeroline": False,
        },
    )
