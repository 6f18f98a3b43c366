"""The faulty engines. One module a bug, holding exactly one stage: a module
put into this folder is found by its name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from gradebook.core.errors import GradebookError, shown
from gradebook.engine.pipeline import CORRECT, STAGES, Engine, Stage

BUGS: tuple[str, ...] = tuple(sorted(m.name for m in iter_modules(__path__)))
"""The names of the bugs."""


@dataclass(frozen=True)
class Bug:
    """One swapped stage: its name, both functions, and the faulty engine."""

    name: str
    stage: str
    correct: Stage
    faulty: Stage
    engine: Engine


@lru_cache
def bug(name: str) -> Bug:
    """The bug of that name. Raises GradebookError for a name not in BUGS."""
    if name not in BUGS:
        raise GradebookError(
            key="bug", expected="one of " + ", ".join(BUGS), found=shown(name)
        )
    module = import_module(f"{__name__}.{name}")
    ((stage, faulty),) = (
        (stage, function)
        for stage, function in inspect.getmembers(module, inspect.isfunction)
        if stage in STAGES and function.__module__ == module.__name__
    )
    return Bug(
        name=name,
        stage=stage,
        correct=getattr(CORRECT, stage),
        faulty=faulty,
        engine=replace(CORRECT, **{stage: faulty}),
    )
