"""Mystery trainer: a seed hides a bug, and edits bring it out.

The link of a game is its seed, which does not say which bug it is.
"""

from __future__ import annotations

import hashlib
from functools import cache

from gradebook.bugs import BUGS
from gradebook.cases.record import bug
from gradebook.cases.scenario import FOLDER, PlainCase
from gradebook.cases.schema import read_part
from gradebook.cases.state import State, start

FILE = FOLDER / "games" / "mystery.toml"
NONE = ""
"""Stands for the trainer without a bug."""


@cache
def first_state() -> State:
    """The batch with which every game begins. Raises GradebookError where
    the file cannot be read."""
    return start(read_part(PlainCase, FILE, name="mystery").as_scenario())


@cache
def suspects() -> tuple[str, ...]:
    """What a game may hide: no bug, and every bug that advantages show."""
    return (NONE, *(name for name in BUGS if bug(name).in_advantages))


def hidden(seed: str) -> str:
    """The bug that the seed hides, or NONE.

    Each suspect draws a number from the seed and the highest wins. So a bug
    that is added later changes few old games.
    """

    def drawn(name: str) -> str:
        return hashlib.sha256(f"{seed}\nmystery\n{name}".encode()).hexdigest()

    return max(suspects(), key=drawn)


def stage_of(name: str) -> str:
    """The stage in which the bug is, or NONE."""
    return bug(name).stage if name else NONE
