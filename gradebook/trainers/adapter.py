"""What the table of adapters says about a trainer, and how a step reaches it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradebook.trainers.cut import Files, Module, NotCut

Groups = list[list[Any]]
"""Rewards by prompt: a number, None, or a list with one for each function."""


class Rows:
    """A step's rewards in the shapes that trainers take.

    groups   rewards by prompt
    size     the configured group size: that of the largest group
    prompt   each row's prompt, a whole number
    weights  one for each reward function
    """

    def __init__(
        self,
        groups: Groups,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.groups, self.dtype = groups, dtype
        self.size = max(map(len, groups))
        self.prompt = [number for number, group in enumerate(groups) for _ in group]
        rows = [row for group in groups for row in group]
        values = [r if isinstance(r, (list, tuple)) else [r] for r in rows]
        self.each = [[math.nan if v is None else float(v) for v in r] for r in values]
        self.weights = torch.tensor(weights or [1.0] * len(self.each[0]))

    def functions(self) -> torch.Tensor:
        """Rewards [R, functions], NaN where one is missing."""
        return torch.tensor(self.each, dtype=self.dtype)

    def rewards(self) -> torch.Tensor:
        """Rewards [R] of the one function."""
        if len(self.each[0]) > 1:
            raise TypeError("one reward function")
        return self.functions()[:, 0]

    def lists(self) -> list[list[float]]:
        """Rewards by prompt, NaN where one is missing."""
        return self.by_prompt(self.rewards().double().tolist())

    def by_prompt(self, rows: Sequence[Any]) -> list[list[Any]]:
        """What each row has, by prompt."""
        values = iter(rows)
        return [[next(values) for _ in group] for group in self.groups]

    def tokens(self) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Rewards on the last of four tokens [R, 4], a full mask, prompts."""
        rewards = self.rewards()
        scores = torch.zeros(len(rewards), 4, dtype=self.dtype)
        scores[:, -1] = rewards
        mask = torch.ones(len(rewards), 4, dtype=torch.int64)
        return scores, mask, np.array(self.prompt)


LATEST = "9999"
"""Before it is every version."""


@dataclass(frozen=True)
class Cut:
    """A function that was found: call it with named settings.

    run    the function, or its statements
    module its file
    where  file:line
    name   its name in the file
    """

    run: Callable[..., Any]
    module: Module
    where: str
    name: str

    def trainer(self, nested: str = "", **attributes: Any) -> Any:
        """Stands for a trainer's `self` or its configuration: these attributes,
        itself under the names in `nested`, and the methods of its class."""
        return _Trainer(self.module, nested.split(), attributes)


class _Trainer:
    def __init__(
        self, module: Module, nested: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        vars(self).update(dict.fromkeys(nested, self), **attributes)
        vars(self)["_module"] = module

    def __getattr__(self, name: str) -> Any:
        try:
            method, _ = self._module.method("." + name)
        except NotCut as error:
            raise AttributeError(str(error)) from None
        return lambda *values, **named: method(self, *values, **named)


@dataclass(frozen=True)
class Function:
    """One function of a trainer, under one choice of its settings.

    setting    what was chosen, in the trainer's own words
    places     "file name" where it has stood, or "file name after before" for
               statements of it; the first that is there counts
    call       how it is called: cut function, rows, settings -> advantages [R]
    declared   the computation that its documentation asks for
    reached    the settings that reach it
    default    whether a user meets it without choosing it
    settings   what `call` is given beside the rows
    since, before  the versions it is good for
    untold     laws that these numbers cannot tell, as what stands for a
               missing library rounds differently
    """

    setting: str
    places: tuple[str, ...]
    call: Callable[..., Any]
    declared: Mapping[str, Any]
    reached: str
    default: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    since: str = "0"
    before: str = LATEST
    untold: tuple[str, ...] = ()

    def cut(self, files: Files, version: str) -> Cut:
        """The function in a release's files. Raises NotCut."""
        if not numbers(self.since) <= numbers(version) < numbers(self.before):
            raise NotCut(f"not in {version}")
        reasons = []
        for place in self.places:
            path, name, *ends = place.split()
            try:
                module = Module(path, files)
                reach = module.statements if ends else module.method
                run, line = reach(name, *ends)
                return Cut(run, module, f"{path}:{line}", name.lstrip("."))
            except NotCut as error:
                reasons.append(str(error))
        raise NotCut("; ".join(reasons))

    def run(
        self,
        cut: Cut,
        groups: Groups,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> list[list[float]]:
        """Its advantages for rewards by prompt, as float64."""
        rows = Rows(groups, weights, dtype)
        advantages = self.call(cut, rows, **self.settings)
        if isinstance(advantages, torch.Tensor):
            advantages = advantages.double()
        values = np.asarray(advantages, dtype=np.float64)
        if values.shape != (len(rows.prompt),):
            shape = " by ".join(map(str, values.shape))
            raise ValueError(f"{len(rows.prompt)} rows in, {shape} advantages out")
        return rows.by_prompt(values.tolist())


@dataclass(frozen=True)
class Adapter:
    """A trainer: its name, its package and its functions."""

    trainer: str
    package: str
    functions: tuple[Function, ...]


def numbers(version: str) -> list[int]:
    """A version's leading numbers, for comparison."""
    parts = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return parts
