"""Trials: candidates tried on logged steps, and which steps they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.pipeline import CORRECT, Engine, run
from gradebook.logs.candidates.candidates import (
    CLIPS,
    Candidate,
    Evidence,
    clipped_ones,
    correct_ones,
    faulty_ones,
    suggested,
)
from gradebook.logs.candidates.conventions import (
    Convention,
    clipping,
    configured,
    conventions,
    unlisted,
)
from gradebook.logs.candidates.fit import ABSOLUTE, EXACT, Fit, Rounding, Ruler
from gradebook.logs.candidates.logged_steps import LoggedSteps, under
from gradebook.logs.candidates.runs import CannotRun, StageRuns, StageTrace

FEW, LARGE = 2_048, 16_384
"""Rows of a sample. A step of more rows than LARGE is searched on some of
its prompts."""


@dataclass(frozen=True)
class Tried:
    """What a search tries.

    table    the conventions that count as listed
    given    settings that a person named
    tick     called between two candidates; it ends the check by raising an
             exception
    """

    table: tuple[Convention, ...] = field(default_factory=conventions)
    given: tuple[tuple[str, object], ...] = ()
    tick: Callable[[], object] = lambda: None

    @property
    def clipping(self) -> tuple[Convention, ...]:
        """What is tried with clipped rewards."""
        return clipping() if self.table == conventions() else self.table

    @property
    def configured(self) -> tuple[Convention, ...]:
        """What listed trainers compute under other values of a setting."""
        return configured() if self.table == conventions() else ()

    @property
    def others(self) -> tuple[Convention, ...]:
        """Combinations beyond the table; none where a person declared."""
        return unlisted() if self.table == conventions() else ()


@dataclass(eq=False)
class Trials:
    """Candidates on some logged steps.

    steps     the steps
    rounding  how the log's numbers were rounded
    fits      how each candidate lies with the log; a step that it was not
              tried on counts as one that it does not fit
    """

    steps: LoggedSteps
    rounding: Rounding = EXACT
    tried: Tried = field(default_factory=Tried)
    fits: dict[Candidate, Fit] = field(default_factory=dict)
    _parts: dict[bytes, Trials] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runs = StageRuns(self.steps)
        """The stages that were run on these steps."""

    def widened(self, tried: Tried) -> Trials:
        """The same steps with more to try; what was run stays known."""
        wider = Trials(self.steps, self.rounding, tried, dict(self.fits))
        wider.runs, wider.ruler = self.runs, self.ruler
        return wider

    @cached_property
    def ruler(self) -> Ruler:
        """What distances are measured with."""
        return Ruler(self.steps, self.rounding)

    @cached_property
    def seen(self) -> Evidence:
        """What the rows allow to be tried."""
        batch = self.steps.batch
        largest = float(batch.reward.abs().max())
        return Evidence(
            self.steps.has,
            not bool(batch.eos.all()),
            tuple(c for c in CLIPS if c < largest),
            suggested(self.steps.groups.size),
            self.tried.given,
        )

    @cached_property
    def quiet(self) -> np.ndarray:
        """bool [S]: the rewards of every prompt are equal, and all
        advantages are 0: whatever was computed, this step tells nothing."""
        logged = np.nan_to_num(np.abs(self.steps.advantage), nan=1.0)
        quiet = self.steps.worst(logged) <= ABSOLUTE
        return quiet & self.flat

    @cached_property
    def flat(self) -> np.ndarray:
        """bool [S]: every reward equals those of its prompt."""
        groups = self.steps.groups
        reward = self.steps.batch.reward.numpy()
        first = reward[groups.first][self.steps.batch.prompt_index.numpy()]
        away = np.abs(reward - first)
        away -= 1e-6 * np.abs(reward)
        return self.steps.worst(away) <= 0

    @property
    def fitted(self) -> np.ndarray:
        """bool [S]: some candidate fits the step."""
        found = self.quiet.copy()
        for fit in self.fits.values():
            found |= fit.loose
        return found

    def everything(self) -> None:
        """Tries every candidate."""
        self.likely()
        self.others()

    def likely(self) -> None:
        """Tries the listed conventions and, under them, every bug."""
        table, seen = self.tried.table, self.seen
        every = np.ones(self.steps.step_count, dtype=bool)
        self.try_on(every, correct_ones(table, seen))
        self.try_on(every, faulty_ones(table, seen, likely=True))

    def others(self) -> None:
        """Tries all others, on the steps that nothing fits so far."""
        table, seen = self.tried.table, self.seen
        for more in (
            faulty_ones(table, seen, likely=False),
            clipped_ones(self.tried.clipping, seen),
            correct_ones(self.tried.configured, seen),
            faulty_ones(self.tried.configured, seen, likely=True),
            faulty_ones(self.tried.configured, seen, likely=False),
            correct_ones(self.tried.others, seen),
        ):
            left = ~self.fitted
            if left.any():
                self.try_on(left, more)

    def try_on(self, at: np.ndarray, wanted: Iterable[Candidate]) -> None:
        """Tries candidates on the steps `at`, bool [S]."""
        if at.all():
            for candidate in wanted:
                if candidate not in self.fits:
                    self.fits[candidate] = self._fit(candidate)
            return
        part = self.part(at)
        for candidate in wanted:
            fit = self.fits.get(candidate)
            if fit is None:
                fit = self.fits[candidate] = Fit.none(len(at))
            fit.put(at, part._fit(candidate))

    def _fit(self, candidate: Candidate) -> Fit:
        """The candidate's fit on every step."""
        self.tried.tick()
        try:
            if self.opposed(candidate):
                return Fit.none(self.steps.step_count)
            return self.ruler.fit(self.runs.trace(candidate))
        except CannotRun as error:
            fit = Fit.none(self.steps.step_count)
            if not error.steps.all():
                part = self.part(~error.steps)
                fit.put(~error.steps, part._fit(candidate))
            return fit

    def opposed(self, candidate: Candidate) -> bool:
        """The signs in the log rule the candidate out on every step, before
        its scale is computed. Never said of a listed correct computation:
        its distance from the log is told even where it is not near."""
        if candidate.listed and not candidate.bug:
            return False
        if candidate.settings.whiten_tokens or not keeps_signs(candidate.engine):
            return False
        return bool(self.ruler.opposed(self.runs.trace(candidate)).all())

    def trace(self, candidate: Candidate) -> StageTrace | None:
        """The candidate's stages, None where it cannot be computed."""
        trace = self.runs.trace(candidate)
        try:
            return trace if trace.key else None
        except CannotRun:
            return None

    def part(self, at: np.ndarray) -> Trials:
        """The trials of the steps `at`, bool [S]; the last ones are kept."""
        key = at.tobytes()
        if key not in self._parts:
            if len(self._parts) >= 16:
                self._parts.clear()
            steps = self.steps.of_steps(at)
            self._parts[key] = Trials(steps, self.rounding, self.tried)
        return self._parts[key]

    @cached_property
    def some_prompts(self) -> Trials:
        """Trials of some whole prompts of every step, about FEW rows: the
        first ones, and those with a column's smallest and largest value."""
        steps, b = self.steps, self.steps.batch
        prompt = b.prompt_index.numpy()
        ends = np.cumsum(steps.groups.size)
        before = ends - steps.groups.size
        first = np.searchsorted(steps.groups.step, np.arange(steps.step_count))
        share = max(FEW // steps.step_count, 1)
        chosen = before - before[first][steps.groups.step] < share
        telling = (b.reward, b.lengths, b.eos, b.scored, b.prompt_rows)
        for values in telling:
            plain = values.to(torch.float64).numpy()
            if plain.min() == plain.max():
                continue
            for signed in (plain, -plain):
                found = steps.first_at(signed, steps.worst(signed))
                chosen[prompt[found]] = True
        some = steps.of_rows(chosen[prompt])
        return Trials(some, self.rounding, self.tried)


@lru_cache
def keeps_signs(engine: Engine) -> bool:
    """Without whitening, an advantage has the sign of its score's distance
    from the baseline: a scale is a deviation or a share, so it is positive."""
    after = ("standardized", "advantage")
    return all(getattr(engine, n) is getattr(CORRECT, n) for n in after)


@lru_cache
def without_loss(engine: Engine) -> Engine:
    """The engine without its question which rows train: advantages do not
    ask it."""
    return replace(engine, trained=_not_asked)


def _not_asked(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """Counted rows, in place of `trained`. bool [R]."""
    return counted


def advantages(steps: LoggedSteps, candidate: Candidate) -> np.ndarray:
    """The candidate's advantages from a plain run of its engine. float64
    [R]. Raises GradebookError where it cannot be computed."""
    batch = under(steps.batch, candidate.settings)
    found = run(without_loss(candidate.engine), batch).advantage
    return found.to(torch.float64).numpy()
