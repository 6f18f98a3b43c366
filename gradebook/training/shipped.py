"""Curves that are trained in advance: of each study at its first settings, and on
Home at each of eleven rewards for an unfinished answer.

`python -m gradebook.training precompute` trains them and writes both files.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gradebook.training.study import Run, default_run, studied
from gradebook.training.train import Curves, trained

FILE = Path(__file__).with_name("shipped.json")
HOME = Path(__file__).with_name("home.json")
DIGITS = 4
BUG = studied()[0]
STOPS = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2)
"""Home's bug, and its rewards of the unfinished answer."""


@cache
def shipped(run: Run) -> Curves | None:
    """The curves of a run that was trained in advance, to DIGITS decimals;
    None for any other run."""
    stored = json.loads(FILE.read_text())
    if run.bug not in stored or run != default_run(run.bug):
        return None
    return Curves(**stored[run.bug])


@cache
def curves() -> dict[str, Any]:
    """Of Home: `updates`; the correct engine's `correct` curve, which is the same
    at every stop, as the mean over its seeds; and by stop the `faulty` seeds."""
    return json.loads(HOME.read_text("utf-8"))


def at(stop: float, seeds: int = 16) -> tuple[list[int], list[list[list[int]]]]:
    """The updates, and each engine's chance of success in thousandths, by
    seed and update, where the unfinished answer earns `stop`."""
    run = trained(Run(BUG, stop, seeds=seeds))
    by_engine = zip(*run.values["success"])
    return run.updates, [
        [[round(1000 * value) for value in seed] for seed in zip(*frames)]
        for frames in by_engine
    ]


def precompute() -> None:
    """Trains all of them and writes FILE and HOME."""
    studies = {}
    for bug in studied():
        run = trained(default_run(bug))
        values = {
            name: [
                [[round(value, DIGITS) for value in seeds] for seeds in engines]
                for engines in frames
            ]
            for name, frames in run.values.items()
        }
        studies[bug] = {"updates": run.updates, "values": values}
    FILE.write_text(json.dumps(studies, separators=(",", ":")) + "\n")
    faulty = {}
    for stop in STOPS:
        updates, (correct, faulty[f"{stop:g}"]) = at(stop)
    mean = [round(sum(values) / len(values)) for values in zip(*correct)]
    content = {"updates": updates, "correct": mean, "faulty": faulty}
    HOME.write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")
