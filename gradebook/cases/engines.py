"""Engines with several bugs at once: each bug's faulty stage in its place.

Two bugs can sit in one stage. Then one of the two functions would hide the
other, so what both together do is written down here, or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torch import Tensor

from gradebook.bugs import Bug, bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, STAGES, Engine, Stage


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: every row does. bool [R].

    `credited` asks for tokens and for an end; one fault drops the first
    question, the other the second. With both, a row that is rejected and
    did not end votes too, though either fault alone keeps it out.
    """
    return credited | True


TOGETHER: Mapping[frozenset[str], Stage] = {
    frozenset(("no_eos_outliers", "rejected_rows")): counted,
}
"""What bugs of one stage do together."""


def several(bug_names: Iterable[str]) -> Engine:
    """CORRECT with the faulty stage of every named bug.

    Raises GradebookError for an unknown name, and for bugs of one stage
    that TOGETHER does not hold.
    """
    faulty = {
        stage: _faulty(stage, names)
        for stage, names in _by_stage(bug_names).items()
    }
    return replace(CORRECT, **faulty)


def swaps(bug_names: Iterable[str]) -> tuple[Bug, ...]:
    """One Bug for each stage that the named bugs swap, in the order of the
    stages; each holds the whole engine. Raises as `several`."""
    named = _by_stage(bug_names)
    engine = several(sum(named.values(), []))
    return tuple(
        Bug(
            name=" and ".join(named[stage]),
            stage=stage,
            correct=getattr(CORRECT, stage),
            faulty=getattr(engine, stage),
            engine=engine,
        )
        for stage in STAGES
        if stage in named
    )


NO_BUG = Bug("", "", CORRECT.score, CORRECT.score, CORRECT)
"""Stands for the bugs where none is chosen."""


def swapped(bug_names: Iterable[str]) -> Bug:
    """The engine with every named bug, as the first stage that it swaps.
    Raises as `several`."""
    return next(iter(swaps(bug_names)), NO_BUG)


def _by_stage(bug_names: Iterable[str]) -> dict[str, list[str]]:
    """Stage -> the bugs that swap it, each once."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(bug_names):
        found.setdefault(bug(name).stage, []).append(name)
    return found


def _faulty(stage: str, names: list[str]) -> Stage:
    if len(names) == 1:
        return bug(names[0]).faulty
    both = frozenset(names)
    if both not in TOGETHER:
        raise GradebookError(
            key="bugs",
            expected=f"one bug in the stage {stage}",
            found=" and ".join(names),
        )
    return TOGETHER[both]
