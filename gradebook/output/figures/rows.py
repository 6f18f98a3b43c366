"""A picture of rows: one circle and one diamond a row, over a zero line."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from operator import xor
from typing import Any

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import pair, signed
from gradebook.output.figures.base import (
    FAULTY,
    GREY,
    INK,
    NAMES,
    Figure,
    band,
    colour_axes,
    marks,
    pieces,
    row_layout,
    symlog,
    symlog_ticks,
)
from gradebook.output.figures.stages import labels_of
from gradebook.output.panels import Panel, panels, squashes

LINE = 30
"""Pixels from row to row."""


def rows_figure(
    comparison: Comparison,
    kind: str = "advantage",
    row: int = -1,
    names: tuple[str, str] = NAMES,
    ink: str = INK["light"],
) -> Figure:
    """The advantage of each row under both engines, on one axis.

    A filled circle (correct) and an open diamond (faulty), joined where they
    differ; where the sign flips, the line is thick and the word FLIP stands
    beside it. Where one value is far beyond the others, the axis is symlog.

    kind   "advantage", or "gradient" for its parts, side by side
    row    the selected row, -1 for none
    names  what the engines are called
    """
    shown = panels(comparison, kind)
    layout = row_layout(labels_of(comparison, row, ()), LINE, 68, ink)
    layout |= {
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    }
    prompts = comparison.batch.prompt.tolist()
    place = symlog if squashes(shown) else float
    changes = [at > 0 and prompts[at] != prompts[at - 1] for at in range(len(prompts))]
    shaded = enumerate(accumulate(changes, xor))
    layout["shapes"] = [band(at) for at, odd in shaded if odd]
    data: list[dict[str, Any]] = []
    for column, panel in enumerate(shown):
        on = {"xaxis": f"x{column + 1}" if column else "x", "yaxis": "y"}
        data += [part | on for part in _marks(panel, names, place)]
        for part in data[-2:]:
            part["showlegend"] = column == 0
        words = _words(panel, names, place)
        layout["annotations"] += [word | {"xref": on["xaxis"]} for word in words]
        layout["xaxis" + on["xaxis"][1:]] = _axis(panel, place) | {
            "domain": [column / len(shown), (column + 0.94) / len(shown)],
            "anchor": "y",
        }
    colour_axes(layout, ink)
    return Figure(data=data, layout=layout)


Place = Callable[[float], float]
"""From a value to its place on the axis."""


def _marks(panel: Panel, names: tuple[str, str], place: Place) -> list[dict[str, Any]]:
    """The lines between the engines, thin and thick, then their marks."""
    pairs = list(zip(panel.correct, panel.faulty))
    joined = [
        row
        for row, (a, b) in enumerate(pairs)
        if math.isfinite(a) and math.isfinite(b) and not same(a, b)
    ]
    traces = [
        pieces(
            [
                (list(map(place, pairs[row])), [row, row])
                for row in joined
                if bool(panel.flips[row]) == flips
            ],
            width,
            colour,
        )
        for flips, width, colour in ((False, 2, GREY), (True, 5, FAULTY))
    ]
    for side, values in enumerate((panel.correct, panel.faulty)):
        seen = [row for row, value in enumerate(values) if math.isfinite(value)]
        hover = [
            f"row {row}<br>" + "<br>".join(map(" ".join, zip(names, pair(*pairs[row]))))
            for row in seen
        ]
        x = [place(values[row]) for row in seen]
        traces.append(marks(side, x, seen, hover) | {"name": names[side]})
    return traces


def _words(panel: Panel, names: tuple[str, str], place: Place) -> list[dict[str, Any]]:
    """FLIP beside a flipped row, and what has no mark in words."""
    found = []
    for row, (a, b) in enumerate(zip(panel.correct, panel.faulty)):
        text, x = "", 0.0
        if panel.flips[row]:
            text, x = "<b>FLIP</b>", max(place(a), place(b))
        elif math.isnan(a) and math.isnan(b):
            text = "no value"
        elif not math.isfinite(b):
            value = "no value" if math.isnan(b) else signed(b)
            text = f"{names[1]}: {value}"
        if text:
            found.append(
                {
                    "text": text,
                    "x": x,
                    "y": row,
                    "yref": "y",
                    "xshift": 12,
                    "xanchor": "left",
                    "showarrow": False,
                    "font": {"size": 12, "color": FAULTY},
                }
            )
    return found


def _axis(panel: Panel, place: Place) -> dict[str, Any]:
    """An axis with 0 on it, and room at its right end for the word FLIP."""
    values = [v for v in (*panel.correct, *panel.faulty) if math.isfinite(v)]
    places = [0.0, *map(place, values)]
    low, high = min(places), max(places)
    room = 0.08 * (high - low or 2.0)
    axis = {
        "title": {"text": panel.title.replace(" (", "<br>(")},
        "range": [low - room, high + room * (3 if any(panel.flips) else 1)],
        "zeroline": True,
        "zerolinecolor": GREY,
        "zerolinewidth": 1.5,
        "gridcolor": "rgba(128,128,128,0.15)",
    }
    return axis | (symlog_ticks(values) if place is symlog else {})
