"""Runs: every candidate's stages on the same rows, each computed once.

Most candidates share most stages. A stage that reads the same settings and
gets the same input is not run again; what it reads is noted as it runs. Two
outputs that are equal bit for bit count as one input to what follows, so
a faulty stage that changes nothing on these rows costs no further stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.logged_steps import LoggedSteps, under
from gradebook.logs.candidates.strides import made_by

INPUTS = {
    "score": (),
    "credited": (),
    "counted": ("credited",),
    "group": (),
    "baseline": ("score", "counted", "group"),
    "scale": ("score", "counted", "group", "baseline"),
    "standardized": ("score", "credited", "baseline", "scale"),
    "advantage": ("standardized", "credited"),
}
"""What the engine's pipeline hands to each stage, up to the advantage."""


class CannotRun(Exception):
    """A stage cannot be computed on some of the rows. `args` tell the
    stage and the rules that its settings come from."""


class _Watched:
    """Settings that note which of them were read."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.settings, name)
        self.read[name] = value
        return value


@dataclass(frozen=True, eq=False)
class StageTrace:
    """A candidate's stages, and the number of each one's output: equal
    numbers, equal output."""

    outputs: dict[str, Tensor]
    numbers: dict[str, int]

    def __getattr__(self, name: str) -> Tensor:
        return self.outputs[name]


@dataclass(eq=False)
class StageRuns:
    """The stages that were run on some logged steps."""

    steps: LoggedSteps
    _calls: dict[tuple, list[tuple[dict[str, Any], int]]] = field(
        default_factory=dict
    )
    _outputs: dict[str, list[Tensor]] = field(default_factory=dict)
    _prints: dict[tuple, list[int]] = field(default_factory=dict)
    _by_rule: dict[tuple, dict[str, Tensor]] = field(default_factory=dict)

    def trace(self, candidate: Candidate) -> StageTrace:
        """Every stage up to the advantage. Raises CannotRun where a stage
        cannot be computed on these rows."""
        engine, settings = candidate.engine, candidate.settings
        rules = tuple(candidate.rules.items())
        outputs: dict[str, Tensor] = {}
        numbers: dict[str, int] = {}
        for name, inputs in INPUTS.items():
            stage = getattr(engine, name)
            key = (stage, rules, *(numbers[i] for i in inputs))
            number = self._known(key, settings)
            if number is None:
                takes = [outputs[i] for i in inputs]
                number = self._run(name, key, settings, takes)
            if number < 0:
                raise CannotRun(stage, rules)
            numbers[name] = number
            outputs[name] = self._outputs[name][number]
        return StageTrace(outputs, numbers)

    def _known(self, key: tuple, settings: Settings) -> int | None:
        """The number of the output, where the stage ran on this input with
        equal values of all settings that it read; -1 where it failed."""
        for read, number in self._calls.get(key, ()):
            if all(getattr(settings, k) == v for k, v in read.items()):
                return number
        return None

    def _run(
        self, name: str, key: tuple, settings: Settings, takes: list[Tensor]
    ) -> int:
        """Runs a stage and notes which settings it reads."""
        stage, rules = key[0], key[1]
        if rules not in self._by_rule:
            self._by_rule[rules] = made_by(self.steps, dict(rules))
        watched: Any = _Watched(settings)
        batch = under(self.steps.batch, watched, self._by_rule[rules])
        try:
            args = takes if name == "standardized" else [batch, *takes]
            number = self._number(name, stage(*args))
        except GradebookError:
            number = -1
        self._calls.setdefault(key, []).append((watched.read, number))
        return number

    def _number(self, name: str, output: Tensor) -> int:
        """The number of an output among those of its stage."""
        known = self._outputs.setdefault(name, [])
        key = (name, *_fingerprint(output))
        for at in self._prints.setdefault(key, []):
            if _same_bits(known[at], output):
                return at
        known.append(output)
        self._prints[key].append(len(known) - 1)
        return len(known) - 1


def _fingerprint(output: Tensor) -> tuple:
    """Equal for equal outputs, seldom for others."""
    values = output.numpy()
    return output.dtype, values[:: len(values) // 64 + 1].tobytes()


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(_bits(one), _bits(other))


def _bits(values: Tensor) -> Tensor:
    kinds = {torch.float64: torch.int64, torch.float32: torch.int32}
    return (
        values.view(kinds[values.dtype]) if values.dtype in kinds else values
    )
