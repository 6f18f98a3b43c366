"""Naming: which computation of the space gives the advantages of small batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import WRITTEN, Ruler
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import quiet, search
from gradebook.logs.judging.views import compute
from gradebook.logs.logged_steps import LoggedSteps, to_logged

Groups = Sequence[Sequence[Any]]
"""Numbers by prompt; a reward may be None."""


def computations_of(batches: Sequence[tuple[Groups, Groups]]) -> list[Reading]:
    """The readings that give the advantages of every batch, a pair of rewards
    and advantages by prompt: the plainest first, and of equally plain ones
    the nearest.

    >>> batch = [[1.0, 2.0, 4.5]], [[-1.5, -0.5, 2.0]]
    >>> computations_of([batch])[0].title
    'Dr. GRPO'
    """
    steps = as_steps(batches)
    candidates = search(Ruler(steps), Asked())
    fitting = candidates.fitting(~quiet(steps), WRITTEN)

    def merit(reading: Reading) -> tuple:
        return plainness(reading), float(candidates.readings[reading].residual.max())

    return sorted(fitting, key=merit)


def advantages(reading: Reading, rewards: Groups) -> list[list[float]]:
    """What a reading gives on other rewards, by prompt."""
    values = compute(as_steps([(rewards, rewards)]), reading).values
    ends = np.cumsum([len(group) for group in rewards])[:-1]
    return [part.tolist() for part in np.split(values, ends)]


def as_steps(batches: Sequence[tuple[Groups, Groups]]) -> LoggedSteps:
    """Batches as logged steps. A reward of None is missing. Each row has four
    tokens, so that a whitening over tokens is told from one over rows."""
    rows = [
        (step, prompt, reward or 0.0, advantage, reward is not None, 4)
        for step, (rewards, advantages) in enumerate(batches)
        for prompt, pair in enumerate(zip(rewards, advantages))
        for reward, advantage in zip(*pair)
    ]
    names = ["step", "prompt", "reward", "advantage", "scored", "length"]
    return to_logged(pd.DataFrame(rows, columns=names))
