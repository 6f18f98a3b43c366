"""The record of a bug: everything the program knows about it.

Its stage comes from gradebook/bugs/<bug>.py, all else from the bug's own
file scenarios/<bug>.toml. No other module names a bug.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

from gradebook.bugs import BUGS, Swap, swap
from gradebook.cases.case import Record, Reported
from gradebook.cases.scenario import load
from gradebook.engine.pipeline import STAGES

__all__ = ["BUGS", "Bug", "bug"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Bug(Swap, Record, Reported):
    """A bug: its stage, both functions, its engine and what is known of it;
    `controls` are the settings on its page."""

    controls: tuple[str, ...]


@lru_cache
def bug(name: str) -> Bug:
    """The record of the bug of that name.

    Raises GradebookError for a name that is not in BUGS, and as `load`
    does for the bug's scenario file.

    >>> "partial_groups" in BUGS
    True
    >>> bug("partial_groups").stage, bug("partial_groups").title
    ('group', 'Partial groups')
    """
    stage, main = swap(name), load(name)
    reported = {field.name: getattr(main, field.name) for field in fields(Reported)}
    record = vars(stage) | vars(main.record) | reported
    return Bug(**record, controls=main.controls)


@lru_cache
def by_trainer() -> dict[str, tuple[str, ...]]:
    """The bugs of each trainer that had some, by trainer in the alphabet's
    order."""
    trainers = {name: bug(name).trainers for name in BUGS}
    each = sorted({t for names in trainers.values() for t in names}, key=str.lower)
    return {t: tuple(n for n in BUGS if t in trainers[n]) for t in each}


@lru_cache
def by_stage() -> dict[str, tuple[str, ...]]:
    """The bugs of each stage, in the order of the stages; of some none."""
    stages = {name: bug(name).stage for name in BUGS}
    return {s: tuple(name for name in BUGS if stages[name] == s) for s in STAGES}
