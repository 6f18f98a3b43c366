"""SVG without scripts: rows, on paper, in a notebook or as a small picture; a
comparison as a notebook shows it; and the pipeline as a map.

>>> import gradebook
>>> bug, case = gradebook.bug("partial_groups"), gradebook.load("partial_groups")
>>> both = gradebook.compare(bug, case.batch())
>>> gradebook.figures.stage_figure(both, "baseline")[:4]
'<svg'
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import ROW_STAGES, Comparison
from gradebook.bugs import BUGS, Swap
from gradebook.cases.scenario import bug, by_stage, by_trainer
from gradebook.core.batch import Batch
from gradebook.core.formatting import settled, short, signed
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output import panels
from gradebook.output.axes import Axis, unit_of
from gradebook.output.panels import Panel, stage_panel, telling, written
from gradebook.output.rendering import rendered

MOST = 40
"""The most rows of a comparison that are drawn: 800 pixels, about a screen. Rows that
differ come first."""
ROW, LEFT, PLOT, ROOM = 20, 70, 560, 60
"""Pixels: a row's height (a mark has 10), left of the plot (10 letters: the number of
the row and 6 letters of its prompt), the plot, right of it (the word FLIP)."""
NARROW, LETTER, EDGE = 330, 7, 12
"""Pixels of a plot with words on its right, of a letter, at a plot's ends, where half a
mark needs 5."""
TICK = 45
"""Pixels between two ticks, at least: a number of four digits has six letters."""


class Figure(str):
    """A picture as SVG, which a notebook shows."""

    def _repr_html_(self) -> str:
        return f'<div style="background: #fff; max-width: 760px">{self}</div>'


def rows_figure(comparison: Comparison, kind: str = "") -> Figure:
    """Each row's advantage, or the part of its gradient that differs, under both
    engines. `kind` is "advantage" or "gradient"; default: what differs."""
    panel = telling(comparison, kind)
    rows = first_rows(panel)
    prompts = [str(p) for p in comparison.batch.prompt[rows].tolist()]
    return picture(panel.of(rows), prompts, rows)


def stage_figure(
    comparison: Comparison,
    stage: str,
    row: int = -1,
    names: tuple[str, str] = ("correct", "faulty"),
    prompts: Sequence[str] = (),
) -> Figure:
    """A stage's result on each row, correct and faulty, with its digits. Flags are
    drawn at no and yes, and groups at their number; a stage of tokens has the sum over
    the row's tokens. `row` is the selected one, -1 for none; `prompts` are as typed."""
    whole = stage_panel(comparison, stage)
    rows = first_rows(whole, row)
    prompts = prompts or [str(p) for p in comparison.batch.prompt.tolist()]
    numbers = [f"{'▸' * (number == row)}{number}" for number in rows]
    left_out = len(whole.correct) - len(rows)
    title = f"{stage}: ● {names[0]}, ◇ {names[1]}"
    title += f"; {left_out} more rows are not drawn" if left_out else ""
    panel, beside = replace(whole.of(rows), title=title), []
    for a, b, differs in zip(panel.correct, panel.faulty, panel.differs):
        texts = written(a, b)
        beside.append(" → ".join(texts) if differs else texts[0])
    return picture(panel, [prompts[r] for r in rows], numbers, beside, plot=NARROW)


def first_rows(panel: Panel, row: int = -1) -> list[int]:
    """The rows that are drawn, in order: of many, `row` and those that differ first."""
    differs = panel.differs
    rows = sorted(range(len(differs)), key=lambda r: (r != row, not differs[r]))
    return sorted(rows[:MOST])


def picture(
    panel: Panel,
    prompts: Sequence[str],
    numbers: Sequence[object] = (),
    beside: Sequence[str] = (),
    lines: Sequence[str] = (),
    plot: int = PLOT,
    axis: Axis | None = None,
    labels: Sequence[str] | None = None,
) -> Figure:
    """A panel as SVG: a circle and a diamond on each row over a zero line, with a
    thick connector and the word FLIP on a flip. `numbers` are the rows' own, if they
    are not 0, 1, 2, ..; `beside` are texts at their right, `lines` texts below all;
    `plot` is the plot's width in pixels, `axis` another one than fits the values.
    `labels` replace number and prompt at the left; neighbours with the same prompt have
    the same ground."""
    zero = type(panel.correct[0])() if panel.correct else 0.0
    values = [zero, *panel.finite]
    axis = axis or Axis(min(values), max(values), unit_of(values))
    left = max([LEFT, *(LETTER * len(label) for label in labels or ())])
    x = _places(axis, left + EDGE, left + plot - EDGE)
    ticks: dict[float, str] = {}
    for value in (zero, axis.low, axis.high):
        if all(abs(x(value) - place) > TICK for place in ticks):
            ticks[x(value)] = written(value, value, digits=4, write=short)[0]
    rows, shaded = _marks(panel, x, ROW), False
    for row, prompt in enumerate(prompts):
        shaded ^= row > 0 and prompt != prompts[row - 1]
        named = " ".join((prompt if len(prompt) < 7 else prompt[:5] + "…").split())
        label = f"{numbers[row] if numbers else row}  {named}"
        label = labels[row] if labels else label
        rows[row] |= {"label": label, "shaded": shaded}
    for marks, text in zip(rows, beside):
        marks["beside"] = text
    right = left + plot + ROOM
    foot = ROW * len(rows) + 6
    svg = rendered(
        "rows.svg.jinja",
        title=" ".join(panel.heading.split()),
        rows=rows,
        row_height=ROW,
        width=right + LETTER * max(map(len, beside), default=0),
        right=right,
        height=foot + 36 + 20 * len(lines),
        middle=left + plot / 2,
        foot=foot,
        zero=x(0.0),
        ticks=ticks,
        lines=lines,
        size=5,
    )
    return Figure(svg)


def thumbnail(panel: Panel, width: int, height: int) -> Figure:
    """A panel as a small SVG without words, 0 in its middle."""
    reach = max(map(abs, panel.finite), default=0.0)
    gap = (height - EDGE) / max(len(panel.correct), 1)
    x = _places(Axis(-reach, reach, unit_of(panel.finite)), EDGE, width - EDGE)
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


def _places(axis: Axis, left: float, right: float) -> Callable[[float], float]:
    """The place of a value, in pixels; a value beyond an end is drawn at the end."""

    def x(value: float) -> float:
        share = min(max(axis.share(settled(value)), 0.0), 1.0)
        return round(left + (right - left) * share, 1)

    return x


def _marks(
    panel: Panel, x: Callable[[float], float], height: float, top: float = 0
) -> list[dict[str, Any]]:
    """The place of each row's marks; None for a value that has no mark."""
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
class NotebookComparison(Comparison):
    """A comparison that a notebook shows as a verdict, a picture and a table."""

    def _repr_html_(self) -> str:
        rows, stages = first_rows(telling(self)), []
        for stage in ROW_STAGES:
            whole = stage_panel(self, stage)
            panel = whole.of(rows)
            pairs = zip(panel.correct, panel.faulty, panel.differs)
            cells = [(*written(a, b, write=signed), differs) for a, b, differs in pairs]
            differs = any(whole.differs)
            stages.append({"name": stage, "differs": differs, "cells": cells})
        first = next(iter(self.diverging), "")
        lead = f"The engines first differ at the stage {first}. " if first else ""
        return rendered(
            "notebook.html.jinja",
            summary=lead + panels.summary(telling(self)),
            picture=Markup(rows_figure(self)),
            rows=rows,
            stages=stages,
            left_out=self.batch.rows - len(rows),
        )


def compare(bug: Swap, batch: Batch) -> NotebookComparison:
    """Both engines on `batch`. Raises GradebookError if one cannot.

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
    return NotebookComparison(batch, run(CORRECT, batch), run(bug.engine, batch))


# The pipeline as a map: its stages in order, and at each stage the bugs that break it,
# every one a link

ASKS = {
    "score": "the reward, after bias, scaling and clip",
    "credited": "may the row earn an advantage?",
    "counted": "does it count in its group's mean?",
    "group": "which rows are compared?",
    "baseline": "the mean of the rows that count",
    "scale": "what the distance is divided by",
    "standardized": "(score − baseline) / scale",
    "advantage": "the weight of the row's tokens",
    "trained": "do its tokens enter the loss?",
    "token_reward": "what each token is paid",
    "token_return": "what it is owed for what follows",
    "token_advantage": "what it is trained with",
    "learns": "does the token enter the loss?",
    "log_ratio": "how far the policy is from its anchor",
    "surrogate": "the policy's loss at the token",
    "off_policy": "its weight, sampled by another engine",
    "kl": "how far it is from the reference",
    "weight": "how much the token counts",
}
"""Stage -> what it computes, in a few words."""

COLUMN, LEFT_EDGE, HEAD, FLOOR = 120, 36, 108, 34
"""Pixels of the wide map: a stage's width, the left edge, the heading's
height, and the space between the pipe and the lowest bug."""


def map_file(base: str) -> str:
    """The map as a file: the stages from left to right, with addresses of bugs
    that begin with `base`."""
    stages: list[dict[str, Any]] = []
    for stage, bugs in by_stage().items():
        tiles: list[dict[str, Any]] = []
        top = -FLOOR
        for record in reversed([*map(bug, bugs)]):  # from the pipe upwards
            facts = [f"{report.trainer}: {report.words}" for report in record.status]
            title = textwrap.wrap(record.title, 12, break_long_words=False)
            height = 17 * len(title) + 15 * len(facts) + 17
            top -= height
            tile = {"bug": record, "title": title, "facts": facts, "height": height}
            tiles.append(tile | {"href": f"{base}/{record.name}", "at": top})
        place = LEFT_EDGE + COLUMN * len(stages)
        column = {"name": stage, "asks": ASKS[stage], "tiles": tiles, "at": place}
        stages.append(column)
    every = [tile for column in stages for tile in column["tiles"]]
    pipe = HEAD - min(tile["at"] for tile in every)
    for tile in every:
        tile["at"] += pipe
    return rendered(
        "map.svg.jinja",
        title="Where advantage normalization goes wrong",
        subtitle=f"{len(BUGS)} bugs that were found in {len(by_trainer())} trainers for"
        " language models, by the stage they break",
        stages=stages,
        width=2 * LEFT_EDGE + COLUMN * len(stages),
        height=pipe + 132,
        edge=LEFT_EDGE,
        column=COLUMN,
        pipe=pipe,
        legend=[
            "a stage of the correct computation, the same on every page",
            "a bug: the trainer computed this stage differently,"
            " usually without a crash",
        ],
    )
