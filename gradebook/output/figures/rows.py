"""Rows as a chart: a circle and a diamond on each, joined where they differ.

The rows of a comparison, and the results of one stage, are one drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import flips, same
from gradebook.core.formatting import settled
from gradebook.engine.pipeline import STAGES
from gradebook.output.figures.base import (
    ABOVE,
    FAULTY,
    GREY,
    INK,
    NAMES,
    PALE,
    Figure,
    marks,
    note,
    pieces,
    rect,
    safe,
    styled,
    symlog,
    symlog_ticks,
)
from gradebook.output.panels import SQUASHED, Line, lines_of, panels

MANY = 20
"""Beyond so many rows, the selected row's group comes first."""
MOST = 60
"""At most so many rows are drawn; a note says how many are not."""
ROW = 28
"""Pixels from row to row."""

Place = Callable[[float], float]
"""From a value to its place on the axis."""


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
    columns = {}
    for panel in panels(comparison, kind):
        pairs = zip(panel.correct, panel.faulty)
        lines = [Line("", a, b, not same(a, b)) for a, b in pairs]
        columns[panel.title.replace(" (", "<br>(")] = lines
    return _drawn(comparison, columns, row, names, ink, ())


def stage_figure(
    comparison: Comparison,
    stage: str,
    row: int = -1,
    names: tuple[str, str] = NAMES,
    ink: str = INK["light"],
    prompts: Sequence[str] = (),
) -> Figure:
    """A stage's result on each row, correct and faulty, with its digits.

    Flags stand at no and yes, and groups at their number. A label with ≠
    marks a row whose results differ. The loss has three lines, itself and
    its two parts.

    row      the selected row, -1 for none
    names    what the engines are called
    prompts  the rows' prompts as typed
    """
    lines = lines_of(comparison, stage, [""] * comparison.batch.rows)
    return _drawn(comparison, {stage: lines}, row, names, ink, prompts)


def order_of(comparison: Comparison, row: int) -> list[int]:
    """The rows from top to bottom: as they are, or with many rows those
    first that either engine puts into one group with the selected row."""
    every = list(range(comparison.batch.rows))
    if len(every) <= MANY or not 0 <= row < len(every):
        return every
    groups = [comparison.correct.group, comparison.faulty.group]
    beside = [
        any(g[r] == g[row] and int(g[r]) >= 0 for g in groups) or r == row
        for r in every
    ]
    return sorted(every, key=lambda r: not beside[r])


def _drawn(
    comparison: Comparison,
    columns: dict[str, list[Line]],
    row: int,
    names: tuple[str, str],
    ink: str,
    prompts: Sequence[str],
) -> Figure:
    """Columns of lines side by side, each titled, with one axis of rows."""
    order = order_of(comparison, row)
    if len(prompts) != comparison.batch.rows:
        prompts = [str(p) for p in comparison.batch.prompt.tolist()]
    heads = [f"{r} {safe(prompts[r])[:12]}" for r in order]
    heads = [f"<b>▸ {h}</b>" if r == row else h for r, h in zip(order, heads)]
    if "loss" in columns:
        order, heads = [0, 1, 2], [line.label for line in columns["loss"]]
    left_out, order = max(0, len(order) - MOST), order[:MOST]
    columns = {title: [lines[r] for r in order] for title, lines in columns.items()}
    differs = [any(line.differs for line in each) for each in zip(*columns.values())]
    labels = [f"{h} {'≠' if d else ' '}" for h, d in zip(heads, differs)]
    data, axes, foot = [], {}, 68 + 20 * bool(left_out)
    for number, (title, lines) in enumerate(columns.items()):
        axis = {"xaxis": f"x{number + 1}" if number else "x", "yaxis": "y"}
        place = _place(lines)
        flipped = [_flips(title, line) for line in lines]
        parts = [*_joined(lines, flipped, place), *_marks(lines, labels, names, place)]
        parts.append(_words(lines, flipped, place, ink))
        for part in parts:
            data.append(part | axis | {"showlegend": "name" in part and not number})
        axes["xaxis" + axis["xaxis"][1:]] = _axis(lines, place) | {
            "title": {"text": title},
            "domain": [number / len(columns), (number + 0.94) / len(columns)],
            "anchor": "y",
        }
    more = f"{left_out} more rows are not drawn."
    return styled(
        data,
        ink,
        height=34 + ROW * max(len(order), 1) + foot,
        left=86,
        margin={"l": 86, "r": 12, "t": 34, "b": foot, "autoexpand": False},
        showlegend=True,
        legend=ABOVE,
        yaxis={
            "range": [len(order) - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": list(range(len(order))),
            "ticktext": labels[: len(order)],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        shapes=[
            rect((0, 1), (r - 0.5, r + 0.5), "paper", **BAND)
            for r, line_differs in enumerate(differs)
            if line_differs
        ],
        annotations=[note(more, "x", 0, -50)] if left_out else [],
        **axes,
    )


BAND = {"fillcolor": PALE, "line": {"width": 0}, "layer": "below"}
"""Behind a row whose results differ."""


def _values(lines: Sequence[Line]) -> list[float]:
    both = [float(v) for line in lines for v in (line.correct, line.faulty)]
    return [value for value in both if math.isfinite(value)]


def _is_number(lines: Sequence[Line]) -> bool:
    return not lines or isinstance(lines[0].correct, float)


def _place(lines: Sequence[Line]) -> Place:
    sizes = sorted(abs(v) for v in _values(lines) if settled(v))
    wide = len(sizes) > 2 and sizes[-1] > SQUASHED * sizes[len(sizes) // 2]
    return symlog if _is_number(lines) and wide else float


def _flips(title: str, line: Line) -> bool:
    shows = title == "advantage" or title not in STAGES
    return shows and bool(flips(line.correct, line.faulty))


def _joined(
    lines: Sequence[Line], flipped: Sequence[bool], place: Place
) -> list[dict[str, Any]]:
    """Lines between the marks that differ: thick ones where the sign flips."""
    pairs = [(place(line.correct), place(line.faulty)) for line in lines]
    seen = [r for r, both in enumerate(pairs) if all(map(math.isfinite, both))]
    return [
        pieces(
            [
                (pairs[r], [r, r])
                for r in seen
                if lines[r].differs and flipped[r] == thick
            ],
            width,
            colour,
        )
        for thick, width, colour in ((False, 2, GREY), (True, 5, FAULTY))
    ]


def _marks(
    lines: Sequence[Line], labels: Sequence[str], names: tuple[str, str], place: Place
) -> list[dict[str, Any]]:
    traces = []
    for side, name in enumerate(names):
        values = [(line.correct, line.faulty)[side] for line in lines]
        seen = [r for r, value in enumerate(values) if math.isfinite(value)]
        texts = [map(" ".join, zip(names, line.texts())) for line in lines]
        hover = ["<br>".join([labels[r], *texts[r]]) for r in seen]
        places = [place(values[r]) for r in seen]
        traces.append(marks(side, places, seen, hover) | {"name": name})
    return traces


def _words(
    lines: Sequence[Line], flipped: Sequence[bool], place: Place, ink: str
) -> dict[str, Any]:
    """Beside the marks: their digits, and FLIP."""
    texts, ends = [], []
    for line, flips_here in zip(lines, flipped):
        a, b = line.texts()
        text = f"{a} → {b}" if line.differs else a
        texts.append(f"   {text}" + "  <b>FLIP</b>" * flips_here)
        both = [place(v) for v in (line.correct, line.faulty) if math.isfinite(v)]
        ends.append(max(both, default=0.0))
    return {
        "type": "scatter",
        "mode": "text",
        "x": ends,
        "y": list(range(len(lines))),
        "text": texts if _is_number(lines) else ["" for _ in lines],
        "textposition": "middle right",
        "textfont": {"size": 12, "color": ink},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }


def _axis(lines: Sequence[Line], place: Place) -> dict[str, Any]:
    """An axis with 0 on it, and room at its right end for the words."""
    values = _values(lines)
    if lines and not _is_number(lines):
        levels = sorted({int(v) for v in values})
        words = ["none" if g < 0 else str(g) for g in levels]
        if isinstance(lines[0].correct, bool):
            levels, words = [0, 1], ["no", "yes"]
        shown = slice(None, None, max(1, len(levels) // 8))
        return {
            "range": [levels[0] - 0.5, levels[-1] + 0.5],
            "tickmode": "array",
            "tickvals": levels[shown],
            "ticktext": words[shown],
            "zeroline": False,
        }
    places = [0.0, *map(place, values)]
    low, high = min(places), max(places)
    room = high - low or 1.0
    axis: dict[str, Any] = {"range": [low - 0.06 * room, high + 0.55 * room]}
    if place is symlog:
        return axis | symlog_ticks(values)
    return axis | {"nticks": 5, "exponentformat": "e"}
