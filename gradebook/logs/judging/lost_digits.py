"""Lost digits: rows on which only rounding explains what a log shows, while a
reading fits all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradebook.cases.record import BUGS, Bug, bug
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import WRITTEN, distance
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import Found, Tick, fit_all, search
from gradebook.logs.judging.suspects import Suspect


@dataclass(frozen=True, eq=False)
class Lost:
    """A number that rounding loses, where a reading fits all other rows.

    shown  [S] "suspect", "asks", or "" where it does not explain the step
    right  bool [S] the reading fits the whole step
    """

    suspect: Suspect
    reading: Reading
    shown: np.ndarray
    right: np.ndarray


def lost_digits(
    found: Found, asked: Asked, usable: np.ndarray, tick: Tick
) -> list[Lost]:
    """Bugs that round, each with a reading that fits all rows but those that
    such a bug alone explains, where what stands there is its evidence."""
    reward = found.steps.batch.reward.numpy().astype("float64")
    prompt = found.steps.batch.prompt_index.numpy()
    results = []
    for record in map(bug, BUGS):
        if record.unexplained is None:
            continue
        rows = record.unexplained(reward, prompt)
        if rows.any() and not rows.all():
            ruler = replace(found.ruler, ignored=rows)

            def only(r: Reading, record: Bug = record) -> bool:
                return all(getattr(r, k) == v for k, v in record.reading.items())

            part = search(ruler, asked, tick, only)
            results.append(_explained(part, record, rows, usable))
    return [each for each in results if each is not None]


def _explained(
    part: Found, record: Bug, rows: np.ndarray, usable: np.ndarray
) -> Lost | None:
    """The reading beside which the evidence is best."""
    steps = part.steps
    best: Lost | None = None
    assert record.evidence is not None
    for r in (fit_all(part, usable, WRITTEN) or _most(part, usable))[:8]:
        computed = part.compute(r)
        right = distance(computed.values, steps.advantage) <= part.ruler.base
        odd = rows & ~right
        shown = record.evidence(
            odd,
            steps.batch.reward.numpy().astype("float64"),
            steps.batch.prompt_index.numpy(),
            steps.advantage,
            computed.baseline,
            r.ddof if r.divides else None,
            r.eps,
        )
        good = part.readings[r].good & (steps.total(odd & (shown == 0)) == 0)
        hit = steps.total(odd) > 0
        proved = bool((shown == 2).any())
        words = np.where(good & hit, "suspect" if proved else "asks", "")
        if (words != "").any() and (best is None or proved):
            best = Lost(Suspect(record.name, r.settings), r, words, good & ~hit)
            if proved:
                return best
    return best


def _most(found: Found, usable: np.ndarray) -> list[Reading]:
    """The reading that fits most steps, if any does."""
    some = sorted(
        found.readings,
        key=lambda r: (-int(found.readings[r].good[usable].sum()), plainness(r)),
    )
    return some[:1]
