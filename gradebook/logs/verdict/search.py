"""Search: which candidates to run on a log, part by part.

Every candidate is tried on a sample of whole steps. What fits there is run
on everything. Only steps that it does not fit are looked at again, a sample
at a time. A part that is no larger than a sample is searched whole. Of one
large step, the sample is some whole prompts: see `try_everything`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.fit import EXACT, Rounding, distance
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.trials import FEW, LARGE, Trials, Tried

VAIN = 3
"""After so many samples that nothing fits, no further one is searched."""

KEPT = 3
"""So many conventions are kept of each bug that fits a whole sample."""

NEED = 4
"""Rounding is allowed for where more than one in so many of the steps that
nothing fits exactly fit with it."""

MISSED, RELATED = 12, 0.5
"""After so many candidates in vain, no further one that couples prompts is
run on all of a large step, and none whose ranks correlate less with the
log's."""


@dataclass(eq=False)
class Search:
    """What the parts before have shown.

    tried       what may be tried
    rounding    how advantages are rounded, once steps need it
    kept        what is run on every step
    vain        samples that nothing fits, exactly and with the rounding
    unsearched  steps that only `kept` was tried on
    by_prompts  large steps that nothing fits: see `try_everything`
    """

    tried: Tried = field(default_factory=Tried)
    rounding: Rounding = EXACT
    kept: dict[Candidate, None] = field(default_factory=dict)
    vain: Counter[Rounding] = field(default_factory=Counter)
    unsearched: int = 0
    by_prompts: int = 0

    def run(self, steps: LoggedSteps, rounding: Rounding) -> Trials:
        """The trials of a part's steps, with the rounding that the log has
        where many steps need it: from then on, all parts allow for it."""
        exact = self._run(steps, self.rounding)
        left = ~exact.fitted
        if not rounding or self.rounding or not left.any():
            return exact
        rounded = self._run(steps.of_steps(left), rounding)
        if rounded.fitted.sum() * NEED <= left.sum():
            return exact
        self.rounding = rounding
        return self._run(steps, rounding)

    def _run(self, steps: LoggedSteps, rounding: Rounding) -> Trials:
        trials = Trials(steps, rounding, self.tried)
        if steps.rows <= FEW and not self.kept:
            try_everything(trials)
            self._keep(trials)
            return trials
        every = np.ones(steps.step_count, dtype=bool)
        trials.try_on(every, list(self.kept))
        asked = np.zeros(steps.step_count, dtype=bool)
        while True:
            left = ~trials.fitted & ~asked
            if not left.any():
                return trials
            if self.vain[rounding] >= VAIN:
                self.unsearched += int(left.sum())
                return trials
            sample = _sample(steps, left)
            asked |= sample
            small = trials
            if not sample.all():
                small = Trials(steps.of_steps(sample), rounding, self.tried)
            try_everything(small)
            found = self._keep(small)
            if not small.fitted.any():
                self.vain[rounding] += 1
                self.by_prompts += small.steps.rows > LARGE
            trials.try_on(every, found)
            if sample.all():
                return trials

    def _keep(self, trials: Trials) -> list[Candidate]:
        """Keeps what is worth running on other steps; the new ones."""
        found = [c for c in worth_keeping(trials) if c not in self.kept]
        self.kept.update(dict.fromkeys(found))
        return found


def try_everything(trials: Trials) -> None:
    """Tries every candidate on all rows; where there are many, on some
    whole prompts, and on all rows what fits there.

    Prompts can be left out to rule out a candidate that couples none. One
    that does couple them has other batch-wide numbers without the rest. So
    where no correct computation fits, those that order the rows of these
    prompts most like the log are run on all rows.
    """
    if trials.steps.rows <= LARGE:
        trials.everything()
        return
    some = trials.some_prompts
    every = np.ones(trials.steps.step_count, dtype=bool)
    for search in (some.likely, some.others):
        search()
        trials.try_on(every, worth_keeping(some, each=1))
        _try_nearest(trials, some)
        if any(fit.loose.any() for fit in trials.fits.values()):
            return
    if not trials.fits:
        correct = (c for c in some.fits if not c.bug)
        closest = min(correct, key=lambda c: some.fits[c].residual.max())
        trials.try_on(every, [closest])


def _try_nearest(trials: Trials, some: Trials) -> None:
    """Runs the nearest candidates on all rows, until a correct one fits.
    Where a bug fits, only those that are as near as it is may be tied. One
    whose numbers hardly differ from those of one that was far off is passed
    over."""
    fitting = {c.bug for c, fit in trials.fits.items() if fit.loose.all()}
    if "" in fitting:
        return
    nearest = 0.0 if fitting else 1.0
    missed: list[tuple[np.ndarray, float]] = []
    for off, candidate, own in _nearest(some):
        if off > nearest or "" in fitting or len(missed) == MISSED:
            return
        known = candidate in trials.fits or candidate.bug in fitting
        if known or any(_median(own, n) < 0.1 * far for n, far in missed):
            continue
        trials.try_on(np.ones(len(trials.quiet), bool), [candidate])
        trace = trials.trace(candidate)
        if trials.fits[candidate].loose.all():
            fitting.add(candidate.bug)
            nearest = off
        elif trace is not None:
            found = trace.advantage.numpy()
            missed.append((own, _median(found, trials.steps.advantage)))


def _nearest(some: Trials) -> list[tuple[float, Candidate, np.ndarray]]:
    """The candidates that couple prompts, the closest first: 1 less the
    correlation of their ranks with the log's, to two decimals, and their
    numbers on these prompts. Among equals, correct ones come first, then
    the closest numbers."""
    logged = np.nan_to_num(some.steps.advantage)
    order = _ranks(logged)
    order -= order.mean()
    known: dict[int, tuple[float, float, np.ndarray] | None] = {}
    found = []
    for candidate in some.fits:
        trace = some.trace(candidate) if candidate.couples_prompts else None
        if trace is None:
            continue
        number = trace.number("advantage")
        if number not in known:
            own = trace.advantage.numpy()
            alike = order @ _ranks(np.nan_to_num(own)) / (order @ order)
            off, known[number] = round(1 - float(alike), 2), None
            if off <= 1 - RELATED:
                known[number] = off, round(_median(own, logged), 2), own
        near = known[number]
        if near is not None:
            off, away, own = near
            found.append((off, bool(candidate.bug), away, candidate, own))
    found.sort(key=lambda each: each[:3])
    return [(off, candidate, own) for off, _, _, candidate, own in found]


def _median(one: np.ndarray, other: np.ndarray) -> float:
    """The median distance of two computations."""
    return float(np.median(distance(one, other)))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Each value's place among all, equal values in their order. [R]"""
    found = np.empty(len(values))
    found[np.argsort(values, kind="stable")] = np.arange(len(values))
    return found


def _sample(steps: LoggedSteps, wanted: np.ndarray) -> np.ndarray:
    """bool [S]: some of the wanted steps, evenly spread, of about FEW rows;
    at least one."""
    at = np.flatnonzero(wanted)
    rows = steps.batch.step_rows.numpy()[at]
    count = min(max(1, int(FEW // max(rows.mean(), 1))), len(at))
    taken = np.zeros(steps.step_count, dtype=bool)
    taken[at[np.linspace(0, len(at) - 1, count).astype(int)]] = True
    return taken


def worth_keeping(trials: Trials, each: int = KEPT) -> list[Candidate]:
    """Candidates to run on other rows: those that fit every step which
    anything fits, `each` of every bug; where there is none, as few as fit
    as many. The correct engine under the same convention goes with every
    bug."""
    telling = trials.fitted & ~trials.quiet
    if not telling.any():
        return []
    fits = {c: f.loose[telling] for c, f in trials.fits.items()}
    full = [c for c, f in fits.items() if f.all()]
    chosen = _few_of_each_bug(full, each) or _cover(fits)
    return [*dict.fromkeys([*(c.correct for c in chosen), *chosen])]


def _few_of_each_bug(full: Iterable[Candidate], each: int) -> list[Candidate]:
    """The correct ones, and a few of each bug; conventions that are also
    correct come first."""
    full = list(full)
    right = {c.convention for c in full if not c.bug}
    full.sort(key=lambda c: bool(c.bug) and c.convention not in right)
    count: Counter[str] = Counter()
    found = []
    for candidate in full:
        count[candidate.bug] += 1
        if not candidate.bug or count[candidate.bug] <= each:
            found.append(candidate)
    return found


def _cover(fits: dict[Candidate, np.ndarray]) -> list[Candidate]:
    """Few candidates that together fit as many steps as all of them; a bug
    covers what its correct engine covers as well."""
    none = np.zeros(len(next(iter(fits.values()))), dtype=bool)
    covers = {c: (f | fits.get(c.correct, none)) & f.any() for c, f in fits.items()}
    left, found = ~none, []
    while left.any():
        best = max(covers, key=lambda c: (covers[c] & left).sum())
        if not (covers[best] & left).any():
            break
        found.append(best)
        left &= ~covers[best]
    return found
