"""Who moves whom: the influence maps of both engines, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradebook.core.formatting import settled, signed
from gradebook.output.figures.base import (
    FAULTY,
    GREY,
    INK,
    NAMES,
    Figure,
    note,
    rect,
    styled,
)

LEGEND = (
    "+: the row moves up, −: down. A stronger shade: it moves more.<br>"
    "Thin frame: rows of one prompt. Thick frame: a leak."
)


@dataclass(frozen=True)
class MapPicture:
    """Who moves whom, both engines: values [row moved][row that moves it],
    which cells leak (faulty side), and the prompt of each row."""

    correct: Sequence[Sequence[float]]
    faulty: Sequence[Sequence[float]]
    leaks: Sequence[Sequence[bool]]
    prompts: Sequence[str]
    ink: str = INK["light"]
    names: tuple[str, str] = NAMES


def map_figure(picture: MapPicture) -> Figure:
    """Both maps side by side: a cell has a stronger shade the more it
    moves, with its sign; prompts in a thin frame, leaks in a thick one."""
    count = len(picture.prompts)
    cell = max(8, min(30, 380 // max(count, 1)))
    sides = (picture.correct, picture.faulty)
    sizes = [abs(v) for side in sides for line in side for v in line]
    largest = max([size for size in sizes if math.isfinite(size)] + [1e-12])
    data, axes, shapes = [], {}, []
    words = [note(LEGEND, "x", 0, -52, 12) | {"xref": "paper"}]
    for column, (name, values) in enumerate(zip(picture.names, sides)):
        axis = "x2" if column else "x"
        axes["xaxis" + axis[1:]] = _axis(count, "row that moves it") | {
            "range": [-0.5, count - 0.5],
            "domain": [0.52 * column, 0.48 + 0.52 * column],
            "anchor": "y",
        }
        leaks = picture.leaks if column else [[False] * count] * count
        data.append(
            _cells(values, leaks, largest, cell) | {"name": name, "xaxis": axis}
        )
        shapes += [
            _frame((j, j), (i, i), axis, {"color": FAULTY, "width": 3})
            for i in range(count)
            for j in range(count)
            if leaks[i][j]
        ]
        runs = _runs(picture.prompts)
        shapes += [
            _frame(b, a, axis, {"color": GREY, "width": 1.5})
            for a in runs
            for b in runs
            if picture.prompts[a[0]] == picture.prompts[b[0]]
        ]
        words.append(note(f"<b>{name}</b>", axis, 1, size=14))
    return styled(
        data,
        picture.ink,
        height=cell * count + 130,
        left=44,
        margin={"l": 44, "r": 8, "t": 34, "b": 96, "autoexpand": False},
        shapes=shapes,
        annotations=words,
        yaxis=_axis(count, "moved row") | {"range": [count - 0.5, -0.5]},
        **axes,
    )


def _axis(count: int, title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 10},
        "tickmode": "array",
        "tickvals": list(range(0, count, max(1, math.ceil(count / 16)))),
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _cells(
    values: Sequence[Sequence[float]],
    leaks: Sequence[Sequence[bool]],
    largest: float,
    cell: int,
) -> dict[str, Any]:
    """A heatmap of the root of each size, with signs where there is room."""
    written = [[signed(settled(v)) for v in line] for line in values]
    tones = ((0, 0.75), (0.5, 0), (1, 0.75))
    return {
        "type": "heatmap",
        "z": [
            [
                math.copysign(math.sqrt(min(1.0, abs(settled(v)) / largest)), v)
                if math.isfinite(v)
                else None
                for v in line
            ]
            for line in values
        ],
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[at, f"rgba(128,128,128,{a})"] for at, a in tones],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": [
            [text[0] if text[0] in "+−" else "" for text in line] for line in written
        ],
        "texttemplate": "%{text}" if cell >= 16 else "",
        "hovertext": [
            [
                f"row {j} moves row {i} by {text}"
                + ("<br>a leak" if leaks[i][j] else "")
                for j, text in enumerate(line)
            ]
            for i, line in enumerate(written)
        ],
        "hoverinfo": "text",
    }


def _runs(prompts: Sequence[str]) -> list[tuple[int, int]]:
    """First and last row of each run of rows with one prompt."""
    firsts = [r for r, p in enumerate(prompts) if r == 0 or prompts[r - 1] != p]
    return list(zip(firsts, [first - 1 for first in firsts[1:]] + [len(prompts) - 1]))


def _frame(
    x: tuple[int, int], y: tuple[int, int], axis: str, line: dict[str, Any]
) -> dict[str, Any]:
    """A frame around the cells from the first to the last, on both axes."""
    across, down = ((a - 0.5, b + 0.5) for a, b in (x, y))
    return rect(across, down, axis, line=line)
