"""The sandbox's starts: every scenario, and a blank batch, each with every
setting a control."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gradebook.cases.scenario import (
    FOLDER,
    Scenario,
    combinations,
    load,
    names,
)
from gradebook.core.settings import Settings

NAME = "sandbox"
"""The page, and the blank start; 'sandbox-<scenario>' are the others."""
SETTINGS = ("estimator", *Settings().keys())


def starts() -> tuple[str, ...]:
    """The names of the starts, the blank one first."""
    together = (case.name for case in combinations())
    return (NAME, *(f"{NAME}-{name}" for name in (*names(), *together)))


def is_start(name: str) -> bool:
    """The name is one of the sandbox's, whether or not there is such a
    start."""
    return name.partition("-")[0] == NAME


@cache
def start_case(name: str) -> Scenario:
    """The start of that name. Raises GradebookError as `load` does."""
    if name == NAME:
        return blank()
    shipped = name.removeprefix(f"{NAME}-")
    together = {case.name: case for case in combinations()}
    case = together.get(shipped) or load(shipped)
    return replace(case, name=name, controls=SETTINGS)


def case(name: str) -> Scenario:
    """A start of the sandbox or a shipped scenario, by its name. Raises
    GradebookError as `load` does."""
    return start_case(name) if is_start(name) else load(name)


def page_of(scenario: Scenario) -> str:
    """The page that shows the scenario: the sandbox, or the bug's."""
    return NAME if is_start(scenario.name) else scenario.bug


@cache
def blank() -> Scenario:
    """Two prompts with four rows each, rewards 0 and 1, every column."""
    shipped = load(FOLDER / NAME / "blank.toml")
    return replace(shipped, name=NAME, controls=SETTINGS)
