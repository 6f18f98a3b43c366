"""The curves that the page shows at first sight, trained in advance."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from gradebook.training.study import Run, default_run, studied
from gradebook.training.train import Curves, trained

FILE = Path(__file__).with_name("shipped.json")
DIGITS = 4


def shipped(run: Run) -> Curves | None:
    """The curves of a run that was trained in advance, to DIGITS decimals;
    None for any other run."""
    return _shipped().get(run)


def precompute() -> None:
    """Trains every bug's run at its first settings and writes FILE."""
    curves = {bug: trained(default_run(bug)) for bug in studied()}
    rounded = {
        bug: {
            "updates": one.updates,
            "values": {
                name: [
                    [[round(v, DIGITS) for v in seeds] for seeds in engines]
                    for engines in frames
                ]
                for name, frames in one.values.items()
            },
        }
        for bug, one in curves.items()
    }
    FILE.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


@cache
def _shipped() -> dict[Run, Curves]:
    stored = json.loads(FILE.read_text())
    return {default_run(bug): Curves(**stored[bug]) for bug in stored}
