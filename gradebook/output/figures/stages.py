"""One stage of the pipeline row by row, with both engines side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import pair, plain, settled
from gradebook.output.figures.base import (
    GREY,
    INK,
    NAMES,
    SIDES,
    Figure,
    band,
    colour_axes,
    marks,
    pieces,
    row_layout,
    safe,
    said,
    symlog,
    symlog_ticks,
)
from gradebook.output.panels import SQUASHED

MANY = 20
"""Beyond so many rows, the selected row's group comes first."""

MOST = 60
"""At most so many rows are drawn; a note says how many are not."""

LINE = 26
"""Pixels from row to row."""


class Line(NamedTuple):
    """A stage's result on a row, or a part of the loss."""

    label: str
    correct: float | bool | int
    faulty: float | bool | int
    differs: bool
    digits: int = 3

    def texts(self, write: Callable[[float, int], str] = plain) -> tuple[str, str]:
        """Both results: yes or no, the number of a group or none, or digits
        that tell them apart."""
        a, b = self.correct, self.faulty
        if isinstance(a, bool):
            return ("yes" if a else "no", "yes" if b else "no")
        if isinstance(a, int):
            return ("none" if a < 0 else str(a), "none" if b < 0 else str(b))
        return pair(a, b, self.digits, write)


def lines_of(comparison: Comparison, stage: str, labels: Sequence[str]) -> list[Line]:
    """A stage's result on each row; of the loss, itself and its parts."""
    if stage == "loss":
        return _losses(comparison)
    values = (
        getattr(trace, stage).tolist()
        for trace in (comparison.correct, comparison.faulty)
    )
    return list(map(Line, labels, *values, comparison.differs(stage).tolist()))


def stage_figure(
    comparison: Comparison,
    stage: str,
    row: int = -1,
    names: tuple[str, str] = NAMES,
    ink: str = INK["light"],
    prompts: Sequence[str] = (),
) -> Figure:
    """A stage's result on each row, correct and faulty side by side.

    Numbers stand on an axis from 0, with their digits beside the mark. Flags
    stand at no and yes, and groups at their number, with a line through the
    rows of a group. A label with ≠ marks a row whose results differ. The
    loss has three lines, itself and its two parts.

    row      the selected row, -1 for none
    names    what the engines are called
    prompts  the rows' prompts as typed
    """
    labels, left_out = labels_of(comparison, row, prompts), 0
    lines = lines_of(comparison, stage, labels)
    if stage != "loss":
        order = order_of(comparison, row)
        left_out = max(0, len(order) - MOST)
        lines = [lines[r] for r in order[:MOST]]
    return _drawn(lines, names, ink, left_out)


def _losses(comparison: Comparison) -> list[Line]:
    """The loss and its two parts, summed over steps."""
    parts = ("loss", "policy_loss", "kl_loss")
    lines = []
    for part, title in zip(parts, ("loss", "policy part", "KL part")):
        a, b = (
            float(getattr(trace, part).sum())
            for trace in (comparison.correct, comparison.faulty)
        )
        lines.append(Line(title, a, b, not same(a, b), 6))
    return lines


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


def labels_of(comparison: Comparison, row: int, prompts: Sequence[str]) -> list[str]:
    """'10 C', the selected row in bold type with an arrow."""
    if len(prompts) != comparison.batch.rows:
        prompts = [str(p) for p in comparison.batch.prompt.tolist()]
    return [
        f"<b>▸ {r} {prompt}</b>" if r == row else f"{r} {prompt}"
        for r, prompt in enumerate(safe(p)[:12] for p in prompts)
    ]


def _drawn(
    lines: Sequence[Line], names: tuple[str, str], ink: str, left_out: int
) -> Figure:
    """Both engines side by side, a band behind each line that differs, and a
    word on the rows left out."""
    labels = [f"{one.label} {'≠' if one.differs else ' '}" for one in lines]
    layout = row_layout(labels, LINE, 62 if left_out else 42, ink)
    data: list[dict[str, Any]] = []
    for column, name in enumerate(names):
        axis = "x" if column == 0 else "x2"
        values = [(one.correct, one.faulty)[column] for one in lines]
        on = {"xaxis": axis, "yaxis": "y"}
        data += [trace | on for trace in _side(lines, values, column)]
        layout["xaxis" + axis[1:]] = _axis(lines) | {
            "domain": SIDES[column],
            "anchor": "y",
        }
        layout["annotations"].append(said(f"<b>{name}</b>", axis, 1, 0))
    layout["shapes"] = [band(at) for at, one in enumerate(lines) if one.differs]
    if left_out:
        text = f"{left_out} more rows are not drawn."
        layout["annotations"].append(said(text, "x", 0, -34))
    colour_axes(layout, ink)
    return Figure(data=data, layout=layout)


def _side(
    lines: Sequence[Line], values: Sequence[Any], column: int
) -> list[dict[str, Any]]:
    """The stems of one engine's numbers, or lines through the rows of each
    group; then its marks."""
    x = _place(lines)
    seen = [at for at, value in enumerate(values) if math.isfinite(value)]
    stems: list[tuple[list[Any], list[Any]]] = []
    if _is_number(lines):
        stems = [([0, x(values[at])], [at, at]) for at in seen]
    elif not isinstance(values[0], bool):
        for group in dict.fromkeys(values):
            rows = [at for at, value in enumerate(values) if value == group]
            if group >= 0 and len(rows) > 1:
                stems.append(([group] * len(rows), rows))
    texts = [_shown(lines[at], column) for at in seen]
    hover = [
        f"{lines[at].label}: {text or values[at]}" for at, text in zip(seen, texts)
    ]
    shown = {
        "mode": "markers+text",
        "text": [f" {text} " for text in texts],
        "textposition": [
            "middle left" if values[at] < 0 else "middle right" for at in seen
        ],
        "textfont": {"size": 12},
    }
    dots = marks(column, [x(values[at]) for at in seen], seen, hover)
    return [pieces(stems, 1.5, GREY), dots | shown]


def _is_number(lines: Sequence[Line]) -> bool:
    return not lines or isinstance(lines[0].correct, float)


def _shown(line: Line, column: int) -> str:
    """The number with the digits that tell the two engines apart; '' for
    flags and groups, which the axis names."""
    return line.texts()[column] if isinstance(line.correct, float) else ""


def _numbers(lines: Sequence[Line]) -> list[float]:
    both = [float(v) for one in lines for v in (one.correct, one.faulty)]
    return [value for value in both if math.isfinite(value)]


def _squashes(lines: Sequence[Line]) -> bool:
    """A linear axis would hide most of the numbers."""
    sizes = sorted(abs(v) for v in _numbers(lines) if settled(v))
    return bool(sizes) and sizes[-1] > SQUASHED * sizes[len(sizes) // 2]


def _place(lines: Sequence[Line]) -> Any:
    """From a value to its place on the axis."""
    if _is_number(lines):
        return symlog if _squashes(lines) else float
    return int


def _axis(lines: Sequence[Line]) -> dict[str, Any]:
    """The same axis for both engines, with room for the digits."""
    x = _place(lines)
    values = [0.0, *map(x, _numbers(lines))]
    low, high = min(values), max(values)
    grid = {"gridcolor": "rgba(128,128,128,0.15)", "fixedrange": True}
    if lines and not _is_number(lines):
        groups = sorted({int(v) for v in values})
        words = ["none" if g < 0 else str(g) for g in groups]
        if isinstance(lines[0].correct, bool):
            groups, words = [0, 1], ["no", "yes"]
        shown = slice(None, None, max(1, len(groups) // 8))
        return grid | {
            "range": [groups[0] - 0.5, groups[-1] + 0.5],
            "tickmode": "array",
            "tickvals": groups[shown],
            "ticktext": words[shown],
            "zeroline": False,
        }
    texts = [_shown(one, side) for one in lines for side in (0, 1)]
    longest = max(map(len, texts), default=0)
    room = (high - low or 1.0) * 0.1 * longest
    ends = [low - room * (low < 0) - room / 8, high + room]
    axis = grid | {
        "range": ends,
        "zeroline": True,
        "zerolinecolor": GREY,
        "zerolinewidth": 1.5,
        "nticks": 4,
        "tickangle": 0,
        "exponentformat": "e",
    }
    if x is not symlog:
        return axis
    ticks = symlog_ticks(_numbers(lines))
    inside = [at for at in ticks["tickvals"] if low <= at <= high]
    marked = {0.0, *(e for e in (inside[0], inside[-1]) if abs(e) > (high - low) / 5)}
    pairs = zip(ticks["tickvals"], ticks["ticktext"])
    kept = [(at, text) for at, text in pairs if at in marked]
    return axis | ticks | dict(zip(("tickvals", "ticktext"), zip(*kept)))
