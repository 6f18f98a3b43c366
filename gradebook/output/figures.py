"""Rows as SVG, without scripts: on paper, in a notebook, as a small picture; and a
comparison as a notebook shows it.

>>> import gradebook
>>> bug, case = gradebook.bug("partial_groups"), gradebook.load("partial_groups")
>>> both = gradebook.compare(bug, case.batch())
>>> gradebook.figures.stage_figure(both, "baseline")[:4]
'<svg'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import ROW_STAGES, Comparison
from gradebook.bugs import Swap
from gradebook.core.batch import Batch
from gradebook.core.formatting import settled, signed
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.panels import (
    PARTS_OF_LOSS,
    Panel,
    kind_of,
    panels,
    squashes,
    stage_panel,
    summary,
    symlog,
    telling,
    written,
)
from gradebook.output.rendering import rendered

MOST = 40
"""So many rows are drawn of a comparison, those that differ first."""
ROW, LEFT, PLOT, ROOM = 20, 70, 560, 60
"""Pixels: a row's height, left of the plot, the plot, right of it."""
NARROW, LETTER, EDGE = 330, 7, 12
"""Pixels of a plot with words on its right, of a letter, around a small picture."""


class Figure(str):
    """A picture as SVG, which a notebook shows."""

    def _repr_html_(self) -> str:
        return f'<div style="background: #fff; max-width: 760px">{self}</div>'


def rows_figure(comparison: Comparison, kind: str = "") -> Figure:
    """Each row's advantage, or the part of its gradient that differs, under both
    engines.

    kind  "advantage" or "gradient"; default: what differs
    """
    panel = telling(panels(comparison, kind or kind_of(comparison)))
    rows = first_rows(panel)
    prompts = [str(p) for p in comparison.batch.prompt[rows].tolist()]
    return picture(panel.of(rows), prompts, squashes([panel]), rows)


def stage_figure(
    comparison: Comparison,
    stage: str,
    row: int = -1,
    names: tuple[str, str] = ("correct", "faulty"),
    prompts: Sequence[str] = (),
) -> Figure:
    """A stage's result on each row, correct and faulty, with its digits. Flags
    stand at no and yes, and groups at their number. The loss has three lines,
    itself and its two parts.

    row      the selected row, -1 for none
    names    what the engines are called
    prompts  the rows' prompts as typed
    """
    whole = stage_panel(comparison, stage)
    rows = first_rows(whole, row)
    prompts = prompts or [str(p) for p in comparison.batch.prompt.tolist()]
    whose: dict[str, Any] = {"numbers": rows, "prompts": [prompts[r] for r in rows]}
    if stage == "loss":
        whose = {"numbers": [""] * 3, "prompts": [*PARTS_OF_LOSS.values()]}
    left_out = len(whole.correct) - len(rows)
    title = f"{stage}: ● {names[0]}, ◇ {names[1]}"
    title += f"; {left_out} more rows are not drawn" if left_out else ""
    panel, beside = replace(whole.of(rows), title=title), []
    for a, b, differs in zip(panel.correct, panel.faulty, panel.differs):
        texts = written(a, b, 6 if stage == "loss" else 3)
        beside.append(" → ".join(texts) if differs else texts[0])
    log = squashes([whole])
    return picture(panel, log=log, beside=beside, at=row, plot=NARROW, **whose)


def first_rows(panel: Panel, row: int = -1) -> list[int]:
    """The rows that are drawn, in order: of many, `row` and those that differ first."""
    differs = panel.differs
    rows = sorted(range(len(differs)), key=lambda r: (r != row, not differs[r]))
    return sorted(rows[:MOST])


def picture(
    panel: Panel,
    prompts: Sequence[str],
    log: bool = False,
    numbers: Sequence[object] = (),
    beside: Sequence[str] = (),
    lines: Sequence[str] = (),
    at: int = -1,
    plot: int = PLOT,
) -> Figure:
    """A panel as SVG: a circle and a diamond on each row over a zero line, with a
    thick connector and the word FLIP on a flip.

    numbers  the rows' own, where they are not 0, 1, 2, ..
    beside   what stands at the right of each row
    lines    what stands below it
    at       the number of the selected row
    plot     the width of the plot in pixels
    """
    values = [0.0, *finite(panel)]
    x = _axis(min(values), max(values), LEFT + 12, LEFT + plot - 12, log)
    ticks = {x(0.0): _tick(panel, 0.0)}
    for end in (min(values), max(values)):
        if all(abs(x(end) - place) > 45 for place in ticks):
            ticks[x(end)] = _tick(panel, end)
    rows, shaded = _marks(panel, x, ROW), False
    for row, prompt in enumerate(prompts):
        shaded ^= row > 0 and prompt != prompts[row - 1]
        named = " ".join((prompt if len(prompt) < 7 else prompt[:5] + "…").split())
        number = numbers[row] if numbers else row
        label = f"{'▸' * (number == at)}{number}  {named}"
        rows[row] |= {"label": label, "shaded": shaded}
    for marks, text in zip(rows, beside):
        marks["beside"] = text
    right = LEFT + plot + ROOM
    foot = ROW * len(rows) + 6
    svg = rendered(
        "rows.svg.jinja",
        title=" ".join(panel.title.split()),
        rows=rows,
        row_height=ROW,
        width=right + LETTER * max(map(len, beside), default=0),
        right=right,
        height=foot + 36 + 20 * len(lines),
        middle=LEFT + plot / 2,
        foot=foot,
        zero=x(0.0),
        ticks=ticks,
        lines=lines,
        size=5,
    )
    return Figure(svg)


def thumbnail(panel: Panel, width: int, height: int, log: bool = False) -> Figure:
    """A panel as a small SVG without words, 0 in its middle."""
    reach = max(map(abs, finite(panel)), default=0.0)
    gap = (height - EDGE) / max(len(panel.correct), 1)
    x = _axis(-reach, reach, EDGE, width - EDGE, log)
    svg = rendered(
        "rows.svg.jinja",
        title="",
        rows=_marks(panel, x, gap, EDGE / 2),
        width=width,
        height=height,
        foot=height,
        zero=width / 2,
        ticks={},
        lines=[],
        size=round(min(4.5, gap / 2 + 1), 1),
    )
    return Figure(svg)


def finite(panel: Panel) -> list[float]:
    """The values of both engines that have a place on an axis."""
    return [v for v in (*panel.correct, *panel.faulty) if math.isfinite(v)]


def _axis(
    low: float, high: float, left: float, right: float, log: bool
) -> Callable[[float], float]:
    scale = symlog if log else float
    start, reach = scale(low), scale(high) - scale(low)

    def x(value: float) -> float:
        share = (scale(settled(value)) - start) / reach if reach else 0.5
        return round(left + (right - left) * share, 1)

    return x


def _tick(panel: Panel, value: float) -> str:
    kind = type(panel.correct[0]) if panel.correct else float
    if kind is float and not value:
        return "0"
    return written(kind(value), kind(value), write=signed)[0]


def _marks(
    panel: Panel, x: Callable[[float], float], height: float, top: float = 0
) -> list[dict[str, Any]]:
    """Where each row's marks stand; None for a value that has no mark."""
    return [
        {
            "y": top + height * (row + 0.5),
            "a": x(a) if math.isfinite(a) else None,
            "b": x(b) if math.isfinite(b) else None,
            "flips": any(panel.flips[row : row + 1]),
            "shaded": False,
            "beside": "",
        }
        for row, (a, b) in enumerate(zip(panel.correct, panel.faulty))
    ]


# A notebook: the verdict, the rows and the stages


@dataclass(frozen=True, eq=False)
class Shown(Comparison):
    """A comparison that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        """Summary, picture of the rows, stages."""
        kind = kind_of(self)
        rows = first_rows(telling(panels(self, kind)))
        stages = []
        for stage in ROW_STAGES:
            whole = stage_panel(self, stage)
            panel = whole.of(rows)
            pairs = zip(panel.correct, panel.faulty, panel.differs)
            cells = [(*written(a, b, write=signed), differs) for a, b, differs in pairs]
            differs = any(whole.differs)
            stages.append({"name": stage, "differs": differs, "cells": cells})
        first = next(iter(self.diverging), "")
        lead = f"The engines part at the stage {first}. " if first else ""
        return rendered(
            "notebook.html.jinja",
            summary=lead + summary(self, kind),
            picture=Markup(rows_figure(self, kind)),
            rows=rows,
            stages=stages,
            left_out=self.batch.rows - len(rows),
        )


def compare(bug: Swap, batch: Batch) -> Shown:
    """Both engines on `batch`. Raises GradebookError where one cannot.

    Here, strides of two rows take the third row for the fourth's group.

    >>> import gradebook
    >>> settings = gradebook.Settings(scale="none", group_size=2)
    >>> batch = Batch(
    ...     prompt=[0, 0, 0, 1], reward=[0, 3, 3, 5], settings=settings
    ... )
    >>> both = compare(gradebook.bug("partial_groups"), batch)
    >>> both.correct.advantage.tolist(), both.faulty.advantage.tolist()
    ([-2.0, 1.0, 1.0, 0.0], [-1.5, 1.5, -1.0, 1.0])
    >>> both.flips.tolist()
    [False, False, True, False]
    """
    return Shown(batch, run(CORRECT, batch), run(bug.engine, batch))
