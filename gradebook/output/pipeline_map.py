"""The pipeline as a map (SVG): its stages in order, and at each stage the
bugs that break it, every one a link.

A filled circle is a stage of the correct engine, as everywhere; an open
diamond is a bug. Numbers under the stages are one rollout's, live.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradebook.cases.catalogue import choices
from gradebook.cases.record import BUGS, Bug, bug
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
NARROW = 380
"""Pixels: the width of the tall map."""


@dataclass(frozen=True)
class Picture:
    """The map as it stands on a page.

    href  bug -> the address of its page
    done  bugs whose question the reader has answered
    """

    href: Callable[[str], str]
    done: Collection[str] = ()


def stops() -> dict[str, list[Bug]]:
    """Stage -> the bugs that break it, in the order of the stages."""
    records = [bug(name) for name in BUGS]
    return {stage: [one for one in records if one.stage == stage] for stage in STAGES}


def subtitle() -> str:
    """How many bugs of how many trainers the map shows."""
    return (
        f"{len(BUGS)} bugs that were found in {len(choices('trainer'))}"
        " trainers for language models, each at the stage that it breaks"
    )


def wide_map(picture: Picture, alone: bool = False) -> str:
    """The stages from left to right, for a screen or a slide.

    alone  as a file of its own, dark ink on white
    """
    stages = _stages(picture)
    heights = [sum(one["height"] for one in s["tiles"]) for s in stages]
    pipe = HEAD + max(heights) + FLOOR
    for number, stage in enumerate(stages):
        stage["at"] = EDGE + COLUMN * number
        stage["tiles"].reverse()
        top = pipe - FLOOR
        for one in stage["tiles"]:
            top -= one["height"]
            one["at"] = top
    return _drawn(
        "wide",
        stages,
        alone=alone,
        width=2 * EDGE + COLUMN * len(stages),
        height=pipe + 162,
        edge=EDGE,
        column=COLUMN,
        pipe=pipe,
        legend=_legend(),
    )


def tall_map(picture: Picture) -> str:
    """The stages from top to bottom, for a phone."""
    stages, y = _stages(picture), 160
    for stage in stages:
        stage["at"] = y
        y += 50
        for one in stage["tiles"]:
            one["at"] = y
            y += 46
        y += 16
    legend = [line for said in _legend() for line in textwrap.wrap(said, 54)]
    return _drawn(
        "tall",
        stages,
        alone=False,
        width=NARROW,
        height=y + 12 + 18 * len(legend),
        edge=8,
        pipe=20,
        foot=y - 30,
        legend=legend,
    )


def map_file(base: str) -> str:
    """The wide map as a file of its own, with addresses that begin with
    `base`."""
    return wide_map(Picture(lambda name: f"{base}/{name}"), alone=True)


def _drawn(shape: str, stages: list[dict[str, Any]], **measures: Any) -> str:
    return rendered(
        "map.svg.jinja",
        shape=shape,
        title=TITLE,
        subtitle=subtitle(),
        stages=stages,
        **measures,
    )


def _stages(picture: Picture) -> list[dict[str, Any]]:
    """The stages with their numbers and the bugs that break them."""
    numbers = _numbers()
    return [
        {
            "name": stage,
            "asks": ASKS[stage],
            "number": numbers[stage],
            "tiles": [_tile(picture, one) for one in bugs],
        }
        for stage, bugs in stops().items()
    ]


def _tile(picture: Picture, one: Bug) -> dict[str, Any]:
    """A bug with its title and its trainers' status in lines, and the
    height that they take on the wide map."""
    mark = " ✓" if one.name in picture.done else ""
    long = len(one.standing) > 17
    facts = one.standing.split(" · ") if long else [one.standing]
    title = textwrap.wrap(one.title, 12, break_long_words=False)
    return {
        "bug": one,
        "href": picture.href(one.name),
        "mark": mark,
        "title": title,
        "facts": [*facts[:-1], facts[-1] + mark],
        "height": 17 * len(title) + 15 * len(facts) + 17,
    }


def _legend() -> list[str]:
    rewards = ", ".join(f"{reward:g}" for reward in REWARDS[:-1])
    return [
        "● a stage of the correct computation, the same on every page",
        "◇ a bug: the trainer computed this stage otherwise, silently",
        "Numbers: the first of four answers with rewards"
        f" {rewards} and {REWARDS[-1]:g}",
    ]


@lru_cache
def _numbers() -> dict[str, str]:
    """Stage -> its result for the first of the answers."""
    rows = len(REWARDS)
    logp = [[-0.5]] * rows
    trace = run(CORRECT, Batch([0] * rows, REWARDS, logp=logp))
    said = {}
    for stage in STAGES:
        value = getattr(trace, stage)
        value = value if value.ndim == 0 else value[0]
        if value.dtype.is_floating_point:
            show = signed if stage in ("standardized", "advantage") else plain
            said[stage] = show(float(value))
        elif stage == "group":
            said[stage] = "rows 0 to 3"
        else:
            said[stage] = "yes" if value else "no"
    return said
