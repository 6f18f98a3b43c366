"""One step: the verdict on a single step, in the words of the check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradebook.logs.candidates.candidates import (
    Candidate,
    correct_ones,
    faulty_ones,
)
from gradebook.logs.candidates.fit import ALIKE
from gradebook.logs.candidates.trials import LARGE, Trials
from gradebook.logs.verdict.search import try_everything
from gradebook.logs.verdict.sentences import Facts, sentence_of
from gradebook.logs.verdict.steps import results_of
from gradebook.logs.verdict.tally import Tally, named


@dataclass(frozen=True)
class StepVerdict:
    """What one step is called.

    candidate  what it is named by, or the closest to it
    """

    verdict: str
    candidate: Candidate | None
    sentence: str


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


def judged(trials: Trials, declared: Mapping[str, Any]) -> StepVerdict:
    """The verdict on the one step of these trials, after a search on it.
    `declared` are the settings that a person named."""
    results = results_of(trials)
    tally = Tally()
    tally.add(trials, results)
    found = named(tally, results.frame["verdict"].to_numpy())
    facts = Facts.of(tally, found, results.frame, declared)
    sentence = sentence_of(found, facts)
    return StepVerdict(found.verdict, found.candidate, sentence)
