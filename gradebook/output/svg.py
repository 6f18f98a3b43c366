"""A panel of rows as SVG: on paper, in a file, as a small picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import symlog
from gradebook.output.panels import Panel
from gradebook.output.rendering import rendered

GREY = "#767676"

ROW, LEFT, WIDTH, ROOM = 20, 70, 560, 60
"""Pixels: a row's height, left of the plot, the plot, right of it."""
LETTER = 7
"""Pixels of a letter, about."""
EDGE = 12
"""Pixels around a small picture."""


def picture(
    panel: Panel,
    prompts: Sequence[str],
    log: bool = False,
    numbers: Sequence[int] = (),
    beside: Sequence[str] = (),
    lines: Sequence[str] = (),
) -> str:
    """A panel as SVG: a circle and a diamond on each row over a zero line, with a
    thick connector and the word FLIP on a flip.

    numbers  the rows' own, where they are not 0, 1, 2, ..
    beside   what stands at the right of each row
    lines    what stands below it
    """
    axis = symlog if log else float
    values = [settled(v) for v in (*panel.correct, *panel.faulty) if math.isfinite(v)]
    low, high = axis(min([0.0, *values])), axis(max([0.0, *values]))

    def x(value: float) -> float:
        share = (axis(settled(value)) - low) / ((high - low) or 1.0)
        return round(LEFT + 12 + (WIDTH - 24) * share, 1)

    rows, shaded = _rows(panel, x, ROW), False
    for row, prompt in enumerate(prompts):
        shaded ^= row > 0 and prompt != prompts[row - 1]
        named = " ".join((prompt if len(prompt) < 7 else prompt[:5] + "…").split())
        number = numbers[row] if numbers else row
        rows[row] |= {"label": f"{number}  {named}", "shaded": shaded}
    for marks, text in zip(rows, beside):
        marks["beside"] = text
    right = LETTER * max(map(len, beside), default=0)
    foot = ROW * len(rows) + 6
    return rendered(
        "rows.svg.jinja",
        title=" ".join(panel.title.split()),
        rows=rows,
        row_height=ROW,
        width=LEFT + WIDTH + ROOM + right,
        right=LEFT + WIDTH + ROOM,
        height=foot + 36 + 20 * len(lines),
        middle=LEFT + WIDTH / 2,
        foot=foot,
        zero=x(0.0),
        ticks=_ticks(values, x),
        lines=lines,
        grey=GREY,
        size=5,
    )


def thumbnail(panel: Panel, width: int, height: int, log: bool = False) -> str:
    """A panel as a small SVG without words, 0 in its middle."""
    axis = symlog if log else float
    values = [v for v in (*panel.correct, *panel.faulty) if math.isfinite(v)]
    reach = max((abs(axis(settled(v))) for v in values), default=0) or 1
    gap = (height - EDGE) / max(len(panel.correct), 1)

    def x(value: float) -> float:
        return width / 2 + (width / 2 - EDGE) * axis(settled(value)) / reach

    return rendered(
        "rows.svg.jinja",
        title="",
        rows=_rows(panel, x, gap, EDGE / 2),
        width=width,
        height=height,
        foot=height,
        zero=width / 2,
        ticks=[],
        lines=[],
        grey=GREY,
        size=round(min(4.5, gap / 2 + 1), 1),
    )


def _rows(
    panel: Panel, x: Callable[[float], float], height: float, top: float = 0
) -> list[dict[str, Any]]:
    """Where each row's marks stand; None for a value that has no mark."""
    pairs = enumerate(zip(panel.correct, panel.faulty))
    return [
        {
            "y": top + height * (row + 0.5),
            "a": x(a) if math.isfinite(a) else None,
            "b": x(b) if math.isfinite(b) else None,
            "flips": any(panel.flips[row : row + 1]),
            "shaded": False,
            "beside": "",
        }
        for row, (a, b) in pairs
    ]


def _ticks(
    values: Sequence[float], x: Callable[[float], float]
) -> list[tuple[float, str]]:
    ticks = [(x(0.0), "0")]
    for end in (min(values, default=0.0), max(values, default=0.0)):
        if all(abs(x(end) - place) > 45 for place, _ in ticks):
            ticks.append((x(end), signed(end)))
    return ticks
