"""The faulty stages. One module a bug, holding exactly one stage function.

`gradebook.cases.scenario` adds what a bug's scenario file knows. Bugs of different
stages act together. Two bugs of one stage exclude each other, unless
each only drops conditions of the stage.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from gradebook.core.errors import GradebookError, choice
from gradebook.engine.grouping import counted_without
from gradebook.engine.pipeline import CORRECT, STAGES, Engine, Stage

BUGS = tuple(sorted(module.name for module in iter_modules(__path__)))


@dataclass(frozen=True)
class Swap:
    """One stage that an engine swaps, and the whole faulty engine.

    A rounding error is shown by the numbers of a log, a table of prompt, reward and
    advantage: `unexplained` are the rows that it alone explains; `evidence` says how
    surely, of those in the column `odd` beside a correct `baseline`.
    """

    name: str  # the bug, or the bugs that act in this stage together
    stage: str
    engine: Engine
    drops: tuple[str, ...] = ()  # grouping.CONDITIONS that `counted` leaves out
    unexplained: Callable[..., np.ndarray] | None = None
    evidence: Callable[..., np.ndarray] | None = None
    reading: Mapping[str, str] = field(default_factory=dict)  # where it takes part

    @property
    def correct(self) -> Stage:
        """The stage's function in the correct engine."""
        return getattr(CORRECT, self.stage)

    @property
    def faulty(self) -> Stage:
        """The stage's function in the faulty engine."""
        return getattr(self.engine, self.stage)


@lru_cache
def swap(name: str) -> Swap:
    """The stage that the bug swaps. Raises GradebookError for a name that is not in
    BUGS."""
    module = import_module(f"{__name__}.{choice(name, BUGS, 'bug')}")
    ((stage, faulty),) = (
        (stage, function)
        for stage, function in inspect.getmembers(module, inspect.isfunction)
        if stage in STAGES and function.__module__ == module.__name__
    )
    return Swap(
        name,
        stage,
        engine=replace(CORRECT, **{stage: faulty}),
        drops=getattr(module, "DROPS", ()),
        unexplained=getattr(module, "unexplained", None),
        evidence=getattr(module, "evidence", None),
        reading=getattr(module, "READING", {}),
    )


def swaps(bug_names: Iterable[str]) -> tuple[Swap, ...]:
    """One Swap for each stage that the named bugs change, in the order of the stages.
    Raises GradebookError for an unknown name, and for bugs that exclude each other."""
    named = [swap(name) for name in dict.fromkeys(bug_names)]
    by_stage = {stage: [s for s in named if s.stage == stage] for stage in STAGES}
    joined = [_joined(together) for together in by_stage.values() if together]
    faulty: dict[str, Any] = {each.stage: each.faulty for each in joined}
    engine = replace(CORRECT, **faulty)
    return tuple(replace(each, engine=engine) for each in joined)


def swapped(bug_names: Iterable[str]) -> Swap:
    """The engine with every named bug, as the first stage that it swaps; without
    bugs the correct one. Raises as `swaps`."""
    return next(iter(swaps(bug_names)), Swap("", "", CORRECT))


def _joined(together: list[Swap]) -> Swap:
    """The bugs of one stage as one: what each of them drops is dropped."""
    if len(together) == 1:
        return together[0]
    names = " and ".join(each.name for each in together)
    if not all(each.drops for each in together):
        expected = f"one bug in the stage {together[0].stage}"
        raise GradebookError(key="bugs", expected=expected, found=names)
    drops = tuple(dict.fromkeys(c for each in together for c in each.drops))
    engine = replace(CORRECT, counted=counted_without(frozenset(drops)))
    return replace(together[0], name=names, engine=engine, drops=drops)
