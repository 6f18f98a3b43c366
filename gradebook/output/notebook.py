"""A comparison as a notebook shows it: the verdict, the rows and the stages.

The picture is plain SVG, so that a saved notebook shows it wherever it is
read, without Plotly and without scripts.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import signed
from gradebook.output import panels
from gradebook.output.panels import Panel, lines_of
from gradebook.output.rendering import rendered
from gradebook.output.svg import picture

MOST = 24
"""So many rows are shown, those that differ first."""


def summary(comparison: Comparison) -> str:
    """What the two engines make of the batch, in one or two sentences."""
    first = next(iter(comparison.diverging), "")
    lead = f"The engines part at the stage {first}. " if first else ""
    return lead + panels.summary(comparison, _kind(comparison))


def _kind(comparison: Comparison) -> str:
    differs = bool(comparison.differs("advantage").any())
    return "advantage" if differs else panels.GRADIENT


def html(comparison: Comparison) -> str:
    """The comparison as HTML: summary, picture of the rows, stages."""
    whole = panels.telling(panels.panels(comparison, _kind(comparison)))
    equal = [same(a, b) for a, b in zip(whole.correct, whole.faulty)]
    rows = sorted(sorted(range(len(equal)), key=equal.__getitem__)[:MOST])
    panel = Panel(
        whole.title,
        [whole.correct[row] for row in rows],
        [whole.faulty[row] for row in rows],
        [whole.flips[row] for row in rows],
    )
    prompts = [str(p) for p in comparison.batch.prompt[rows].tolist()]
    return rendered(
        "notebook.html.jinja",
        summary=summary(comparison),
        picture=Markup(picture(panel, prompts, numbers=rows)),
        rows=rows,
        stages=[_stage(comparison, s, rows) for s in comparison.stages if s != "loss"],
        left_out=comparison.batch.rows - len(rows),
    )


def _stage(comparison: Comparison, name: str, rows: list[int]) -> dict[str, Any]:
    """A stage's result on the rows that are shown, as text."""
    lines = lines_of(comparison, name, [""] * comparison.batch.rows)
    cells = [(*lines[row].texts(signed), lines[row].differs) for row in rows]
    return {"name": name, "differs": any(x.differs for x in lines), "cells": cells}
