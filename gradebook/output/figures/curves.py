"""Training runs as Plotly figures: the curves, and the effect by setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from gradebook.output.figures.base import (
    ABOVE,
    CORRECT,
    FAULTY,
    Figure,
    styled,
)

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
    with open diamonds, a third one dotted.

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
    at: float,
    ink: str,
) -> Figure:
    """The paired difference at each setting that was trained, with its 95 %
    interval; the setting `at` is filled.

    points  (setting, difference, half-width of its interval)
    """
    points = sorted(point for point in points if math.isfinite(point[1]))
    current = [math.isclose(value, at, abs_tol=1e-9) for value, _, _ in points]
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
        colour, dash, symbol = (*styles, (ink, "dot", "square-open"))[engine]
        values = [frame[engine] for frame in seeds]
        x: list[float | None] = []
        y: list[float | None] = []
        for seed in zip(*values):
            x += [*updates, None]
            y += [*map(_number, seed), None]
        means = [_number(_mean(frame)) for frame in values]
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
    "y": 1.02,
    "yanchor": "bottom",
    "showactive": False,
    "buttons": [{"label": "Play", "method": "animate", "args": [None, AT_ONCE]}],
}
"""Plays the finished run."""


def _room(reach: tuple[float, float]) -> list[float]:
    """The axis, with room for the marks at its ends."""
    margin = 0.03 * (reach[1] - reach[0])
    return [reach[0] - margin, reach[1] + margin]


def _mean(values: Sequence[float]) -> float:
    """Over the seeds that have not diverged; NaN where none is left."""
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan


def _number(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
