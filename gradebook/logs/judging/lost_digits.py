"""Lost digits: rows on which only float32 explains what a log shows, while a
reading fits all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradebook.cases.record import BUGS, bug
from gradebook.logs.judging import proof
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import WRITTEN, distance
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import Found, Tick, fit_all, search
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.judging.views import compute


def is_float32(suspect: Suspect) -> bool:
    return _has_lost(suspect.bug)


@dataclass(frozen=True, eq=False)
class Lost:
    """A number that float32 loses, where a reading fits all other rows.

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
    """Readings that fit all rows but those of flat groups, or of equal
    siblings, where what stands there is float32 rounding."""
    steps, ruler = found.steps, found.ruler
    names = {bug(n).loses.split()[1]: n for n in BUGS if _has_lost(n)}
    flat = proof.flat_rows(steps) & (np.abs(steps.advantage) > ruler.base)
    results = []
    if flat.any() and not proof.flat_rows(steps).all() and "mean" in names:
        part = search(replace(ruler, ignored=flat), asked, tick)
        results.append(_dust(part, names["mean"], flat, usable))
    equal = proof.equal_siblings(steps)
    if equal.any() and not equal.all() and "variance" in names:
        only = replace(ruler, ignored=equal)
        part = search(only, asked, tick, _of_others)
        results.append(_one_pass(part, names["variance"], equal, usable))
    return [each for each in results if each is not None]


def _of_others(r: Reading) -> bool:
    return r.scale == "others_std" and r.baseline == "leave_one_out"


def _dust(part: Found, name: str, flat: np.ndarray, usable: np.ndarray) -> Lost | None:
    fitting = fit_all(part, usable, WRITTEN) or _most(part, usable)
    if not fitting:
        return None
    steps, good = part.steps, part.readings[fitting[0]].good
    lies = steps.total(flat & ~proof.on_float32_lattice(steps, flat, fitting)) == 0
    hit = steps.total(flat) > 0
    shown = np.where(good & lies & hit, "suspect", "")
    suspect = Suspect(name, fitting[0].settings)
    return Lost(suspect, fitting[0], shown, good & ~hit)


def _one_pass(
    part: Found, name: str, equal: np.ndarray, usable: np.ndarray
) -> Lost | None:
    fitting = fit_all(part, usable, WRITTEN) or _most(part, usable)
    best: Lost | None = None
    for r in fitting[:8]:
        steps, computed = part.steps, compute(part.steps, r)
        right = part.ruler.base >= distance(computed.values, steps.advantage)
        odd = equal & ~right
        shown = proof.one_pass(steps, computed.baseline, odd, r.ddof, r.eps)
        good = part.readings[r].good & (steps.total(odd & (shown == 0)) == 0)
        hit = steps.total(odd) > 0
        proved = len(np.unique(steps.batch.prompt_index.numpy()[shown == 2])) >= 2
        word = "suspect" if proved else "asks"
        words = np.where(good & hit, word, "")
        if (words != "").any() and (best is None or proved):
            best = Lost(Suspect(name, r.settings), r, words, good & ~hit)
    return best


def _most(found: Found, usable: np.ndarray) -> list[Reading]:
    """The reading that fits most steps, if any does."""
    some = sorted(
        found.readings,
        key=lambda r: (-int(found.readings[r].good[usable].sum()), plainness(r)),
    )
    return some[:1]


def _has_lost(name: str) -> bool:
    return bug(name).loses.startswith("float32")
