"""The curves on Home: the policy that the faulty engine trains, at each of
eleven rewards for an unfinished answer, beside the correct one.

`python -m gradebook.training.home` trains them and writes home.json.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gradebook.training.study import Run, studied
from gradebook.training.train import trained

FILE = Path(__file__).with_name("home.json")
BUG = studied()[0]
STOPS = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2)
"""Rewards of the unfinished answer."""


def at(stop: float, seeds: int = 16) -> tuple[list[int], list[list[list[int]]]]:
    """The updates, and each engine's chance of success in thousandths, by
    seed and update."""
    curves = trained(Run(BUG, stop, seeds=seeds))
    by_engine = zip(*curves.values["success"])
    return curves.updates, [
        [[round(1000 * value) for value in seed] for seed in zip(*frames)]
        for frames in by_engine
    ]


@cache
def curves() -> dict[str, Any]:
    """`updates`; the correct engine's `correct` curve, which is the same at
    every stop, as the mean over its seeds; and by stop the `faulty` seeds."""
    return json.loads(FILE.read_text("utf-8"))


def write() -> None:
    """Trains every stop."""
    faulty = {}
    for stop in STOPS:
        updates, (correct, faulty[f"{stop:g}"]) = at(stop)
    mean = [round(sum(values) / len(values)) for values in zip(*correct)]
    content = {"updates": updates, "correct": mean, "faulty": faulty}
    FILE.write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    write()
