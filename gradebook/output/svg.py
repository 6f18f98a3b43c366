"""A panel of rows as inline SVG, for paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from gradebook.core.formatting import settled, signed
from gradebook.output.figures import CORRECT, FAULTY, symlog
from gradebook.output.panels import Panel

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
    sides = [
        [axis(settled(v)) for v in side]
        for side in (panel.correct, panel.faulty)
    ]
    seen = [v for side in sides for v in side if math.isfinite(v)] + [0.0]
    low, high = min(seen), max(seen)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(LEFT + 12 + (WIDTH - 24) * (value - low) / span, 1)

    rows = len(prompts)
    bottom = ROW * rows + 6
    parts = [*_bands(prompts), _rule(x(0.0), bottom)]
    for row, (a, b) in enumerate(zip(*sides)):
        flip = bool(panel.flips[row])
        label = _label(numbers[row] if numbers else row, prompts[row])
        parts += _row(row, label, _at(x, a), _at(x, b), flip)
    parts.append(_scale(panel, x, bottom, axis))
    said = f"{panel.title} of {rows} rows, correct and faulty"
    return (
        f'<svg viewBox="0 0 {LEFT + WIDTH + ROOM} {bottom + 36}" role="img"'
        f' aria-label="{_text(said)}" font-size="12" fill="#111">'
        + "".join(parts)
        + "</svg>"
    )


def _at(x: Any, value: float) -> float | None:
    return x(value) if math.isfinite(value) else None


def _rule(x: float, bottom: float) -> str:
    return (
        f'<line class="zero" x1="{x}" x2="{x}" y1="0" y2="{bottom}"'
        f' stroke="{GREY}" stroke-width="1.5"/>'
    )


def _bands(prompts: Sequence[str]) -> list[str]:
    """Every second run of rows of one prompt is shaded."""
    bands, odd = [], False
    for row, prompt in enumerate(prompts):
        if row and prompt != prompts[row - 1]:
            odd = not odd
        if odd:
            bands.append(
                f'<rect x="0" y="{row * ROW}" width="{LEFT + WIDTH + ROOM}"'
                f' height="{ROW}" fill="#eee"/>'
            )
    return bands


def _label(number: int, prompt: str) -> str:
    """The row's number and its prompt, cut to the room there is, as SVG
    text."""
    named = prompt if len(prompt) < 7 else prompt[:5] + "…"
    return f"{number}  {_text(named)}"


def _row(
    row: int, label: str, a: float | None, b: float | None, flip: bool
) -> list[str]:
    y = row * ROW + ROW / 2
    parts = [f'<text x="2" y="{y + 4}">{label}</text>']
    if a is not None and b is not None and a != b:
        width, colour = (5, FAULTY) if flip else (1.5, GREY)
        parts.append(
            f'<line x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{colour}"'
            f' stroke-width="{width}"/>'
        )
    if a is not None:
        parts.append(f'<circle cx="{a}" cy="{y}" r="5" fill="{CORRECT}"/>')
    if b is not None:
        parts.append(
            f'<path d="M{b} {y - 7}l7 7l-7 7l-7 -7z" fill="none"'
            f' stroke="{FAULTY}" stroke-width="2"/>'
        )
    if flip:
        right = max(v for v in (a, b) if v is not None) + 12
        parts.append(
            f'<text x="{right}" y="{y + 4}" font-weight="700">FLIP</text>'
        )
    return parts


def _scale(panel: Panel, x: Any, bottom: float, axis: Any) -> str:
    """The least and the greatest value and 0, and what is measured."""
    values = [
        settled(v) for v in (*panel.correct, *panel.faulty) if math.isfinite(v)
    ]
    ticks, parts = [0.0], []
    for end in (min(values, default=0.0), max(values, default=0.0)):
        if all(abs(x(axis(end)) - x(axis(t))) > 45 for t in ticks):
            ticks.append(end)
    for tick in ticks:
        at = x(axis(tick))
        parts.append(
            f'<text x="{at}" y="{bottom + 12}" text-anchor="middle">'
            f"{signed(tick) if tick else '0'}</text>"
        )
    middle = LEFT + WIDTH / 2
    parts.append(
        f'<text x="{middle}" y="{bottom + 30}" text-anchor="middle">'
        f"{_text(panel.title)}</text>"
    )
    return "".join(parts)


def _text(text: object) -> str:
    return escape(" ".join(str(text).split()))
