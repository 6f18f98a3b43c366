"""The pipeline as a map (SVG): its stages in order, and at each stage the bugs that
break it, every one a link."""

from __future__ import annotations

import textwrap
from functools import cache
from typing import Any

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug, by_stage, by_trainer
from gradebook.core.batch import Batch
from gradebook.core.formatting import plain, signed
from gradebook.engine.pipeline import CORRECT, STAGES, run
from gradebook.output.panels import written
from gradebook.output.rendering import rendered

REWARDS = (1.0, 0.0, 0.0, 1.0)
"""Four answers to one prompt; the first one's numbers stand under the stages."""

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


def map_file(base: str) -> str:
    """The map as a file: the stages from left to right, with addresses of bugs
    that begin with `base`."""
    stages: list[dict[str, Any]] = []
    for stage, bugs in stops().items():
        tiles = []
        for record in bugs:
            long = len(record.standing) > 17
            facts = record.standing.split(" · ") if long else [record.standing]
            title = textwrap.wrap(record.title, 12, break_long_words=False)
            tile = {"bug": record, "title": title, "facts": facts}
            height = 17 * len(title) + 15 * len(facts) + 17
            tiles.append(tile | {"href": f"{base}/{record.name}", "height": height})
        words = {"name": stage, "asks": ASKS[stage], "number": numbers()[stage]}
        place = EDGE + COLUMN * len(stages)
        stages.append({**words, "tiles": tiles, "at": place})
    pipe = HEAD + FLOOR + max(sum(t["height"] for t in s["tiles"]) for s in stages)
    for column in stages:
        column["tiles"].reverse()
        top = pipe - FLOOR
        for tile in column["tiles"]:
            top -= tile["height"]
            tile["at"] = top
    rewards = ", ".join(f"{reward:g}" for reward in REWARDS[:-1])
    return rendered(
        "map.svg.jinja",
        title="Where advantage normalization goes wrong",
        subtitle=f"{len(BUGS)} bugs that were found in {len(by_trainer())} trainers for"
        " language models, each at the stage that it breaks",
        stages=stages,
        width=2 * EDGE + COLUMN * len(stages),
        height=pipe + 162,
        edge=EDGE,
        column=COLUMN,
        pipe=pipe,
        legend=[
            "a stage of the correct computation, the same on every page",
            "a bug: the trainer computed this stage otherwise, usually without a crash",
            f"Numbers: the first of four answers with rewards {rewards} and"
            f" {REWARDS[-1]:g}",
        ],
    )


@cache
def numbers() -> dict[str, str]:
    """Stage -> its result for the first of the answers."""
    rows = len(REWARDS)
    trace = run(CORRECT, Batch([0] * rows, REWARDS, logp=[[-0.5]] * rows))
    texts = {}
    for stage in STAGES:
        value = getattr(trace, stage).reshape(-1)[0].item()
        write = signed if stage in ("standardized", "advantage") else plain
        texts[stage] = written(value, value, write=write)[0]
    return texts | {"group": f"rows 0 to {rows - 1}"}
