"""The faulty stages. One module a bug, holding exactly one stage function.

A module in this folder is found by its name. What else is known about a
bug stands in its scenario file; `gradebook.cases.record` puts both together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

import numpy as np

from gradebook.core.errors import choice
from gradebook.engine.pipeline import CORRECT, STAGES, Engine, Stage

BUGS: tuple[str, ...] = tuple(sorted(m.name for m in iter_modules(__path__)))
"""The names of the bugs."""


@dataclass(frozen=True)
class Swap:
    """One stage with its correct and its faulty function.

    name     the bug, or the bugs that act in this stage together
    engine   the whole faulty engine
    unexplained, evidence  of a bug that is a rounding error, which the
             numbers of a log show by themselves: the rows on which it alone
             explains them, and how surely it does; None for other bugs
    reading  settings outside which that rounding plays no part
    drops    the conditions of `counted` that the faulty function leaves
             out (names from grouping.CONDITIONS); empty for other stages
    """

    name: str
    stage: str
    correct: Stage
    faulty: Stage
    engine: Engine
    drops: tuple[str, ...] = ()
    unexplained: Callable[..., np.ndarray] | None = None
    evidence: Callable[..., np.ndarray] | None = None
    reading: Mapping[str, str] = field(default_factory=dict)


@lru_cache
def swap(name: str) -> Swap:
    """The stage that the bug of that name swaps.

    Raises GradebookError for a name that is not in BUGS.
    """
    module = import_module(f"{__name__}.{choice(name, BUGS, 'bug')}")
    ((stage, faulty),) = (
        (stage, function)
        for stage, function in inspect.getmembers(module, inspect.isfunction)
        if stage in STAGES and function.__module__ == module.__name__
    )
    return Swap(
        name=name,
        stage=stage,
        correct=getattr(CORRECT, stage),
        faulty=faulty,
        engine=replace(CORRECT, **{stage: faulty}),
        drops=getattr(module, "DROPS", ()),
        unexplained=getattr(module, "unexplained", None),
        evidence=getattr(module, "evidence", None),
        reading=getattr(module, "READING", {}),
    )
