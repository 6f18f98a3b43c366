"""Runs: every candidate's stages on the same rows, each computed once.

Most candidates share most stages. A stage that reads the same settings and
gets the same input is not run again; what it reads is noted as it runs. Two
outputs that are equal bit for bit count as one input to what follows, so
a faulty stage that changes nothing on these rows costs no further stage.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.cases.record import bug
from gradebook.core.errors import StepsError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import Engine, Stage
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.logged_steps import (
    LoggedBatch,
    LoggedSteps,
    under,
)

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


@dataclass(eq=False)
class StageTrace:
    """A candidate's stages on some rows. Each is run when it is first asked
    for, by its name; that raises CannotRun where it cannot be computed on
    some steps.

    numbers  of the outputs that were asked for: equal numbers, equal output
    """

    runs: StageRuns
    engine: Engine
    settings: Settings
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The number of a stage's output."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = self.runs.number(name, self)
        return number

    def __getattr__(self, name: str) -> Tensor:
        number = self.number(name)
        return self.runs.outputs[name][number]

    @cached_property
    def batch(self) -> LoggedBatch:
        """The rows under settings that note what is read of them."""
        watched: Any = _Watched(self.settings)
        return under(self.runs.steps.batch, watched)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """The numbers of all stages."""
        return tuple(self.number(name) for name in INPUTS)

    @cached_property
    def moved(self) -> bool:
        """The last stage changed the standardized scores."""
        return not _same_bits(self.advantage, self.standardized)


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
    outputs: dict[str, list[Tensor]] = field(default_factory=dict)
    _calls: dict[tuple, _Known] = field(default_factory=dict)
    _prints: dict[tuple[str, bytes], list[int]] = field(default_factory=dict)
    _traces: dict[Candidate, StageTrace] = field(default_factory=dict)

    def trace(self, candidate: Candidate) -> StageTrace:
        """The candidate's stages, up to the advantage. Where a bug's stage
        gives what the correct stage gives, they are the correct ones."""
        found = self._traces.get(candidate)
        if found is None:
            found = self._traces[candidate] = self._new(candidate)
        return found

    def _new(self, candidate: Candidate) -> StageTrace:
        trace = StageTrace(self, candidate.engine, candidate.settings)
        if not candidate.bug:
            return trace
        correct = self.trace(candidate.correct)
        if trace.settings is not correct.settings:
            return trace
        stage = bug(candidate.bug).stage
        for name in INPUTS:
            if name == stage:
                break
            if name in correct.numbers:
                trace.numbers[name] = correct.numbers[name]
        with suppress(CannotRun):
            if trace.number(stage) == correct.number(stage):
                return correct
        return trace

    def number(self, name: str, trace: StageTrace) -> int:
        """The number of a stage's output, which is run where it is not
        known. Raises CannotRun."""
        stage = getattr(trace.engine, name)
        key = (stage, *[trace.number(i) for i in INPUTS[name]])
        known = self._calls.get(key)
        if known is None:
            known = self._calls[key] = _Known()
        number = known.found(trace.settings)
        if number is None:
            number = self._run(name, stage, known, trace)
        if isinstance(number, np.ndarray):
            raise CannotRun(number)
        return number

    def _run(
        self, name: str, stage: Stage, known: _Known, trace: StageTrace
    ) -> int | np.ndarray:
        """Runs a stage and notes which settings it reads."""
        batch: Any = trace.batch
        read = batch.settings.read = {}
        takes = [getattr(trace, i) for i in INPUTS[name]]
        found: int | np.ndarray
        try:
            args = takes if name == "standardized" else [batch, *takes]
            found = self._number(name, stage(*args))
        except StepsError as error:
            found = error.steps.numpy()
        known.learn(read, found)
        return found

    def _number(self, name: str, output: Tensor) -> int:
        """The number of an output among those of its stage."""
        known = self.outputs.setdefault(name, [])
        alike = self._prints.setdefault((name, _fingerprint(output)), [])
        for at in alike:
            if _same_bits(known[at], output):
                return at
        alike.append(len(known))
        known.append(output)
        return alike[-1]


def _fingerprint(output: Tensor) -> bytes:
    """Equal for equal outputs, seldom for others."""
    return output.numpy()[:: len(output) // 64 + 1].tobytes()


def _same_bits(one: Tensor, other: Tensor) -> bool:
    same_type = one.dtype == other.dtype
    return same_type and torch.equal(_bits(one), _bits(other))


def _bits(values: Tensor) -> Tensor:
    kinds = {torch.float64: torch.int64, torch.float32: torch.int32}
    return values.view(kinds[values.dtype]) if values.dtype in kinds else values
