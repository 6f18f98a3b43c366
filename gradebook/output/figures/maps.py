"""Who moves whom: the influence maps of both engines, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import (
    FAULTY,
    GREY,
    INK,
    NAMES,
    SIDES,
    Figure,
    colour_axes,
    plain_layout,
    rect,
    said,
)

LEGEND = (
    "+: the row moves up, −: down.<br>A stronger shade: it moves more.<br>"
    "Thin frame: rows of one prompt. Thick frame: a leak."
)


@dataclass(frozen=True)
class MapPicture:
    """Who moves whom, both engines: values [victim][culprit], which cells
    leak (faulty side), and the runs of rows of one prompt."""

    correct: Sequence[Sequence[float]]
    faulty: Sequence[Sequence[float]]
    leaks: Sequence[Sequence[bool]]
    prompts: Sequence[str]
    chosen: tuple[int, int]
    ink: str = INK["light"]
    names: tuple[str, str] = NAMES


def map_figure(picture: MapPicture) -> Figure:
    """Both maps side by side: a cell has a stronger shade the more it
    moves, with its sign; prompts in a thin frame, leaks in a thick one."""
    count = len(picture.prompts)
    side = max(8, min(30, 380 // max(count, 1)))
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    layout = plain_layout(picture.ink) | {
        "height": side * count + 146,
        "margin": {"l": 44, "r": 8, "t": 34, "b": 112, "autoexpand": False},
        "showlegend": False,
        "hoverdistance": -1,
        "shapes": shapes,
        "annotations": [
            said(LEGEND, "x", 0, -56, 12) | {"xref": "paper", "align": "left"}
        ],
        "yaxis": _map_axis(count, "moved row") | {"range": [count - 0.5, -0.5]},
    }
    sides = zip(picture.names, (picture.correct, picture.faulty))
    largest = _largest(picture)
    for column, (name, values) in enumerate(sides):
        axis = "x" if column == 0 else "x2"
        layout["xaxis" + axis[1:]] = _map_axis(count, "row that moves it") | {
            "range": [-0.5, count - 0.5],
            "domain": SIDES[column],
            "anchor": "y",
        }
        leaks = picture.leaks if column else [[False] * count] * count
        traces = [
            _shades(values, largest),
            _signs(values, leaks, side, name),
        ]
        if any(map(any, leaks)):
            traces.append(_boxes(leaks))
        data += [trace | {"xaxis": axis, "yaxis": "y"} for trace in traces]
        shapes += _blocks(picture.prompts, axis)
        victim, culprit = picture.chosen
        line = {"color": GREY, "width": 3, "dash": "dot"}
        cell = (culprit, culprit), (victim, victim)
        shapes.append(_around(*cell, axis, line))
        layout["annotations"].append(said(f"<b>{name}</b>", axis, 1, size=14))
    colour_axes(layout, picture.ink)
    return Figure(data=data, layout=layout)


def _map_axis(count: int, title: str) -> dict[str, Any]:
    every = max(1, math.ceil(count / 16))
    return {
        "title": {"text": title, "font": {"size": 12}, "standoff": 10},
        "tickmode": "array",
        "tickvals": list(range(0, count, every)),
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _largest(picture: MapPicture) -> float:
    cells = (v for m in (picture.correct, picture.faulty) for r in m for v in r)
    return max([abs(v) for v in cells if math.isfinite(v)] + [1e-12])


def _shades(values: Sequence[Sequence[float]], largest: float) -> dict[str, Any]:
    """The cells, in a stronger shade the larger their values are."""
    tones = ((0, 0.75), (0.5, 0), (1, 0.75))
    return {
        "type": "heatmap",
        "z": [[_tone(v, largest) for v in line] for line in values],
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[at, f"rgba(128,128,128,{a})"] for at, a in tones],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverinfo": "skip",
    }


def _tone(value: float, largest: float) -> float | None:
    """From -1 to 1, the root of the size; none for no value."""
    if not math.isfinite(value):
        return None
    value = settled(value)
    size = math.sqrt(min(1.0, abs(value) / largest))
    return math.copysign(size, value)


def _boxes(leaks: Sequence[Sequence[bool]]) -> dict[str, Any]:
    """A thick box around each cell that leaks, all of them one line."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, line in enumerate(leaks):
        for j, leak in enumerate(line):
            if leak:
                near, far = j - 0.46, j + 0.46
                x += [near, far, far, near, near, None]
                y += [i - 0.46, i - 0.46, i + 0.46, i + 0.46, i - 0.46, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "leaks",
        "x": x,
        "y": y,
        "line": {"width": 3, "color": FAULTY},
        "hoverinfo": "skip",
    }


def _signs(
    values: Sequence[Sequence[float]],
    leaks: Sequence[Sequence[bool]],
    side: int,
    name: str,
) -> dict[str, Any]:
    """Each cell's sign, and a mark that is not seen: the nearest is the
    one pointed at."""
    cells = [
        (i, j, v)
        for i, line in enumerate(values)
        for j, v in enumerate(line)
        if math.isfinite(v)
    ]
    small = side < 16
    return {
        "type": "scatter",
        "mode": "markers" if small else "markers+text",
        "x": [j for _, j, _ in cells],
        "y": [i for i, _, _ in cells],
        "text": ["" if small else _sign(v) for _, _, v in cells],
        "textfont": {"size": 12},
        "name": name,
        "marker": {
            "symbol": "square",
            "size": 6,
            "color": "rgba(0,0,0,0)",
        },
        "customdata": [[i, j, v] for i, j, v in cells],
        "hovertext": [
            f"row {j} moves row {i} by {signed(settled(v))}"
            + ("<br>a leak" if leaks[i][j] else "")
            for i, j, v in cells
        ],
        "hoverinfo": "text",
    }


def _sign(value: float) -> str:
    value = settled(value)
    return "" if value == 0 else "+" if value > 0 else "−"


def _blocks(prompts: Sequence[str], axis: str) -> list[dict[str, Any]]:
    """Outlines of the true groups, also where a prompt's rows lie apart."""
    runs: list[tuple[int, int]] = []
    for row, prompt in enumerate(prompts):
        if runs and prompts[runs[-1][0]] == prompt:
            runs[-1] = (runs[-1][0], row)
        else:
            runs.append((row, row))
    line = {"color": GREY, "width": 1.5}
    return [
        _around(b, a, axis, line)
        for a in runs
        for b in runs
        if prompts[a[0]] == prompts[b[0]]
    ]


def _around(
    x: tuple[int, int], y: tuple[int, int], axis: str, line: dict[str, Any]
) -> dict[str, Any]:
    """A frame around the cells from the first to the last, on both axes."""
    across, down = ((a - 0.5, b + 0.5) for a, b in (x, y))
    return rect(across, down, axis, line=line)
