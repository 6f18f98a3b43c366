"""Numbers to Plotly figures. Lists in, figures out: no torch, no Streamlit.

Rows run from top to bottom at ROW_HEIGHT pixels, so that a figure stands
beside the table, row for row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plotly.basedatatypes import BaseFigure

from gradebook.core.differences import same
from gradebook.core.formatting import digits_apart, settled, signed

CORRECT = "#0072B2"
FAULTY = "#D55E00"
NAMES = ("correct", "faulty")
INK = {"light": "#4A4A4A", "dark": "#D0D0D0"}
"""Colour of a picture's text, by theme: Streamlit's own is too pale to
read."""
PAPER = {INK["light"]: "#FFFFFF", INK["dark"]: "#242320"}
"""What hover texts stand on, by ink."""
FONT = '"Source Sans", sans-serif'
GREY = "rgba(128,128,128,0.75)"
BAND = "rgba(128,128,128,0.10)"
ROW_HEIGHT = 30
HEADER = 35
CARD_HEIGHT = 210
HALF_MARK = 10
"""Pixels from the middle of a mark to its tip."""
SQUASHED = 30.0
"""Beyond this ratio of largest to typical value a linear axis hides rows."""


Figure = dict[str, Any]
"""Data and layout, as plotly.js takes them."""


@dataclass(frozen=True)
class Panel:
    """One quantity per row, both engines. NaN has no mark.

    ranges: per row the (low, high) that the faulty value takes over draws.
    ghosts: the values before any edit, correct and faulty.
    """

    title: str
    correct: Sequence[float]
    faulty: Sequence[float]
    flips: Sequence[bool] = ()
    ranges: Sequence[tuple[float, float]] = ()
    ghosts: tuple[Sequence[float], Sequence[float]] | tuple[()] = ()


@dataclass(frozen=True)
class RowPicture:
    """What a picture of rows shows: panels side by side over one set of
    rows, the rows' prompts as bands, the selected row. Covered, the faulty
    side does not show, not even in the axis' reach."""

    panels: Sequence[Panel]
    prompts: Sequence[str]
    selected: int = -1
    symlog: bool = False
    covered: bool = False
    ink: str = INK["light"]


def card_figure(picture: RowPicture) -> Figure:
    """The last panel small, without row numbers, for a card."""
    drawn = rows_figure(replace(picture, panels=picture.panels[-1:]))
    layout = drawn["layout"]
    layout["height"] = CARD_HEIGHT
    layout["showlegend"] = False
    layout["margin"] = {"l": 4, "r": 4, "t": 6, "b": 40, "autoexpand": False}
    count = len(picture.panels[-1].correct)
    edge = max(0.5, HALF_MARK * count / (CARD_HEIGHT - 46))
    layout["yaxis"]["showticklabels"] = False
    layout["yaxis"]["range"] = [count - 1 + edge, -edge]
    layout["xaxis"]["nticks"] = 5
    layout["xaxis"]["title"] |= {
        "standoff": 4,
        "font": {"size": 12, "color": picture.ink},
    }
    return drawn


class Ready(BaseFigure):
    """A figure for whoever wants one of Plotly's own, that is what it was
    given: Plotly's checks that and copies it three times, which takes longer
    than all else on a page. The tests check instead."""

    def __init__(self, figure: Figure) -> None:
        self._ready = figure

    def to_dict(self) -> Figure:
        """The figure itself, not a copy."""
        return self._ready


def _plain(ink: str) -> dict[str, Any]:
    """The layout that all pictures begin with. A click chooses a mark."""
    return {
        "clickmode": "event+select",
        "hovermode": "closest",
        "dragmode": False,
        "font": {"family": FONT, "size": 12, "color": ink},
        "hoverlabel": {
            "align": "left",
            "bgcolor": PAPER.get(ink, PAPER[INK["light"]]),
            "bordercolor": GREY,
            "font": {"family": FONT, "size": 13, "color": ink},
        },
        "plot_bgcolor": "rgba(0,0,0,0)",
        "paper_bgcolor": "rgba(0,0,0,0)",
    }


def rows_figure(picture: RowPicture) -> Figure:
    """Filled circle (correct) and open diamond (faulty) on each row, over
    a zero line; a flipped row has a thick connector and the word FLIP."""
    if picture.covered:
        picture = replace(picture, panels=[_bare(p) for p in picture.panels])
    count = len(picture.prompts)
    foot = 50 if len(picture.panels) == 1 else 68
    layout = _plain(picture.ink) | {
        "height": HEADER + ROW_HEIGHT * max(count, 1) + foot,
        "margin": {
            "l": 34,
            "r": 12,
            "t": HEADER,
            "b": foot,
            "autoexpand": False,
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": 13},
        },
        "yaxis": _row_axis(picture),
        "shapes": _bands(picture),
        "annotations": [],
    }
    data: list[dict[str, Any]] = []
    for column, panel in enumerate(picture.panels):
        _draw(data, layout, panel, picture, column)
    _inked(layout, picture.ink)
    return {"data": data, "layout": layout}


def _inked(layout: dict[str, Any], ink: str) -> None:
    """Every axis' text in one colour."""
    for name in [n for n in layout if n.startswith(("xaxis", "yaxis"))]:
        layout[name] |= {"tickfont": {"color": ink}, "ticklabelstandoff": 6}
        if "title" in layout[name]:
            font = layout[name]["title"].setdefault("font", {})
            font["color"] = ink


def _row_axis(picture: RowPicture) -> dict[str, Any]:
    """Row numbers from top to bottom, the selected one marked."""
    count = len(picture.prompts)
    return {
        "range": [count - 0.5, -0.5],
        "tickmode": "array",
        "tickvals": list(range(count)),
        "ticktext": [
            f"<b>{r} ▸</b>" if r == picture.selected else str(r)
            for r in range(count)
        ],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _bare(panel: Panel) -> Panel:
    """The panel without its faulty side."""
    return Panel(panel.title, panel.correct, panel.correct)


def squashes(panels: Sequence[Panel]) -> int | None:
    """The row that makes all others unreadable on a linear axis, or None."""
    for panel in panels:
        sizes = [
            (abs(v), row)
            for values in (panel.correct, panel.faulty)
            for row, v in enumerate(values)
            if math.isfinite(v) and settled(v)
        ]
        if len(sizes) < 3:
            continue
        sizes.sort()
        if sizes[-1][0] > SQUASHED * sizes[len(sizes) // 2][0]:
            return sizes[-1][1]
    return None


def symlog(value: float) -> float:
    """Linear near 0, logarithmic beyond 1, odd: keeps sign and order."""
    if not math.isfinite(value):
        return value
    return math.copysign(math.log10(1 + abs(value)), value)


def _draw(
    data: list[dict[str, Any]],
    layout: dict[str, Any],
    panel: Panel,
    picture: RowPicture,
    column: int,
) -> None:
    """One panel's traces and its axis."""
    axis = symlog if picture.symlog else float
    name = "x" if column == 0 else f"x{column + 1}"
    at = {"xaxis": name, "yaxis": "y"}
    rows = range(len(picture.prompts))
    spans: dict[tuple[int, str], list[tuple[float, float, int]]] = {}
    for row, (low, high) in enumerate(panel.ranges):
        if math.isfinite(low) and math.isfinite(high):
            of = spans.setdefault((9, RANGE), [])
            of.append((axis(low), axis(high), row))
    flips = list(panel.flips) or [False] * len(rows)
    for row in rows:
        a, b = panel.correct[row], panel.faulty[row]
        if math.isfinite(a) and math.isfinite(b) and not same(a, b):
            how = (5, FAULTY) if flips[row] else (2, GREY)
            spans.setdefault(how, []).append((axis(a), axis(b), row))
    data += [_segments(of, *how) | at for how, of in spans.items()]
    data += [trace | at for trace in _ghosts(panel, axis, column == 0)]
    texts = [_hover(panel, picture, r) for r in rows]
    marks = (
        (NAMES[0], panel.correct, "circle", CORRECT, 11),
        (NAMES[1], panel.faulty, "diamond-open", FAULTY, 13),
    )
    for named, values, symbol, colour, size in marks[: 2 - picture.covered]:
        seen = [r for r in rows if math.isfinite(values[r])]
        trace = _marks(named, values, seen, axis, symbol, colour, size)
        trace["marker"]["line"]["width"] = 2.5
        trace["hovertext"] = [texts[r] for r in seen]
        data.append(trace | at | {"showlegend": column == 0})
    layout["annotations"] += _words(panel, flips, axis, name)
    layout["shapes"].append(
        {
            "type": "line",
            "xref": name,
            "x0": 0,
            "x1": 0,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": GREY, "width": 1.5},
        }
    )
    wide = (1 - GAP * (len(picture.panels) - 1)) / len(picture.panels)
    start = column * (wide + GAP)
    title = panel.title
    if len(picture.panels) > 1:  # beside each other on a narrow screen
        title = title.replace(" (", "<br>(")
    layout["xaxis" + name[1:]] = {
        "title": {"text": title, "font": {"size": 13}, "standoff": 14},
        "range": _reach(panel, axis),
        "domain": [start, min(1, start + wide)],
        "anchor": "y",
        "zeroline": False,
        "gridcolor": "rgba(128,128,128,0.15)",
    } | (_ticks(panel) if picture.symlog else {})


RANGE = "rgba(213,94,0,0.28)"
GAP = 0.04
GHOST = "before edits"


def _segments(
    spans: Sequence[tuple[float, float, int]], width: int, colour: str
) -> dict[str, Any]:
    """A line from start to end in each span's row, all of one trace."""
    return {
        "type": "scatter",
        "x": [x for start, end, _ in spans for x in (start, end, None)],
        "y": [y for *_, row in spans for y in (row, row, None)],
        "mode": "lines",
        "line": {"width": width, "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _marks(
    name: str,
    values: Sequence[float],
    rows: Sequence[int],
    axis: Callable[[float], float],
    symbol: str,
    colour: str,
    size: int,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [axis(settled(values[r])) for r in rows],
        "y": list(rows),
        "mode": "markers",
        "name": name,
        "legendgroup": name,
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": size,
            "line": {"width": 1.5, "color": colour},
        },
        "customdata": [[r, values[r]] for r in rows],
        "hoverinfo": "text",
    }


def _ghosts(
    panel: Panel, axis: Callable[[float], float], named: bool
) -> list[dict[str, Any]]:
    """Small grey marks where a value stood before the edits."""
    traces = []
    now = (panel.correct, panel.faulty)
    for values, before, symbol in zip(
        now, panel.ghosts, ("circle-open", "diamond-open")
    ):
        moved = [
            r
            for r, (a, b) in enumerate(zip(before, values, strict=True))
            if math.isfinite(a) and not same(a, b)
        ]
        if moved:
            trace = _marks(GHOST, before, moved, axis, symbol, GREY, 9)
            trace["hovertext"] = [
                f"row {r}, before edits {signed(before[r])}" for r in moved
            ]
            trace["showlegend"] = named and not traces
            traces.append(trace)
    return traces


def _words(
    panel: Panel,
    flips: Sequence[bool],
    axis: Callable[[float], float],
    name: str,
) -> list[dict[str, Any]]:
    """FLIP beside a flipped row; what has no mark is named in words."""
    words = []
    for row, (a, b) in enumerate(zip(panel.correct, panel.faulty)):
        text, x, colour = "", 0.0, FAULTY
        if flips[row]:
            text, x = "<b>FLIP</b>", max(axis(a), axis(b))
        elif math.isinf(b):
            text = f"faulty {signed(b)}"
        elif math.isnan(a) and math.isnan(b):
            text, colour = "no value", "gray"
        elif math.isnan(b):
            text = "faulty: no value"
        if text:
            words.append(
                {
                    "text": text,
                    "x": x,
                    "y": row,
                    "xref": name,
                    "yref": "y",
                    "xshift": 12,
                    "xanchor": "left",
                    "showarrow": False,
                    "font": {"size": 12, "color": colour},
                }
            )
    return words


def _reach(panel: Panel, axis: Callable[[float], float]) -> list[float]:
    ends = [e for pair in panel.ranges for e in pair]
    before = [v for values in panel.ghosts for v in values]
    values = [*panel.correct, *panel.faulty, *ends, *before, 0.0]
    seen = [axis(v) for v in values if math.isfinite(v)]
    low, high = min(seen), max(seen)
    if high - low < 1e-6:
        low, high = low - 1, high + 1
    room = (high - low) * 0.08
    flipped = any(panel.flips)
    return [low - room, high + room * (2.2 if flipped else 1)]


def _ticks(panel: Panel) -> dict[str, object]:
    """Ticks of a symlog axis: 0 and powers of ten on both sides."""
    values = [*panel.correct, *panel.faulty]
    largest = max([abs(v) for v in values if math.isfinite(v)] + [1.0])
    top = math.ceil(math.log10(largest))
    every = max(1, math.ceil(top / 3))
    powers = [10.0**k for k in range(0, top + 1, every)]
    ticks = [-p for p in reversed(powers)] + [0.0] + powers
    return {
        "tickmode": "array",
        "tickvals": [symlog(t) for t in ticks],
        "ticktext": [f"{t:g}".replace("-", "−") for t in ticks],
    }


def _bands(picture: RowPicture) -> list[dict[str, Any]]:
    """Every second run of rows of one prompt is shaded."""
    bands = []
    start = 0
    prompts = list(picture.prompts)
    for row in range(1, len(prompts) + 1):
        if row < len(prompts) and prompts[row] == prompts[start]:
            continue
        bands.append((start, row))
        start = row
    return [
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "yref": "y",
            "y0": start - 0.5,
            "y1": end - 0.5,
            "fillcolor": BAND,
            "line": {"width": 0},
            "layer": "below",
        }
        for start, end in bands[1::2]
    ]


def _hover(panel: Panel, picture: RowPicture, row: int) -> str:
    a, b = panel.correct[row], panel.faulty[row]
    digits = digits_apart(a, b)
    prompt = str(picture.prompts[row])
    prompt = prompt.replace("&", "&amp;").replace("<", "&lt;")
    lines = [
        f"row {row}, prompt {prompt}",
        f"{NAMES[0]} {signed(settled(a), digits)}",
    ]
    if not picture.covered:
        lines.append(f"{NAMES[1]} {signed(settled(b), digits)}")
    if panel.ranges and math.isfinite(panel.ranges[row][0]):
        low, high = panel.ranges[row]
        lines.append(f"over the draws {signed(low)} to {signed(high)}")
    return "<br>".join(lines)


UP, DOWN = "0,158,115", "204,121,167"


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


def map_figure(picture: MapPicture) -> Figure:
    """Both maps side by side: a cell is stronger the more it moves, its
    sign written in it; true groups outlined, leaks in a thick box."""
    count = len(picture.prompts)
    side = max(8, min(30, 380 // max(count, 1)))
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    layout = _plain(picture.ink) | {
        "height": side * count + 96,
        "margin": {"l": 44, "r": 8, "t": 34, "b": 62, "autoexpand": False},
        "showlegend": False,
        "hoverdistance": -1,
        "shapes": shapes,
        "annotations": [],
        "yaxis": _map_axis(count, "moved row")
        | {"range": [count - 0.5, -0.5]},
    }
    sides = ((NAMES[0], picture.correct), (NAMES[1], picture.faulty))
    largest = _largest(picture)
    for column, (name, values) in enumerate(sides):
        axis = "x" if column == 0 else "x2"
        layout["xaxis" + axis[1:]] = _map_axis(count, "row that moves it") | {
            "range": [-0.5, count - 0.5],
            "domain": [0, 0.48] if column == 0 else [0.52, 1],
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
        shapes.append(_box(culprit, victim, axis, GREY, "dot", 3))
        layout["annotations"].append(
            {
                "text": f"<b>{name}</b>",
                "xref": f"{axis} domain",
                "x": 0,
                "xanchor": "left",
                "yref": "paper",
                "y": 1,
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 14},
            }
        )
    _inked(layout, picture.ink)
    return {"data": data, "layout": layout}


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
    cells = (
        v for m in (picture.correct, picture.faulty) for r in m for v in r
    )
    return max([abs(v) for v in cells if math.isfinite(v)] + [1e-12])


def _shades(
    values: Sequence[Sequence[float]], largest: float
) -> dict[str, Any]:
    """The cells' colours: as wide as the picture leaves them."""
    tones = ((0, DOWN, 1), (0.5, DOWN, 0), (0.5, UP, 0), (1, UP, 1))
    return {
        "type": "heatmap",
        "z": [[_tone(v, largest) for v in line] for line in values],
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[at, f"rgba({tone},{a})"] for at, tone, a in tones],
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
    return [
        {
            "type": "rect",
            "xref": axis,
            "yref": "y",
            "x0": b[0] - 0.5,
            "x1": b[1] + 0.5,
            "y0": a[0] - 0.5,
            "y1": a[1] + 0.5,
            "line": {"color": GREY, "width": 1.5},
        }
        for a in runs
        for b in runs
        if prompts[a[0]] == prompts[b[0]]
    ]


def _box(
    x: int, y: int, axis: str, colour: str, dash: str, width: int
) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": axis,
        "yref": "y",
        "x0": x - 0.5,
        "x1": x + 0.5,
        "y0": y - 0.5,
        "y1": y + 0.5,
        "line": {"color": colour, "width": width, "dash": dash},
    }


@dataclass(frozen=True)
class Timeline:
    """A log step by step: its verdicts, and how far the correct numbers
    are from the logged ones."""

    steps: Sequence[str]
    verdicts: Sequence[str]
    distances: Sequence[float]
    flips: Sequence[int]
    ink: str = INK["light"]


VERDICTS = {
    "correct": ("circle", CORRECT),
    "suspect": ("diamond-open", FAULTY),
    "none fits": ("x", "#8A3FFC"),
    "cannot tell": ("line-ew-open", "gray"),
}
"""Symbol and colour of a step's verdict: the shape tells it alone."""


def timeline_figure(picture: Timeline) -> Figure:
    """One mark a step: how far the logged advantages are from the correct
    ones, on a symlog axis."""
    data = []
    for verdict, (symbol, colour) in VERDICTS.items():
        at = [i for i, v in enumerate(picture.verdicts) if v == verdict]
        if not at:
            continue
        trace = _marks(
            verdict, picture.distances, at, symlog, symbol, colour, 9
        )
        trace["x"], trace["y"] = at, trace["x"]
        trace["customdata"] = [[i] for i in at]
        trace["hovertext"] = [
            f"step {picture.steps[i]}: {verdict}<br>off by"
            f" {signed(picture.distances[i])}, {picture.flips[i]} flips"
            for i in at
        ]
        data.append(trace)
    every = max(1, math.ceil(len(picture.steps) / 12))
    shown = range(0, len(picture.steps), every)
    values = [v for v in picture.distances if math.isfinite(v)] or [0.0]
    ticks = _ticks(Panel("", values, values))
    layout = _plain(picture.ink) | {
        "height": 260,
        "margin": {"l": 64, "r": 12, "t": 34, "b": 52, "autoexpand": False},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "xaxis": {
            "title": {"text": "step", "standoff": 8},
            "tickmode": "array",
            "tickvals": list(shown),
            "ticktext": [picture.steps[i] for i in shown],
            "showgrid": False,
            "zeroline": False,
        },
        "yaxis": ticks
        | {
            "title": {"text": "off the correct numbers", "standoff": 8},
            "range": [-0.2, symlog(max(values)) * 1.15 + 0.2],
            "zeroline": False,
        },
    }
    _inked(layout, picture.ink)
    return {"data": data, "layout": layout}
