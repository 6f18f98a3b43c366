"""The one style of all charts: colours, marks, words and the symlog axis."""

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
PALE = "rgba(128,128,128,0.15)"
ABOVE = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
"""Where a legend stands."""


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


def styled(
    data: Sequence[dict[str, Any]], ink: str, height: int, left: int, **layout: Any
) -> Figure:
    """A figure in the style of all charts, so high and with so much room on
    its left, in pixels. A click chooses a mark."""
    axis = {
        "gridcolor": PALE,
        "zerolinecolor": GREY,
        "zerolinewidth": 1.5,
        "ticklabelstandoff": 6,
    }
    style = {
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
        "xaxis": axis,
        "yaxis": axis,
    }
    margin = {"l": left, "r": 12, "t": 34, "b": 52, "autoexpand": False}
    whole = {"template": {"layout": style}, "height": height, "margin": margin}
    return Figure(data=list(data), layout=whole | layout)


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


def rect(
    x: tuple[float, float],
    y: tuple[float, float],
    axis: str,
    **look: Any,
) -> dict[str, Any]:
    """A rectangle over rows, on an x axis or the whole paper."""
    ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "rect", "xref": axis, "yref": "y", **ends, **look}


def note(
    text: str, axis: str, y: float, shift: int = 0, size: int = 13
) -> dict[str, Any]:
    """Words at the left of an axis: above the figure, or below it."""
    return {
        "text": text,
        "xref": f"{axis} domain",
        "x": 0,
        "xanchor": "left",
        "align": "left",
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
