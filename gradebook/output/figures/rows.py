"""A picture of rows: one circle and one diamond a row, over a zero line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradebook.core.differences import same
from gradebook.core.formatting import digits_apart, settled, signed
from gradebook.output.figures.base import (
    BAND,
    CORRECT,
    FAULTY,
    GREY,
    INK,
    NAMES,
    SQUASHED,
    Figure,
    colour_axes,
    marks,
    row_layout,
    segments,
    symlog,
    symlog_ticks,
)

ROW_HEIGHT = 30
HEADER = 35
CARD_HEIGHT = 210
RANGE = "rgba(213,94,0,0.28)"
GAP = 0.04
"""Share of the width between two panels."""
GHOST = "before edits"
HALF_MARK = 10
"""Pixels from the middle of a mark to its tip."""


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
    rows, the rows' prompts as bands, the selected row, and what the engines
    are called. Covered, the faulty side is absent, from the axis' range
    too."""

    panels: Sequence[Panel]
    prompts: Sequence[str]
    selected: int = -1
    symlog: bool = False
    covered: bool = False
    ink: str = INK["light"]
    names: tuple[str, str] = NAMES


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


def rows_figure(picture: RowPicture) -> Figure:
    """Filled circle (correct) and open diamond (faulty) on each row, over
    a zero line; a flipped row has a thick connector and the word FLIP."""
    if picture.covered:
        picture = replace(picture, panels=[_bare(p) for p in picture.panels])
    count = len(picture.prompts)
    foot = 50 if len(picture.panels) == 1 else 68
    labels = [
        f"<b>{r} ▸</b>" if r == picture.selected else str(r)
        for r in range(count)
    ]
    layout = row_layout(
        labels,
        line=ROW_HEIGHT,
        top=HEADER,
        foot=foot,
        left=34,
        ink=picture.ink,
    ) | {
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": 13},
        },
        "shapes": _bands(picture),
    }
    data: list[dict[str, Any]] = []
    for column, panel in enumerate(picture.panels):
        _draw(data, layout, panel, picture, column)
    colour_axes(layout, picture.ink)
    return Figure(data=data, layout=layout)


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
    data += [segments(of, *how) | at for how, of in spans.items()]
    data += [trace | at for trace in _ghosts(panel, axis, column == 0)]
    texts = [_hover(panel, picture, r) for r in rows]
    sides = (
        (picture.names[0], panel.correct, "circle", CORRECT, 11),
        (picture.names[1], panel.faulty, "diamond-open", FAULTY, 13),
    )
    for named, values, symbol, colour, size in sides[: 2 - picture.covered]:
        seen = [r for r in rows if math.isfinite(values[r])]
        trace = marks(named, values, seen, axis, symbol, colour, size)
        trace["marker"]["line"]["width"] = 2.5
        trace["hovertext"] = [texts[r] for r in seen]
        data.append(trace | at | {"showlegend": column == 0})
    layout["annotations"] += _words(panel, picture, flips, axis, name)
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
    } | (
        symlog_ticks([*panel.correct, *panel.faulty]) if picture.symlog else {}
    )


def _ghosts(
    panel: Panel, axis: Callable[[float], float], named: bool
) -> list[dict[str, Any]]:
    """Small grey marks where a value stood before the edits."""
    traces: list[dict[str, Any]] = []
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
            trace = marks(GHOST, before, moved, axis, symbol, GREY, 9)
            trace["hovertext"] = [
                f"row {r}, before edits {signed(before[r])}" for r in moved
            ]
            trace["showlegend"] = named and not traces
            traces.append(trace)
    return traces


def _words(
    panel: Panel,
    picture: RowPicture,
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
            text = f"{picture.names[1]} {signed(b)}"
        elif math.isnan(a) and math.isnan(b):
            text, colour = "no value", "gray"
        elif math.isnan(b):
            text = f"{picture.names[1]}: no value"
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
        f"{picture.names[0]} {signed(settled(a), digits)}",
    ]
    if not picture.covered:
        lines.append(f"{picture.names[1]} {signed(settled(b), digits)}")
    if panel.ranges and math.isfinite(panel.ranges[row][0]):
        low, high = panel.ranges[row]
        lines.append(f"over the draws {signed(low)} to {signed(high)}")
    return "<br>".join(lines)
