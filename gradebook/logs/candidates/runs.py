"""Runs: every candidate's stages on the same rows, each computed once.

Most candidates share most stages. A stage that reads the same settings and
gets the same input is not run again; what it reads is noted as it runs. Two
outputs that are equal bit for bit count as one input to what follows, so
a faulty stage that changes nothing on these rows costs no further stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.errors import StepsError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import Stage
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.logged_steps import LoggedSteps, under

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
    """A stage cannot be computed on some steps. `steps` says on which,
    bool [S]."""

    def __init__(self, steps: np.ndarray) -> None:
        super().__init__()
        self.steps = steps


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

    @property
    def moved(self) -> bool:
        """The last stage changed the standardized scores."""
        found, before = self.advantage, self.standardized
        return found is not before and not _same_bits(found, before)


@dataclass(eq=False)
class _Known:
    """What a stage gives on one input: which setting it reads next, and
    what follows for each value; at the end, the number of its output, or
    the steps that it cannot compute."""

    reads: str = ""
    values: dict[Any, _Known] = field(default_factory=dict)
    output: int | np.ndarray | None = None

    def found(self, settings: Settings) -> int | np.ndarray | None:
        """The output under these settings; None where it is not known."""
        at: _Known | None = self
        while at is not None and at.output is None:
            value = getattr(settings, at.reads) if at.reads else None
            at = at.values.get(value)
        return None if at is None else at.output

    def learn(self, read: dict[str, Any], output: int | np.ndarray) -> None:
        """Notes an output and the settings that were read for it, in the
        order in which the stage read them."""
        at = self
        for at.reads, value in read.items():
            at = at.values.setdefault(value, _Known())
        at.output = output


@dataclass(eq=False)
class StageRuns:
    """The stages that were run on some logged steps."""

    steps: LoggedSteps
    _calls: dict[tuple, _Known] = field(default_factory=dict)
    _outputs: dict[str, list[Tensor]] = field(default_factory=dict)
    _prints: dict[tuple, list[int]] = field(default_factory=dict)
    _traces: dict[Candidate, StageTrace] = field(default_factory=dict)

    def trace(self, candidate: Candidate) -> StageTrace:
        """Every stage up to the advantage. Raises CannotRun where a stage
        cannot be computed on some steps."""
        found = self._traces.get(candidate)
        if found is None:
            found = self._traces[candidate] = self.up_to(
                "advantage", candidate
            )
        return found

    def up_to(self, last: str, candidate: Candidate) -> StageTrace:
        """Every stage up to the `last` one. Raises as `trace`."""
        engine, settings = candidate.engine, candidate.settings
        outputs: dict[str, Tensor] = {}
        numbers: dict[str, int] = {}
        for name, inputs in INPUTS.items():
            stage = getattr(engine, name)
            key = (stage, *(numbers[i] for i in inputs))
            known = self._calls.setdefault(key, _Known())
            number = known.found(settings)
            if number is None:
                takes = [outputs[i] for i in inputs]
                number = self._run(name, stage, known, settings, takes)
            if isinstance(number, np.ndarray):
                raise CannotRun(number)
            numbers[name] = number
            outputs[name] = self._outputs[name][number]
            if name == last:
                break
        return StageTrace(outputs, numbers)

    def _run(
        self,
        name: str,
        stage: Stage,
        known: _Known,
        settings: Settings,
        takes: list[Tensor],
    ) -> int | np.ndarray:
        """Runs a stage and notes which settings it reads."""
        watched: Any = _Watched(settings)
        batch = under(self.steps.batch, watched)
        found: int | np.ndarray
        try:
            args = takes if name == "standardized" else [batch, *takes]
            found = self._number(name, stage(*args))
        except StepsError as error:
            found = error.steps.numpy()
        known.learn(watched.read, found)
        return found

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
    same_type = one.dtype == other.dtype
    return same_type and torch.equal(_bits(one), _bits(other))


def _bits(values: Tensor) -> Tensor:
    kinds = {torch.float64: torch.int64, torch.float32: torch.int32}
    return (
        values.view(kinds[values.dtype]) if values.dtype in kinds else values
    )
