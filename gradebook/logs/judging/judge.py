"""Judge: what the logged advantages are, as a whole and step by step.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradebook.cases.record import BUGS
from gradebook.logs.judging import proof
from gradebook.logs.judging.by_step import frame_of
from gradebook.logs.judging.conditions import conditions_of, settings_to_try
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import MOST_REWARD, REWARDS, WRITTEN, Fit, Ruler
from gradebook.logs.judging.judgement import Judgement
from gradebook.logs.judging.lost_digits import lost_digits
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import (
    Found,
    Tick,
    fit_all,
    quiet,
    search,
    search_bugs,
)
from gradebook.logs.judging.suspects import Suspect


def judge(ruler: Ruler, asked: Asked, tick: Tick = lambda: None) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    steps = ruler.steps
    found = search(ruler, asked, tick)
    usable = ~quiet(steps)
    whole, lost = _whole(found, asked, usable, tick), []
    if whole.suspect is not None and whole.suspect.rounds:
        lost = lost_digits(found, asked, usable, tick)
    return replace(whole, frame=frame_of(found, asked, usable, lost, whole))


def _whole(found: Found, asked: Asked, usable: np.ndarray, tick: Tick) -> Judgement:
    ruler, steps = found.ruler, found.steps
    if not usable.any():
        return Judgement("cannot tell", found, "nothing varies")
    logged = np.nan_to_num(np.abs(steps.advantage), nan=1.0)
    if logged.max() <= 1e-9:
        search_bugs(found, asked, usable, settings_to_try(asked, (), found.steps), tick)
        asks = conditions_of(found, usable)
        return Judgement("cannot tell", found, "all zero", asks=asks)
    fitting = fit_all(found, usable, WRITTEN)
    if fitting:
        return _fits(found, asked, usable, fitting, tick)
    left = usable & (found.level() > WRITTEN)
    parts = _parts(found, usable)
    search_bugs(found, asked, left if left.any() else usable, None, tick)
    named = _suspected(found, asked, usable)
    if named is not None and (not parts or named.verdict == "suspect"):
        return named
    for lost in lost_digits(found, asked, usable, tick):
        good = lost.right | (lost.shown != "") | (found.level() <= WRITTEN)
        if good[usable].all() and (lost.shown != "").any():
            verdict = "suspect" if (lost.shown == "suspect").any() else "asks"
            s = lost.suspect
            return Judgement(
                verdict, found, "", (lost.reading,), s, (s,), level=WRITTEN
            )
    named = _suspected(found, asked, usable, numbers=True)
    if named is not None:
        return named
    rounded = fit_all(found, usable, REWARDS)
    if rounded:
        return _rounded(found, asked, rounded)
    if parts:
        search_bugs(
            found,
            asked,
            usable,
            settings_to_try(asked, [p[2] for p in parts], steps),
            tick,
        )
        return Judgement(
            "asks",
            found,
            "changed",
            tuple(p[2] for p in parts),
            asks=conditions_of(found, usable),
            parts=parts,
        )
    turned = replace(steps, advantage=-steps.advantage)
    part = search(replace(ruler, steps=turned), asked, tick)
    opposite = fit_all(part, usable, WRITTEN)
    if opposite:
        return Judgement("none fits", found, "opposite sign", tuple(opposite))
    return Judgement("none fits", found, "nothing")


def _fits(
    found: Found,
    asked: Asked,
    usable: np.ndarray,
    fitting: list[Reading],
    tick: Tick,
) -> Judgement:
    """Something of the space fits: correct, other, or a question."""
    best = fitting[0]
    level = int(found.readings[best].level[usable].max())
    search_bugs(
        found, asked, usable, settings_to_try(asked, fitting, found.steps), tick
    )
    standing = conditions_of(found, usable)
    ties = tuple(
        dict.fromkeys(
            s.bug
            for s in found.suspects
            if _fits_all(found.suspects[s], usable)
            and s.bug not in {one.bug for one in standing}
        )
    )
    fits = Judgement("correct", found, asks=standing, ties=ties, level=level)
    mine = [r for r in fitting if asked.wanted(r)]
    if asked.is_declared and not mine:
        return replace(fits, verdict="other", readings=tuple(fitting))
    named = tuple(mine or fitting)
    fits = replace(fits, readings=named)
    counting = [s for s in standing if s.record.stage in proof.HOW_ROWS_COUNT]
    if counting and named[0].rows == "all":
        best_bug = counting[0]
        proved = proof.proved(best_bug, found.steps, asked)
        verdict = "suspect" if proved else "asks"
        return replace(fits, verdict=verdict, suspect=best_bug)
    if not asked.is_declared and all(r.estimator == "none" for r in named):
        return replace(fits, verdict="asks", why="raw reward")
    return fits


def _fits_all(fit: Fit, usable: np.ndarray) -> bool:
    return bool((fit.level[usable] <= WRITTEN).all())


def _suspected(
    found: Found, asked: Asked, usable: np.ndarray, numbers: bool = False
) -> Judgement | None:
    """No reading fits all steps: a bug that does, or that does on some while
    the others are right. `numbers`: one that only float32 tells, which the
    numbers did not prove."""
    fitting: list[Suspect] = []
    for suspect, fit in found.suspects.items():
        good = fit.good
        if not good[usable].all():
            correct = found.correct(suspect)
            good = good | correct.good
        if good[usable].all():
            fitting.append(suspect)
    if not fitting:
        return None

    def merit(suspect: Suspect) -> tuple:
        fit = found.suspects[suspect]
        return (
            -int((fit.level[usable] <= WRITTEN).sum()),
            int(fit.level[usable].max()),
            len(suspect.record.columns),
            len(suspect.guesses),
            BUGS.index(suspect.bug),
        )

    fitting = sorted((s for s in fitting if s.rounds == numbers), key=merit)
    if not fitting:
        return None
    named = fitting[0]
    others = {s.bug: s for s in fitting if s.bug != named.bug}
    level = int(found.suspects[named].level[usable].max())
    verdict = "asks" if numbers else proof.verdict_of(named, found.steps, asked)
    asks = (named, *others.values())
    return Judgement(verdict, found, "", (), named, asks, level=level)


def _rounded(found: Found, asked: Asked, fitting: list[Reading]) -> Judgement:
    """A fit within the rounding of the rewards: a verdict where that is
    small."""
    best = next((r for r in fitting if asked.wanted(r)), None)
    reading = best or fitting[0]
    named = (reading, *(r for r in fitting if r != reading))
    moved = found.ruler.rewards(found.compute(reading).scale)
    if not moved.max() <= MOST_REWARD:
        return Judgement("cannot tell", found, "rounding", named, level=REWARDS)
    verdict = "correct" if best or not asked.is_declared else "other"
    return Judgement(verdict, found, "", named, level=REWARDS)


def _parts(found: Found, usable: np.ndarray) -> tuple[tuple[int, int, Reading], ...]:
    """Two readings, one up to some step and one from there on; () where one
    change in the run does not explain it."""
    places = np.flatnonzero(usable)
    if len(places) < 2:
        return ()
    good = {r: f.level[places] <= WRITTEN for r, f in found.readings.items()}
    runs_on = {r: int(np.argmin(np.append(g, False))) for r, g in good.items()}
    first = min(good, key=lambda r: (-runs_on[r], plainness(r)), default=None)
    if first is None or not 0 < runs_on[first] < len(places):
        return ()
    cut = runs_on[first]
    rest = [r for r, g in good.items() if g[cut:].all()]
    if not rest:
        return ()
    second = min(rest, key=plainness)
    last = len(usable) - 1
    at = int(places[cut])
    return ((0, at - 1, first), (at, last, second))
