"""A small picture of a case for its card: one line a row, as an image.

The images are files of the server, so that a browser asks for one when its
card comes into sight, and the server draws none before.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.analysis.comparison import Comparison, compare
from gradebook.bugs import BUGS
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output import svg
from gradebook.output.panels import (
    Panel,
    panels,
    squashes,
    summary,
    telling,
)
from gradebook.ui.own_path import own_path
from gradebook.ui.parts.words import safe

PLACE = "card-pictures"
VERSION = secrets.token_hex(4)
"""Of this server's pictures: a browser keeps them until the next start."""
WIDTH, HEIGHT = 320, 120
COVERED = "The correct engine's numbers. Predict the faulty ones."
STOPS = "The faulty trainer stops with an error on this batch."


def thumbnail(scenario: Scenario, covered: bool) -> str:
    """The picture of the case as it came, as an HTML image.

    covered  True leaves everything faulty out
    """
    said = COVERED if covered else told(scenario)
    side = "covered" if covered else "whole"
    file = own_path(f"/{PLACE}/{VERSION}/{scenario.bug}-{side}.svg")
    return (
        f'<img alt="{safe(f"{scenario.title}: {said}")}" loading="lazy"'
        f' width="{WIDTH}" height="{HEIGHT}"'
        f' src="{file}">'
    )


@lru_cache(maxsize=256)
def told(scenario: Scenario) -> str:
    """What the picture shows, in a sentence."""
    found = _compared(scenario)
    kind = scenario.telltale.kind
    return STOPS if found is None else summary(found, kind)


async def answer(request: Request) -> Response:
    """The file that a browser asks for."""
    return file(request.path_params["name"])


def file(name: str) -> Response:
    """A picture by its file's name."""
    case, _, side = name.removesuffix(".svg").rpartition("-")
    if case not in BUGS or side not in ("covered", "whole"):
        return PlainTextResponse("not found", 404)
    return Response(
        drawn(case, side == "covered"),
        media_type="image/svg+xml",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


@lru_cache(maxsize=256)
def drawn(name: str, covered: bool) -> str:
    """The picture of a bug's report, as SVG."""
    scenario = load(name)
    found = _compared(scenario)
    if found is None:
        correct = run(CORRECT, scenario.batch()).advantage.tolist()
        panel = Panel("advantage", correct, [])
    else:
        shown = panels(found, scenario.telltale.kind)
        panel = shown[-1] if covered else telling(shown)
    if covered or found is None:
        panel = replace(panel, faulty=[math.nan] * len(panel.correct), flips=())
    return svg.thumbnail(panel, WIDTH, HEIGHT, not covered and squashes([panel]))


def _compared(scenario: Scenario) -> Comparison | None:
    """Both engines on the case; None where the faulty trainer stops."""
    try:
        return compare(bug(scenario.bug), scenario.batch())
    except GradebookError:
        return None
