"""The pipeline as a map (SVG): its stages in order, and at each stage the
bugs that break it, every one a link.

A filled circle is a stage of the correct engine, as everywhere; an open
diamond is a bug. Numbers under the stages are one rollout's, live.
"""

from __future__ import annotations

import textwrap
from functools import lru_cache
from typing import Any

from gradebook.cases.record import BUGS, Bug, bug, by_stage, by_trainer
from gradebook.core.batch import Batch
from gradebook.core.formatting import plain, signed
from gradebook.engine.pipeline import CORRECT, STAGES, run
from gradebook.output.rendering import rendered

TITLE = "Where advantage normalization goes wrong"
REWARDS = (1.0, 0.0, 0.0, 1.0)
"""Four answers to one prompt. The numbers under the stages are the first
answer's."""

ASKS = {
    "score": "the reward, after bias, scaling and clip",
    "credited": "may the row earn an advantage?",
    "counted": "does it count in its group's mean?",
    "group": "which rows are compared?",
    "baseline": "the mean of the rows that count",
    "scale": "their standard deviation",
    "standardized": "(score − baseline) / scale",
    "advantage": "the weight of the row's tokens",
    "trained": "do its tokens enter the loss?",
    "loss": "summed over the tokens that are trained",
}
"""Stage -> what it computes, in a few words."""

COLUMN, EDGE, HEAD, FLOOR = 120, 36, 108, 34
"""Pixels of the wide map: a stage's width, the left edge, the heading's
height, and the space between the pipe and the lowest bug."""


def stops() -> dict[str, list[Bug]]:
    """Stage -> the bugs that break it, in the order of the stages."""
    return {stage: [bug(name) for name in names] for stage, names in by_stage().items()}


def subtitle() -> str:
    """How many bugs of how many trainers the map shows."""
    return (
        f"{len(BUGS)} bugs that were found in {len(by_trainer())}"
        " trainers for language models, each at the stage that it breaks"
    )


def map_file(base: str) -> str:
    """The map as a file: the stages from left to right, with addresses of bugs
    that begin with `base`."""
    stages = _stages(base)
    heights = [sum(tile["height"] for tile in s["tiles"]) for s in stages]
    pipe = HEAD + max(heights) + FLOOR
    for number, stage in enumerate(stages):
        stage["at"] = EDGE + COLUMN * number
        stage["tiles"].reverse()
        top = pipe - FLOOR
        for tile in stage["tiles"]:
            top -= tile["height"]
            tile["at"] = top
    rewards = ", ".join(f"{reward:g}" for reward in REWARDS[:-1])
    return rendered(
        "map.svg.jinja",
        title=TITLE,
        subtitle=subtitle(),
        stages=stages,
        width=2 * EDGE + COLUMN * len(stages),
        height=pipe + 162,
        edge=EDGE,
        column=COLUMN,
        pipe=pipe,
        legend=[
            "● a stage of the correct computation, the same on every page",
            "◇ a bug: the trainer computed this stage otherwise, usually without a"
            " crash",
            f"Numbers: the first of four answers with rewards {rewards} and"
            f" {REWARDS[-1]:g}",
        ],
    )


def _stages(base: str) -> list[dict[str, Any]]:
    """The stages with their numbers and the bugs that break them."""
    numbers = _numbers()
    return [
        {
            "name": stage,
            "asks": ASKS[stage],
            "number": numbers[stage],
            "tiles": [_tile(base, bug) for bug in bugs],
        }
        for stage, bugs in stops().items()
    ]


def _tile(base: str, bug: Bug) -> dict[str, Any]:
    """A bug with its title and its trainers' status in lines, and the
    height that they take on the wide map."""
    long = len(bug.standing) > 17
    facts = bug.standing.split(" · ") if long else [bug.standing]
    title = textwrap.wrap(bug.title, 12, break_long_words=False)
    return {
        "bug": bug,
        "href": f"{base}/{bug.name}",
        "title": title,
        "facts": facts,
        "height": 17 * len(title) + 15 * len(facts) + 17,
    }


@lru_cache
def _numbers() -> dict[str, str]:
    """Stage -> its result for the first of the answers."""
    rows = len(REWARDS)
    logp = [[-0.5]] * rows
    trace = run(CORRECT, Batch([0] * rows, REWARDS, logp=logp))
    texts = {}
    for stage in STAGES:
        value = getattr(trace, stage)
        value = value if value.ndim == 0 else value[0]
        if value.dtype.is_floating_point:
            show = signed if stage in ("standardized", "advantage") else plain
            texts[stage] = show(float(value))
        elif stage == "group":
            texts[stage] = "rows 0 to 3"
        else:
            texts[stage] = "yes" if value else "no"
    return texts
