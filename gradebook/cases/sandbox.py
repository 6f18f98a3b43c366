"""The sandbox's starts: every scenario, and a blank batch, each with every
setting a control."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache

from gradebook.cases.scenario import Expected, Scenario, load, names
from gradebook.core.settings import ESTIMATORS, Settings

NAME = "sandbox"
"""The page, and the blank start; 'sandbox-<scenario>' are the others."""
SETTINGS = ("estimator", *Settings().keys())


def starts() -> tuple[str, ...]:
    """The names of the starts, the blank one first."""
    return (NAME, *(f"{NAME}-{name}" for name in names()))


def is_start(name: str) -> bool:
    """The name is one of the sandbox's, whether or not there is such a
    start."""
    return name.partition("-")[0] == NAME


def start_case(name: str) -> Scenario:
    """The start of that name. Raises GradebookError as `load` does."""
    if name == NAME:
        return blank()
    return _start_of(load(name.removeprefix(f"{NAME}-")))


def case(name: str) -> Scenario:
    """A start of the sandbox or a shipped scenario, by its name. Raises
    GradebookError as `load` does."""
    return start_case(name) if is_start(name) else load(name)


def page_of(scenario: Scenario) -> str:
    """The page that shows the scenario: the sandbox, or the bug's."""
    return NAME if is_start(scenario.name) else scenario.bug


@cache
def _start_of(shipped: Scenario) -> Scenario:
    name = f"{NAME}-{shipped.name}"
    return replace(shipped, name=name, controls=SETTINGS)


@lru_cache(maxsize=1)
def blank() -> Scenario:
    """Two prompts with four rows each, rewards 0 and 1, every column."""
    rows = [
        {
            "prompt": prompt,
            "reward": reward,
            "eos": True,
            "step": 0,
            "steps": 1,
            "kept_steps": 1,
            "mask": [1, 1, 1],
            "logp": [-1.0, -1.0, -1.0],
            "ref_logp": [-0.5, -0.5, -0.5],
        }
        for prompt, rewards in (("A", (1.0, 1.0, 0.0, 0.0)), ("B", LONELY))
        for reward in rewards
    ]
    return replace(
        load("double_normalization"),
        name=NAME,
        title="Blank batch",
        settings=ESTIMATORS["grpo"],
        controls=SETTINGS,
        rows=tuple(rows),
        focus=0,
        challenges=(),
        # A: 0.5 / 0.577350, B: mean 0.25, deviation 0.5; eps 1e-6 added.
        expected=Expected(
            correct=(
                *(0.866024, 0.866024, -0.866024, -0.866024),
                *(1.499997, -0.499999, -0.499999, -0.499999),
            )
        ),
    )


LONELY = (1.0, 0.0, 0.0, 0.0)
