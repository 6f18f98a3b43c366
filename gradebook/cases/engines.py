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
from gradebook.engine.pipeline import CORRECT, STAGES, Engine

NO_BUG = Swap("", "", CORRECT.score, CORRECT.score, CORRECT)
"""Stands for the bugs where none is chosen."""


def several(bug_names: Iterable[str]) -> Engine:
    """CORRECT with the faulty stage of every named bug.

    Raises GradebookError for an unknown name, and for bugs that exclude
    each other.
    """
    faulty: dict[str, Any] = {}
    for stage, together in _by_stage(bug_names).items():
        faulty[stage] = together[0].faulty
        if len(together) > 1:
            if not all(each.drops for each in together):
                raise GradebookError(
                    key="bugs",
                    expected=f"one bug in the stage {stage}",
                    found=" and ".join(each.name for each in together),
                )
            faulty[stage] = counted_without(frozenset(_dropped(together)))
    return replace(CORRECT, **faulty)


def swaps(bug_names: Iterable[str]) -> tuple[Swap, ...]:
    """One Swap for each stage that the named bugs change, in the order of
    the stages; each holds the whole engine. Raises as `several`."""
    named = _by_stage(bug_names)
    engine = several(each.name for together in named.values() for each in together)
    return tuple(
        replace(
            named[stage][0],
            name=" and ".join(each.name for each in named[stage]),
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
    by_stage: dict[str, list[Swap]] = {}
    for name in dict.fromkeys(bug_names):
        by_stage.setdefault(swap(name).stage, []).append(swap(name))
    return by_stage


def _dropped(together: Sequence[Swap]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c for each in together for c in each.drops))
