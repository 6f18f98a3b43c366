"""One step: the verdict on a single step, in the words of the check."""

from __future__ import annotations

import numpy as np

from gradebook.logs.candidates.candidates import (
    Candidate,
    correct_ones,
    faulty_ones,
)
from gradebook.logs.candidates.fit import ALIKE
from gradebook.logs.candidates.trials import LARGE, Trials
from gradebook.logs.verdict.search import try_everything
from gradebook.logs.verdict.steps import results_of
from gradebook.logs.verdict.tally import Named, Tally, named


def search(trials: Trials) -> None:
    """Tries candidates on one step, in the check's order, until one is
    certain to be named; where none is, everything."""
    if trials.steps.rows > LARGE:
        try_everything(trials)
        return
    table, seen = trials.tried.table, trials.seen
    one = np.ones(1, dtype=bool)
    trials.try_on(one, correct_ones(table, seen))
    for candidate in faulty_ones(table, seen, likely=True):
        trials.try_on(one, [candidate])
        if _certain(trials, candidate):
            return
    trials.others()


def _certain(trials: Trials, candidate: Candidate) -> bool:
    """The candidate gives the step's numbers so closely, and tells so many
    rows from the correct ones, that none after it would be preferred."""
    fit = trials.fits[candidate]
    if not fit.tight.all() or fit.residual.max() > ALIKE / 3:
        return False
    own, correct = trials.trace(candidate), trials.trace(candidate.correct)
    if own is None or correct is None:
        return False
    return bool((trials.ruler.sides(own, correct) > candidate.freedom).all())


def judged(trials: Trials) -> Named:
    """What the one step of these trials is called, after a search on it."""
    results = results_of(trials)
    tally = Tally()
    tally.add(trials, results)
    return named(tally, results.frame)
