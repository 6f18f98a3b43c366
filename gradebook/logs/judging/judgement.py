"""A judgement: what a log's advantages are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradebook.logs.judging.fit import NONE
from gradebook.logs.judging.reading import Reading
from gradebook.logs.judging.search import Found
from gradebook.logs.judging.suspects import Suspect

VERDICTS = ("correct", "other", "suspect", "asks", "cannot tell", "none fits")


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a log's advantages are.

    verdict   one of VERDICTS
    why       what stands behind "asks", "cannot tell" and "none fits"
    readings  the computations of the space that fit, the preferred first
    suspect   the bug that is named or asked about, under its settings
    asks      bugs that these numbers would be under a condition, each with
              the settings that it takes
    ties      bugs that leave no trace on these rows
    parts     (first step, last step, reading) where the run changed once
    found     all that was searched
    level     how closely the named computation fits
    """

    verdict: str
    found: Found
    why: str = ""
    readings: tuple[Reading, ...] = ()
    suspect: Suspect | None = None
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    parts: tuple[tuple[int, int, Reading], ...] = ()
    level: int = NONE
    frame: Any = None

    @property
    def reading(self) -> Reading | None:
        """The computation that is named, or that is correct beside a bug."""
        return self.readings[0] if self.readings else None
