"""A small picture of a case for its card: one line a row, as an image."""

from __future__ import annotations

import base64
import math
from functools import lru_cache

from gradebook.analysis.comparison import compare
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.figures import Panel, squashes, symlog
from gradebook.ui.parts.pictures import panels, summary
from gradebook.ui.parts.words import safe

WIDTH, HEIGHT, EDGE = 320, 120, 12
GREY = "#888888"


@lru_cache(maxsize=256)
def thumbnail(scenario: Scenario, covered: bool) -> tuple[str, str]:
    """The case as it came, as HTML, and what it shows in a sentence.

    covered  True leaves everything faulty out
    """
    kind = scenario.telltale.kind
    try:
        comparison = compare(bug(scenario.bug), scenario.batch())
    except GradebookError:
        correct = run(CORRECT, scenario.batch()).advantage.tolist()
        panel = Panel("advantage", correct, [math.nan] * len(correct))
        said = "The faulty trainer stops with an error on this batch."
    else:
        panel, said = panels(comparison, kind)[-1], summary(comparison, kind)
    if covered:
        said = "The correct engine's numbers. Predict the faulty ones."
    return _svg(panel, covered, f"{scenario.title}: {said}"), said


def _svg(panel: Panel, covered: bool, label: str) -> str:
    pairs = list(zip(panel.correct, panel.faulty))
    bent = not covered and squashes([panel]) is not None
    shown = [tuple(map(symlog if bent else float, pair)) for pair in pairs]
    seen = [v for pair in shown for v in pair[: 1 if covered else 2]]
    reach = max([abs(v) for v in seen if math.isfinite(v)] + [1e-9])
    middle, half = WIDTH / 2, WIDTH / 2 - EDGE
    gap = (HEIGHT - EDGE) / max(len(shown), 1)
    size = min(4.5, gap / 2 + 1)
    marks = []
    for row, (correct, faulty) in enumerate(shown):
        y = EDGE / 2 + gap * (row + 0.5)
        x = middle + half * correct / reach
        if not covered and math.isfinite(faulty) and math.isfinite(correct):
            to = middle + half * faulty / reach
            flips = row < len(panel.flips) and panel.flips[row]
            width, colour = (3, "#D55E00") if flips else (1, GREY)
            marks.append(
                f'<line x1="{x:.1f}" x2="{to:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
                f' stroke="{colour}" stroke-width="{width}"/>'
            )
        if math.isfinite(correct):
            marks.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"'
                ' fill="#0072B2"/>'
            )
        if not covered and math.isfinite(faulty):
            to, r = middle + half * faulty / reach, size + 1
            marks.append(
                f'<path d="M{to:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f}'
                f' {r:.1f}l{-r:.1f} {-r:.1f}z" fill="none"'
                ' stroke="#D55E00" stroke-width="1.8"/>'
            )
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}"><line x1="{middle}" x2="{middle}"'
        f' y1="0" y2="{HEIGHT}" stroke="#888888"/>'
        f"{''.join(marks)}</svg>"
    )
    data = base64.b64encode(drawn.encode()).decode()
    return (
        f'<img alt="{safe(label)}" width="{WIDTH}" height="{HEIGHT}"'
        f' src="data:image/svg+xml;base64,{data}">'
    )
