"""A comparison as a notebook shows it: the verdict, the rows and the stages.

The picture is plain SVG, so that a saved notebook shows it wherever it is
read, without Plotly and without scripts.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import signed
from gradebook.output import panels
from gradebook.output.lines import lines_of
from gradebook.output.panels import Panel
from gradebook.output.rendering import rendered
from gradebook.output.svg import picture

MOST = 24
"""So many rows are shown, those that differ first."""


@dataclass(frozen=True)
class _Stage:
    """A stage's result on the rows that are shown, as text."""

    name: str
    differs: bool
    cells: tuple[tuple[str, str, bool], ...]  # correct, faulty, differs


def summary(comparison: Comparison) -> str:
    """What the two engines make of the batch, in one or two sentences."""
    first = next(iter(comparison.diverging), "")
    lead = f"The engines part at the stage {first}. " if first else ""
    return lead + panels.summary(comparison, _kind(comparison))


def _kind(comparison: Comparison) -> str:
    """What the rows are shown by: the gradient where advantages agree."""
    differs = bool(comparison.differs("advantage").any())
    return "advantage" if differs else panels.GRADIENT


def html(comparison: Comparison) -> str:
    """The comparison as HTML: summary, picture of the rows, stages."""
    whole = panels.telling(panels.panels(comparison, _kind(comparison)))
    rows = _shown([not same(a, b) for a, b in zip(whole.correct, whole.faulty)])
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
        stages=[
            _stage(comparison, name, rows)
            for name in comparison.stages
            if name != "loss"
        ],
        left_out=comparison.batch.rows - len(rows),
    )


def _shown(differs: list[bool]) -> list[int]:
    """The rows to show, in the batch's order; where there are many, those
    that differ come first."""
    rows = sorted(range(len(differs)), key=lambda r: not differs[r])[:MOST]
    return sorted(rows)


def _stage(comparison: Comparison, name: str, rows: list[int]) -> _Stage:
    lines = lines_of(comparison, name, [""] * comparison.batch.rows)
    shown = (lines[row] for row in rows)
    cells = tuple((*line.texts(signed), line.differs) for line in shown)
    return _Stage(name, any(line.differs for line in lines), cells)
