"""One step: the verdict on a single step, in the words of the check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.trials import Trials
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


def judged(trials: Trials, declared: Mapping[str, Any]) -> StepVerdict:
    """The verdict on the one step of these trials, after trying everything
    on it. `declared` are the settings that a person named."""
    try_everything(trials)
    results = results_of(trials)
    tally = Tally()
    tally.add(trials, results)
    found = named(tally, results.frame["verdict"].to_numpy())
    facts = Facts.of(tally, found, results.frame, declared)
    sentence = sentence_of(found, facts)
    return StepVerdict(found.verdict, found.candidate, sentence)
