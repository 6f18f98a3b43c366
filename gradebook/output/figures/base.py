"""What all figures share: colours, the layout and the symlog axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

CORRECT = "#0072B2"
FAULTY = "#D55E00"
NAMES = ("correct", "faulty")
INK = {"light": "#4A4A4A", "dark": "#D0D0D0"}
"""The colour of a picture's text, by theme; Streamlit's own is too pale."""
PAPER = {INK["light"]: "#FFFFFF", INK["dark"]: "#242320"}
"""What hover texts stand on, by ink."""
FONT = '"Source Sans", sans-serif'
GREY = "rgba(128,128,128,0.75)"
BAND = "rgba(128,128,128,0.10)"
SIDES = [0, 0.48], [0.52, 1]
"""The parts of the width that two engines side by side have."""


class Figure(dict[str, Any]):
    """Data and layout, as plotly.js takes them. A notebook shows it as a
    picture where Plotly is installed."""

    def __repr__(self) -> str:
        return f"<Figure of {len(self.get('data', ()))} traces, for Plotly>"

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, Any]:
        try:
            from plotly.graph_objects import Figure as Shown
        except ImportError:
            return {"text/plain": repr(self)}
        return Shown(self)._repr_mimebundle_(None, None)


def plain_layout(ink: str) -> dict[str, Any]:
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


def row_layout(labels: Sequence[str], line: int, foot: int, ink: str) -> dict[str, Any]:
    """The layout of a figure with one line for each label, from top to
    bottom; all lengths in pixels."""
    count = len(labels)
    return plain_layout(ink) | {
        "height": 34 + line * max(count, 1) + foot,
        "margin": {"l": 76, "r": 12, "t": 34, "b": foot, "autoexpand": False},
        "showlegend": False,
        "yaxis": {
            "range": [count - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": list(range(count)),
            "ticktext": list(labels),
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        "shapes": [],
        "annotations": [],
    }


def colour_axes(layout: dict[str, Any], ink: str) -> None:
    """Every axis' text in one colour."""
    for name in [n for n in layout if n.startswith(("xaxis", "yaxis"))]:
        layout[name] |= {"tickfont": {"color": ink}, "ticklabelstandoff": 6}
        if "title" in layout[name]:
            font = layout[name]["title"].setdefault("font", {})
            font["color"] = ink


def rect(
    x: tuple[float, float],
    y: tuple[float, float],
    axis: str,
    **look: Any,
) -> dict[str, Any]:
    """A rectangle over rows, on an x axis or the whole paper."""
    ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "rect", "xref": axis, "yref": "y", **ends, **look}


def pieces(
    ends: Iterable[tuple[Sequence[float], Sequence[float]]], width: float, colour: str
) -> dict[str, Any]:
    """Pieces of line, each its x and its y, as one trace without a hover."""
    ends = list(ends)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for xs, _ in ends for x in (*xs, None)],
        "y": [y for _, ys in ends for y in (*ys, None)],
        "line": {"width": width, "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def marks(
    side: int, x: Sequence[float], y: Sequence[float], hover: Sequence[str]
) -> dict[str, Any]:
    """One engine's marks: filled circles for 0, open diamonds for 1."""
    colour = (CORRECT, FAULTY)[side]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "marker": {
            "symbol": ("circle", "diamond-open")[side],
            "color": colour,
            "size": (10, 12)[side],
            "line": {"width": 2, "color": colour},
        },
        "cliponaxis": False,
        "hovertext": hover,
        "hoverinfo": "text",
    }


def band(at: int) -> dict[str, Any]:
    """A pale band behind a line whose results differ."""
    look = {"fillcolor": BAND, "line": {"width": 0}, "layer": "below"}
    return rect((0, 1), (at - 0.5, at + 0.5), "paper", **look)


def said(
    text: str, axis: str, y: float, shift: int = 0, size: int = 13
) -> dict[str, Any]:
    """Words at the left of an axis: above the figure, or below it."""
    return {
        "text": text,
        "xref": f"{axis} domain",
        "x": 0,
        "xanchor": "left",
        "yref": "paper",
        "y": y,
        "yanchor": "bottom" if y else "top",
        "yshift": shift,
        "showarrow": False,
        "font": {"size": size},
    }


def safe(text: object) -> str:
    """Text that Plotly does not take for HTML."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;")


def symlog(value: float) -> float:
    """Linear near 0, logarithmic beyond 1, odd: keeps sign and order."""
    if not math.isfinite(value):
        return value
    return math.copysign(math.log10(1 + abs(value)), value)


def symlog_ticks(values: Sequence[float]) -> dict[str, Any]:
    """Ticks of a symlog axis: 0 and powers of ten on both sides."""
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
