"""Search: which computations to try on the next part of a large log.

A step alone can be given by hundreds of computations; a log by few. So a
few steps of a large part are searched whole, and the rest of it is run
under what was found there. Steps that nothing found fits are searched in
turn, a few at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gradebook.core.settings import ESTIMATORS
from gradebook.logs.candidates.rollouts import Rollouts
from gradebook.logs.check import judged_part
from gradebook.logs.computations import Computation, base
from gradebook.logs.judging import Judging, fitting, judged, restrided
from gradebook.logs.results import StepResults, results_of

SEARCHED = 8192
"""So many rows are searched whole at a time; a smaller log, all of it."""

PLAIN = Computation("", "grpo", ESTIMATORS["grpo"], 1)
"""What the log is compared with where nothing was found."""


@dataclass(eq=False)
class Search:
    """What was found in the parts before.

    group_size  rows per prompt, as given or as the strides tell
    places      decimals the advantages are rounded to, once that is what
                makes them fit
    measured    by which correct computation how many steps are measured
    leaders     what steps were named by, and its correct twin, in order
    ties        what fits every step so far as well
    vain        searches that found nothing
    unsearched  steps that only what was found elsewhere was tried on
    """

    group_size: int | None = None
    places: int | None = None
    measured: Counter[Computation] = field(default_factory=Counter)
    leaders: dict[Computation, None] = field(default_factory=dict)
    ties: dict[Computation, None] = field(default_factory=dict)
    vain: int = 0
    parts: int = 0
    unsearched: int = 0

    def judged(
        self, rollouts: Rollouts, places: int | None
    ) -> tuple[Judging, StepResults]:
        """A part's steps, judged; `places` are the decimals that its
        advantages have."""
        self.parts += 1
        if "advantage" not in rollouts.has:
            work = Judging(rollouts)
            return work, results_of(work)
        if rollouts.batch.rows <= SEARCHED and not self.leaders:
            work, results = judged_part(rollouts, places, self.group_size)
            self._note_size(work)
            _complete(work, self.group_size)
        else:
            work = self._focused(rollouts, places)
            self._keep(work)
            results = results_of(work, self.usual)
        return work, self._measured(work, results)

    @property
    def usual(self) -> Computation | None:
        """The correct computation by which most steps are measured."""
        most = self.measured.most_common(1)
        return most[0][0] if most else None

    def _measured(self, work: Judging, results: StepResults) -> StepResults:
        """The results; steps that nothing fits, by the usual computation."""
        told = results.frame["verdict"]
        fitted = told.isin(["correct", "suspect"])
        before = self.usual
        self.measured.update(
            c.correct for c, f in zip(results.chosen, fitted) if f and c
        )
        if self.usual in (None, before) or not (told == "none fits").any():
            return results
        return results_of(work, self.usual)

    def _focused(self, rollouts: Rollouts, places: int | None) -> Judging:
        every = np.ones(rollouts.steps, dtype=bool)
        if not self.leaders:
            self._learn(rollouts.of_steps(_spread(rollouts, every)), places)
        work = self._tried(rollouts)
        asked = np.zeros(rollouts.steps, dtype=bool)
        while True:
            left = ~fitting(work) & ~asked
            if not left.any():
                return work
            if self.vain and self.parts < 2**self.vain:
                self.unsearched += int(left.sum())
                return work
            sample = _spread(rollouts, left)
            asked |= sample
            known = set(self.leaders), set(self.ties), self.places
            if not self._learn(rollouts.of_steps(sample), places):
                self.vain += 1
            if (set(self.leaders), set(self.ties), self.places) != known:
                work = self._tried(rollouts)

    def _tried(self, rollouts: Rollouts) -> Judging:
        """The part under what was found so far."""
        leaders = [*self.leaders] or [PLAIN]
        twins = [c.correct for c in self.ties]
        work = Judging(
            rollouts,
            self.places,
            self.group_size,
            frozenset((*leaders, *self.ties, *twins)),
            frozenset(self.leaders),
        )
        every = np.ones(rollouts.steps, dtype=bool)
        work.try_all(bases((*leaders, *self.ties)), every)
        for tie, twin in zip(self.ties, twins):
            work.try_all(bases([twin]), ~work.fits[tie].fits)
        return work

    def _learn(self, few: Rollouts, places: int | None) -> bool:
        """Searches some steps whole; whether anything fits one of them."""
        work = judged(few, self.places, self.group_size)
        if places and not self.places and not fitting(work).all():
            rounded = judged(few, places, self.group_size)
            if fitting(rounded).sum() > fitting(work).sum():
                work, self.places = rounded, places
        self._note_size(work)
        _complete(work, self.group_size)
        chosen = Counter(results_of(work).chosen)
        for c, _ in chosen.most_common():
            if c is not None:
                self.leaders |= {c.correct: None, c: None}
        fits = fitting(work)
        self.ties |= {
            c: None
            for c, fit in work.fits.items()
            if fits.any() and bool(fit.fits[fits].all())
        }
        return bool(fits.any())

    def _keep(self, work: Judging) -> None:
        """Forgets ties that failed on a step that something fits."""
        fits = fitting(work)
        failed = [
            c
            for c in self.ties
            if c in work.fits and not work.fits[c].fits[fits].all()
        ]
        for c in failed:
            del self.ties[c]

    def _note_size(self, work: Judging) -> None:
        if self.group_size is None:
            self.group_size = telling_size(work)


def _complete(work: Judging, group_size: int | None) -> None:
    """Tries, on every step, what fits wherever it was tried, and strides
    of the log's own group size."""
    every = np.ones(work.rollouts.steps, dtype=bool)
    hopeful = [
        c
        for c, fit in work.fits.items()
        if np.isnan(fit.residual).any()
        and fit.fits.any()
        and bool((fit.fits | np.isnan(fit.residual)).all())
    ]
    work.try_all(bases(hopeful), every)
    strides = [
        restrided(c, "given", group_size)
        for c, fit in work.fits.items()
        if group_size
        and c.bug == "partial_groups"
        and c.stride != "given"
        and fit.fits.any()
    ]
    work.try_all(bases(strides), every)


def telling_size(work: Judging) -> int | None:
    """The rows per prompt whose strides give the steps that nothing
    correct gives; None where there is no such step."""
    plain = fitting(work, "")
    found: Counter[int] = Counter()
    for c, fit in work.fits.items():
        telling = fit.fits & ~plain
        if c.bug == "partial_groups" and telling.any():
            found.update(work.strides(c).numpy()[telling].tolist())
    return found.most_common(1)[0][0] if found else None


def _spread(rollouts: Rollouts, wanted: np.ndarray) -> np.ndarray:
    """bool [S]: some of the wanted steps, evenly spread, of about SEARCHED
    rows."""
    at = np.flatnonzero(wanted)
    rows = rollouts.batch.step_rows.numpy()[at]
    count = max(1, int(SEARCHED // max(rows.mean(), 1)))
    taken = np.zeros(rollouts.steps, dtype=bool)
    spread = np.linspace(0, len(at) - 1, min(count, len(at))).astype(int)
    taken[at[spread]] = True
    return taken


def bases(wanted: Iterable[Computation]) -> list[Computation]:
    """The computations that `wanted` are variants of, each once, the
    correct ones first."""
    found = dict.fromkeys(base(c) for c in wanted)
    return sorted(found, key=lambda c: bool(c.bug))
