"""A log step by step: each step's verdict and how far it is off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import (
    ABOVE,
    CORRECT,
    FAULTY,
    INK,
    Figure,
    marks,
    styled,
    symlog,
    symlog_ticks,
)


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
        hover = [
            f"step {picture.steps[i]}: {verdict}<br>off by"
            f" {signed(picture.distances[i])}, {picture.flips[i]} flips"
            for i in at
        ]
        colour = colour if picture.coloured else "gray"
        look = {
            "symbol": symbol,
            "color": colour,
            "size": 9,
            "line": {"width": 1.5, "color": colour},
        }
        heights = [symlog(settled(picture.distances[i])) for i in at]
        if at:
            named = {"name": verdict, "customdata": [[i] for i in at], "marker": look}
            data.append(marks(0, at, heights, hover) | named)
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
