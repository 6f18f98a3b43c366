"""A comparison as a notebook shows it: the verdict, the rows and the stages.

The picture is plain SVG, so that a saved notebook shows it wherever it is
read, without Plotly and without scripts.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import same
from gradebook.core.formatting import digits_apart, settled, signed
from gradebook.output.figures import Panel
from gradebook.output.panels import GRADIENT, panels, telling
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
    count = comparison.batch.rows
    differs = comparison.differs("advantage")
    first = next(iter(comparison.diverging), "")
    if not first:
        return f"Both engines agree on all {count} rows."
    apart, flipped = int(differs.sum()), comparison.flips.nonzero().flatten()
    said = f"The engines part at the stage {first}."
    if not apart:
        rows = int(comparison.gradient_differs.sum())
        return (
            f"{said} No advantage differs; the gradient of {rows} of"
            f" {count} rows does."
        )
    said += f" {apart} of {count} rows have another advantage"
    if len(flipped):
        some = ", ".join(map(str, flipped.tolist()[:6]))
        more = len(flipped) - 6
        some += f" and {more} more" if more > 0 else ""
        word = "row" if len(flipped) == 1 else "rows"
        said += f"; the sign flips on {word} {some}"
    return said + "."


def html(comparison: Comparison) -> str:
    """The comparison as HTML: summary, picture of the rows, stages."""
    told = comparison.differs("advantage")
    kind = "advantage" if bool(told.any()) else GRADIENT
    whole = telling(panels(comparison, kind))
    rows = _shown(
        [not same(a, b) for a, b in zip(whole.correct, whole.faulty)]
    )
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
    differs = comparison.differs(name).tolist()
    correct, faulty = (
        getattr(trace, name).tolist()
        for trace in (comparison.correct, comparison.faulty)
    )
    cells = tuple(
        (*_texts(correct[r], faulty[r]), bool(differs[r])) for r in rows
    )
    return _Stage(name, any(differs), cells)


def _texts(correct: object, faulty: object) -> tuple[str, str]:
    """Both results as text, with digits enough to tell them apart."""
    if isinstance(correct, bool):
        return ("yes" if correct else "no", "yes" if faulty else "no")
    if isinstance(correct, int):
        return str(correct), str(faulty)
    assert isinstance(correct, float) and isinstance(faulty, float)
    a, b = settled(correct), settled(faulty)
    digits = digits_apart(a, b)
    return signed(a, digits), signed(b, digits)
