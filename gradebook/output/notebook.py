"""A comparison as a notebook shows it: the verdict, the rows and the stages, without
Plotly and without scripts."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from gradebook.analysis import comparison as comparisons
from gradebook.analysis.comparison import Comparison
from gradebook.bugs import Swap
from gradebook.core.batch import Batch
from gradebook.core.formatting import signed
from gradebook.output.figures import first_rows, rows_figure
from gradebook.output.panels import kind_of, panels, stage_panel, telling, written
from gradebook.output.panels import summary as in_one_sentence
from gradebook.output.rendering import rendered


@dataclass(frozen=True, eq=False)
class Shown(Comparison):
    """A comparison that shows itself in a notebook."""

    def _repr_html_(self) -> str:
        return html(self)


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
    both = comparisons.compare(bug, batch)
    return Shown(both.batch, both.correct, both.faulty)


def summary(comparison: Comparison) -> str:
    """What the two engines make of the batch, in one or two sentences."""
    first = next(iter(comparison.diverging), "")
    lead = f"The engines part at the stage {first}. " if first else ""
    return lead + in_one_sentence(comparison, kind_of(comparison))


def html(comparison: Comparison) -> str:
    """The comparison as HTML: summary, picture of the rows, stages."""
    kind = kind_of(comparison)
    rows = first_rows(telling(panels(comparison, kind)))
    stages = []
    for stage in comparison.stages:
        if stage != "loss":
            whole = stage_panel(comparison, stage)
            panel = whole.of(rows)
            pairs = zip(panel.correct, panel.faulty, panel.differs)
            cells = [(*written(a, b, write=signed), differs) for a, b, differs in pairs]
            differs = any(whole.differs)
            stages.append({"name": stage, "differs": differs, "cells": cells})
    return rendered(
        "notebook.html.jinja",
        summary=summary(comparison),
        picture=Markup(rows_figure(comparison, kind)),
        rows=rows,
        stages=stages,
        left_out=comparison.batch.rows - len(rows),
    )
