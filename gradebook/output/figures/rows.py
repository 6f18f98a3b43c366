"""A picture of rows: one circle and one diamond a row, over a zero line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradebook.core.differences import same
from gradebook.core.formatting import pair, settled, signed
from gradebook.output.figures.base import (
    CORRECT,
    FAULTY,
    GREY,
    INK,
    NAMES,
    SQUASHED,
    Figure,
    band,
    colour_axes,
    marks,
    row_layout,
    safe,
    symlog,
    symlog_ticks,
)

ROW_HEIGHT = 30
HEADER = 35
RANGE = "rgba(213,94,0,0.28)"
GAP = 0.04
"""Share of the width between two panels."""


@dataclass(frozen=True)
class Panel:
    """One quantity per row, both engines. NaN has no mark.

    ranges: per row the (low, high) that the faulty value takes over draws.
    """

    title: str
    correct: Sequence[float]
    faulty: Sequence[float]
    flips: Sequence[bool] = ()
    ranges: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class RowPicture:
    """What a picture of rows shows: panels side by side over one set of
    rows, the rows' prompts as bands, the selected row, and what the engines
    are called."""

    panels: Sequence[Panel]
    prompts: Sequence[str]
    selected: int = -1
    symlog: bool = False
    ink: str = INK["light"]
    names: tuple[str, str] = NAMES


def rows_figure(picture: RowPicture) -> Figure:
    """Filled circle (correct) and open diamond (faulty) on each row, over
    a zero line; a flipped row has a thick connector and the word FLIP."""
    labels = [
        f"<b>{r} ▸</b>" if r == picture.selected else str(r)
        for r in range(len(picture.prompts))
    ]
    layout = row_layout(
        labels,
        line=ROW_HEIGHT,
        top=HEADER,
        foot=50 if len(picture.panels) == 1 else 68,
        left=34,
        ink=picture.ink,
    )
    layout["legend"] = {
        "orientation": "h",
        "x": 0,
        "y": 1,
        "yanchor": "bottom",
        "font": {"size": 13},
    }
    layout["shapes"] = _bands(picture.prompts)
    data: list[dict[str, Any]] = []
    for column, panel in enumerate(picture.panels):
        _draw(data, layout, panel, picture, column)
    colour_axes(layout, picture.ink)
    return Figure(data=data, layout=layout)


def squashes(panels: Sequence[Panel]) -> bool:
    """A value would make all others unreadable on a linear axis."""
    for panel in panels:
        values = [*panel.correct, *panel.faulty]
        sizes = sorted(
            abs(v) for v in values if math.isfinite(v) and settled(v)
        )
        if len(sizes) > 2 and sizes[-1] > SQUASHED * sizes[len(sizes) // 2]:
            return True
    return False


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
    flips = list(panel.flips) or [False] * len(picture.prompts)
    spans: dict[tuple[int, str], list[tuple[float, float, int]]] = {}
    for row, ends in enumerate(panel.ranges):
        if all(map(math.isfinite, ends)):
            low, high = map(axis, ends)
            spans.setdefault((9, RANGE), []).append((low, high, row))
    for row, (a, b) in enumerate(zip(panel.correct, panel.faulty)):
        if math.isfinite(a) and math.isfinite(b) and not same(a, b):
            how = (5, FAULTY) if flips[row] else (2, GREY)
            spans.setdefault(how, []).append((axis(a), axis(b), row))
    data += [_segments(of, *how) | at for how, of in spans.items()]
    sides = (
        (picture.names[0], panel.correct, "circle", CORRECT, 11),
        (picture.names[1], panel.faulty, "diamond-open", FAULTY, 13),
    )
    for named, values, symbol, colour, size in sides:
        seen = [r for r, value in enumerate(values) if math.isfinite(value)]
        trace = marks(named, values, seen, axis, symbol, colour, size)
        trace["marker"]["line"]["width"] = 2.5
        trace["hovertext"] = [_hover(panel, picture, r) for r in seen]
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
    values = [*panel.correct, *panel.faulty, *ends, 0.0]
    seen = [axis(v) for v in values if math.isfinite(v)]
    low, high = min(seen), max(seen)
    if high - low < 1e-6:
        low, high = low - 1, high + 1
    room = (high - low) * 0.08
    return [low - room, high + room * (2.2 if any(panel.flips) else 1)]


def _bands(prompts: Sequence[str]) -> list[dict[str, Any]]:
    """Every second run of rows of one prompt is shaded."""
    bands, odd = [], False
    for row, prompt in enumerate(prompts):
        odd ^= row > 0 and prompt != prompts[row - 1]
        bands += [band(row)] * odd
    return bands


def _hover(panel: Panel, picture: RowPicture, row: int) -> str:
    texts = pair(panel.correct[row], panel.faulty[row])
    lines = [f"row {row}, prompt {safe(picture.prompts[row])}"]
    lines += [f"{name} {text}" for name, text in zip(picture.names, texts)]
    if panel.ranges and math.isfinite(panel.ranges[row][0]):
        low, high = panel.ranges[row]
        lines.append(f"over the draws {signed(low)} to {signed(high)}")
    return "<br>".join(lines)
