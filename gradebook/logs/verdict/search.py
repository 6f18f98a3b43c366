"""Search: which candidates to run on a log, part by part.

Every candidate is tried on a sample of whole steps. What fits there is run
on everything. Only steps that it does not fit are looked at again, a sample
at a time. A part that is no larger than a sample is searched whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.fit import EXACT, Rounding
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.strides import made_by
from gradebook.logs.candidates.trials import FEW, Trials, Tried

VAIN = 3
"""After so many samples that nothing fits, no further one is searched."""

KEPT = 3
"""So many conventions are kept of each bug that fits a whole sample."""


@dataclass(eq=False)
class Search:
    """What the parts before have shown.

    tried       what may be tried
    rounding    how advantages are rounded, once most steps need it
    kept        what is run on every step
    vain        samples that nothing fits, exactly and with the rounding
    unsearched  steps that only `kept` was tried on
    """

    tried: Tried = field(default_factory=Tried)
    rounding: Rounding = EXACT
    kept: dict[Candidate, None] = field(default_factory=dict)
    vain: Counter[Rounding] = field(default_factory=Counter)
    unsearched: int = 0

    def run(self, steps: LoggedSteps, rounding: Rounding) -> list[Trials]:
        """The trials of a part's steps: on all of them and, where nothing
        fits exactly, on those steps with the rounding that the log has."""
        first = self._run(steps, self.rounding)
        left = ~first.fitted
        if not rounding or self.rounding or not left.any():
            return [first]
        second = self._run(steps.of_steps(left), rounding)
        if second.fitted.sum() * 2 > steps.step_count:
            self.rounding = rounding
        return [first, second]

    def _run(self, steps: LoggedSteps, rounding: Rounding) -> Trials:
        trials = Trials(steps, rounding, self.tried)
        if steps.rows <= FEW and not self.kept:
            trials.everything()
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
            small = Trials(steps.of_steps(sample), rounding, self.tried)
            small.everything()
            found = self._keep(small)
            if not small.fitted.any():
                self.vain[rounding] += 1
            trials.try_on(every, found)
            if sample.all():
                return trials

    def _keep(self, trials: Trials) -> list[Candidate]:
        """Keeps what is worth running on other steps; the new ones."""
        found = [c for c in worth_keeping(trials) if c not in self.kept]
        self.kept.update(dict.fromkeys(found))
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


def worth_keeping(trials: Trials) -> list[Candidate]:
    """Candidates to run on other steps: those that fit every step which
    anything fits; where there is none, as few as fit as many. The correct
    engine under the same convention goes with every bug."""
    telling = trials.fitted & ~trials.quiet
    if not telling.any():
        return []
    fits = {c: f.loose[telling] for c, f in trials.fits.items()}
    full = [c for c, f in fits.items() if f.all()]
    chosen = _few_of_each_bug(full) or _cover(fits)
    chosen = [_settled(trials, c) for c in chosen]
    return [*dict.fromkeys([*(c.correct for c in chosen), *chosen])]


def _few_of_each_bug(full: Iterable[Candidate]) -> list[Candidate]:
    """The correct ones, and a few of each bug; conventions that are also
    correct come first."""
    full = list(full)
    right = {c.convention for c in full if not c.bug}
    full.sort(key=lambda c: bool(c.bug) and c.convention not in right)
    count: Counter[str] = Counter()
    found = []
    for candidate in full:
        count[candidate.bug] += 1
        if not candidate.bug or count[candidate.bug] <= KEPT:
            found.append(candidate)
    return found


def _cover(fits: dict[Candidate, np.ndarray]) -> list[Candidate]:
    """Few candidates that together fit as many steps as all of them; a bug
    covers what its correct engine covers as well."""
    none = np.zeros(len(next(iter(fits.values()))), dtype=bool)
    covers = {
        c: (f | fits.get(c.correct, none)) & f.any() for c, f in fits.items()
    }
    left, found = ~none, []
    while left.any():
        best = max(covers, key=lambda c: (covers[c] & left).sum())
        if not (covers[best] & left).any():
            break
        found.append(best)
        left &= ~covers[best]
    return found


def _settled(trials: Trials, candidate: Candidate) -> Candidate:
    """The candidate with the values that its rules have on the steps that
    the correct engine does not fit."""
    sizes = telling_values(trials, candidate)
    for setting, value in sizes.items():
        candidate = candidate.with_value(setting, value)
    return candidate


def telling_values(trials: Trials, candidate: Candidate) -> dict[str, int]:
    """Setting -> the commonest value of its rule on the steps that the bug
    fits and its correct engine does not; empty where there is none."""
    correct = trials.fits.get(candidate.correct)
    if not candidate.rules or correct is None:
        return {}
    telling = trials.fits[candidate].loose & ~correct.loose
    if not telling.any():
        return {}
    return {
        setting: Counter(values.numpy()[telling].tolist()).most_common(1)[0][0]
        for setting, values in made_by(trials.steps, candidate.rules).items()
    }
