"""The gradient at each row's tokens, with both engines side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gradebook.analysis.comparison import Comparison
from gradebook.core.formatting import digits_apart, plain, settled
from gradebook.output.figures.base import (
    CORRECT,
    FAULTY,
    GREY,
    INK,
    NAMES,
    SIDES,
    Figure,
    row_layout,
    said,
)
from gradebook.output.figures.stages import (
    MOST,
    finished,
    labels_of,
    order_of,
)

LINE = 34
"""Pixels from row to row."""

TALLEST = 0.42
"""The length of the longest bar, in lines."""

ROOM = 0.34
"""The part of a side that is left for the row's numbers."""

DIGITS = 3


def gradient_figure(
    comparison: Comparison,
    row: int = -1,
    names: tuple[str, str] = NAMES,
    ink: str = INK["light"],
    prompts: Sequence[str] = (),
) -> Figure:
    """A bar for each response token, as long as its gradient is large.

    Bars of both engines have one scale. A bar that points up is a positive
    gradient: a step of descent makes the token less likely. The row's number
    stands beside its bars, or the least and the greatest one where its tokens
    differ. A masked token has no bar and no line under it. A label with ≠
    marks a row whose gradients differ.

    row      the selected row, -1 for none
    names    what the engines are called
    prompts  the rows' prompts as typed
    Raises ValueError without log-probabilities, which leave no gradient.
    """
    correct, faulty = comparison.correct.gradient, comparison.faulty.gradient
    if correct is None or faulty is None:
        raise ValueError("a gradient needs log-probabilities")
    order = order_of(comparison, row)
    shown, left_out = order[:MOST], max(0, len(order) - MOST)
    differs = comparison.gradient_differs.tolist()
    titles = labels_of(comparison, row, prompts)
    marked = [f"{titles[r]} {'≠' if differs[r] else ' '}" for r in shown]
    foot = 62 if left_out else 42
    layout = row_layout(marked, LINE, foot, ink) | {
        "barmode": "overlay",
        "bargap": 0.25,
    }
    tokens = comparison.batch.mask.shape[1]
    kept = [
        [(t, settled(g)) for t, g in enumerate(line) if mask[t]]
        for line, mask in _lines(comparison.batch.mask, (correct, faulty), shown)
    ]
    sides = kept[: len(shown)], kept[len(shown) :]
    sizes = [abs(g) for line in kept for _, g in line if math.isfinite(g)]
    scale = TALLEST / (max(sizes, default=0.0) or 1.0)
    data: list[dict[str, Any]] = []
    for side, name in enumerate(names):
        axis = "x" if side == 0 else "x2"
        data.append(_ground(sides[side], axis))
        data.append(_bars(sides, side, scale, marked, axis))
        layout["xaxis" + axis[1:]] = _axis(tokens, side)
        layout["annotations"].append(said(f"<b>{name}</b>", axis, 1, 0))
        layout["annotations"] += [
            _number(numbers, at, tokens, axis)
            for at, numbers in enumerate(_texts(sides, side))
        ]
    here = [bool(differs[row]) for row in shown]
    return finished(data, layout, here, left_out, ink)


def _lines(
    mask: Tensor, pair: tuple[Tensor, Tensor], rows: Sequence[int]
) -> list[tuple[list[float], list[bool]]]:
    """Gradients and mask of each of the rows, correct and then faulty."""
    masks = mask[list(rows)].tolist()
    return [
        (line, own)
        for gradient in pair
        for line, own in zip(gradient[list(rows)].tolist(), masks)
    ]


Side = Sequence[Sequence[tuple[int, float]]]
"""One engine's rows from top to bottom: (token, gradient) each."""


def _ground(side: Side, axis: str) -> dict[str, Any]:
    """A line under each response token: where a gradient of 0 stands."""
    at = [(t, i) for i, line in enumerate(side) for t, _ in line]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for t, _ in at for x in (t + 0.6, t + 1.4, None)],
        "y": [y for _, i in at for y in (i, i, None)],
        "line": {"width": 1.5, "color": GREY},
        "hoverinfo": "skip",
        "xaxis": axis,
        "yaxis": "y",
    }


def _bars(
    sides: tuple[Side, Side],
    side: int,
    scale: float,
    labels: Sequence[str],
    axis: str,
) -> dict[str, Any]:
    """The bars of one engine: filled for correct, in outline for faulty."""
    bars = [
        (t, i, g, other)
        for i, (line, others) in enumerate(zip(sides[side], sides[1 - side]))
        for (t, g), (_, other) in zip(line, others)
        if math.isfinite(g)
    ]
    colour = (CORRECT, FAULTY)[side]
    return {
        "type": "bar",
        "x": [t + 1 for t, *_ in bars],
        "base": [i for _, i, *_ in bars],
        # The axis runs from top to bottom, and up is positive.
        "y": [-g * scale for *_, g, _ in bars],
        "marker": {
            "color": (colour, "rgba(0,0,0,0)")[side],
            "line": {"color": colour, "width": 1.5},
        },
        "hovertext": [
            f"{labels[i]}: token {t + 1}, {_plain(g, other)}" for t, i, g, other in bars
        ],
        "hoverinfo": "text",
        "xaxis": axis,
        "yaxis": "y",
    }


def _plain(value: float, other: float) -> str:
    return plain(value, digits_apart(value, other, DIGITS))


def _texts(sides: tuple[Side, Side], side: int) -> list[str]:
    """A row's gradient in digits, or its least and its greatest one."""
    found = []
    for line, others in zip(sides[side], sides[1 - side]):
        texts = [_plain(g, o) for (_, g), (_, o) in zip(line, others)]
        ordered = sorted(range(len(line)), key=lambda i: line[i][1])
        ends = [texts[i] for i in (*ordered[:1], *ordered[-1:])]
        found.append("<br>to ".join(dict.fromkeys(ends)))
    return found


def _number(text: str, at: int, tokens: int, axis: str) -> dict[str, Any]:
    return {
        "text": text,
        "xref": axis,
        "x": tokens + 0.7,
        "xanchor": "left",
        "yref": "y",
        "y": at,
        "showarrow": False,
        "font": {"size": 12},
    }


def _axis(tokens: int, side: int) -> dict[str, Any]:
    every = max(1, math.ceil(tokens / 8))
    return {
        "title": {"text": "token", "font": {"size": 12}, "standoff": 6},
        "range": [0.4, 0.5 + tokens / (1 - ROOM)],
        "domain": SIDES[side],
        "anchor": "y",
        "tickmode": "array",
        "tickvals": list(range(1, tokens + 1, every)),
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
