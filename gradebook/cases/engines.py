"""Engines with several bugs at once: each bug's faulty stage in its place.

Bugs of different stages act together. Two bugs of one stage exclude each
other, except where each of them only drops conditions of the stage: then
both together drop the conditions of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gradebook.bugs import Swap, swap
from gradebook.core.errors import GradebookError
from gradebook.engine.grouping import counted_without
from gradebook.engine.pipeline import CORRECT, STAGES, Engine, Stage

NO_BUG = Swap("", "", CORRECT.score, CORRECT.score, CORRECT)
"""Stands for the bugs where none is chosen."""


def several(bug_names: Iterable[str]) -> Engine:
    """CORRECT with the faulty stage of every named bug.

    Raises GradebookError for an unknown name, and for bugs that exclude
    each other.
    """
    faulty: dict[str, Any] = {
        stage: _faulty(stage, swaps) for stage, swaps in _by_stage(bug_names).items()
    }
    return replace(CORRECT, **faulty)


def swaps(bug_names: Iterable[str]) -> tuple[Swap, ...]:
    """One Swap for each stage that the named bugs change, in the order of
    the stages; each holds the whole engine. Raises as `several`."""
    named = _by_stage(bug_names)
    engine = several(one.name for found in named.values() for one in found)
    return tuple(
        replace(
            named[stage][0],
            name=" and ".join(one.name for one in named[stage]),
            faulty=getattr(engine, stage),
            engine=engine,
            drops=_dropped(named[stage]),
        )
        for stage in STAGES
        if stage in named
    )


def swapped(bug_names: Iterable[str]) -> Swap:
    """The engine with every named bug, as the first stage that it swaps.
    Raises as `several`."""
    return next(iter(swaps(bug_names)), NO_BUG)


def _by_stage(bug_names: Iterable[str]) -> dict[str, list[Swap]]:
    """Stage -> the bugs that swap it, each once."""
    found: dict[str, list[Swap]] = {}
    for name in dict.fromkeys(bug_names):
        one = swap(name)
        found.setdefault(one.stage, []).append(one)
    return found


def _dropped(together: Sequence[Swap]) -> tuple[str, ...]:
    """Every condition that one of the bugs drops, each once."""
    return tuple(dict.fromkeys(c for one in together for c in one.drops))


def _faulty(stage: str, together: Sequence[Swap]) -> Stage:
    """The stage's function with all of the bugs."""
    if len(together) == 1:
        return together[0].faulty
    if not all(one.drops for one in together):
        raise GradebookError(
            key="bugs",
            expected=f"one bug in the stage {stage}",
            found=" and ".join(one.name for one in together),
        )
    return counted_without(frozenset(_dropped(together)))
