"""A panel of rows as inline SVG, for paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import symlog
from gradebook.output.panels import Panel
from gradebook.output.rendering import rendered

GREY = "#767676"

ROW, LEFT, WIDTH, ROOM = 20, 70, 560, 60
"""Pixels: a row's height, left of the plot, the plot, right of it."""


def picture(
    panel: Panel,
    prompts: Sequence[str],
    log: bool = False,
    numbers: Sequence[int] = (),
) -> str:
    """A panel as inline SVG: a circle and a diamond on each row over a
    zero line, with a thick connector and the word FLIP on a flip. `numbers`
    are the rows' own, where they are not 0, 1, 2, .."""
    axis = symlog if log else float
    values = [settled(v) for v in (*panel.correct, *panel.faulty) if math.isfinite(v)]
    low, high = axis(min([0.0, *values])), axis(max([0.0, *values]))

    def x(value: float) -> float:
        share = (axis(settled(value)) - low) / ((high - low) or 1.0)
        return round(LEFT + 12 + (WIDTH - 24) * share, 1)

    rows, shaded = [], False
    for row, prompt in enumerate(prompts):
        shaded ^= row > 0 and prompt != prompts[row - 1]
        a, b = panel.correct[row], panel.faulty[row]
        rows.append(
            {
                "y": row * ROW + ROW / 2,
                "label": _label(numbers[row] if numbers else row, prompt),
                "shaded": shaded,
                "a": x(a) if math.isfinite(a) else None,
                "b": x(b) if math.isfinite(b) else None,
                "flips": bool(panel.flips[row]),
            }
        )
    return rendered(
        "rows.svg.jinja",
        title=" ".join(panel.title.split()),
        rows=rows,
        row_height=ROW,
        width=LEFT + WIDTH + ROOM,
        middle=LEFT + WIDTH / 2,
        foot=ROW * len(rows) + 6,
        zero=x(0.0),
        ticks=_ticks(values, x),
        grey=GREY,
    )


def _label(number: int, prompt: str) -> str:
    """The row's number and its prompt, cut to the room there is."""
    named = prompt if len(prompt) < 7 else prompt[:5] + "…"
    return f"{number}  {' '.join(named.split())}"


def _ticks(
    values: Sequence[float], x: Callable[[float], float]
) -> list[tuple[float, str]]:
    """Where 0, the least and the greatest value stand, and their digits."""
    ticks = [(x(0.0), "0")]
    for end in (min(values, default=0.0), max(values, default=0.0)):
        if all(abs(x(end) - at) > 45 for at, _ in ticks):
            ticks.append((x(end), signed(end)))
    return ticks
