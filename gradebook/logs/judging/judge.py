"""Judge: what the logged advantages are, as a whole and step by step.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks". S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradebook.cases.record import BUGS
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging import proof
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import (
    MOST_REWARD,
    NONE,
    REWARDS,
    WRITTEN,
    Ruler,
    apart,
    distance,
)
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import (
    Candidates,
    Tick,
    due,
    fit_all,
    one_change,
    quiet,
    search,
    search_bugs,
)
from gradebook.logs.judging.suspects import Suspect, settings_to_try, trace
from gradebook.logs.judging.views import compute

COLUMNS = (
    "step",
    "verdict",
    "bug",
    "ties",
    "asks",
    "estimator",
    "residual",
    "correct_residual",
    "row",
)
"""The columns of `gradebook.check`."""

COUNTS = ("rows", "groups", "flips", "groups_affected")
"""What a timeline counts beside them."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the advantages of some steps are.

    verdict     correct, other, suspect, asks, cannot tell or none fits
    candidates  all that was searched
    why         what stands behind "asks", "cannot tell" and "none fits"
    readings    the computations of the space that fit, the preferred first
    suspect     the bug that is named or asked about, under its settings
    asks        bugs that these numbers would be under a condition, each with
                the settings that it takes
    ties        bugs that leave no trace on these rows
    parts       (first step, last step, reading) where the run changed once
    level       how closely the named computation fits
    frame       one row a step: COLUMNS and COUNTS
    """

    verdict: str
    candidates: Candidates
    why: str = ""
    readings: tuple[Reading, ...] = ()
    suspect: Suspect | None = None
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    parts: tuple[tuple[int, int, Reading], ...] = ()
    level: int = NONE
    frame: Any = None

    @property
    def bug(self) -> str:
        """The bug that is named or asked about, or ""."""
        named = self.suspect is not None and self.verdict in ("suspect", "asks")
        return self.suspect.bug if self.suspect is not None and named else ""

    @property
    def estimator(self) -> str:
        """The name of the computation, or of the one that the bug is beside."""
        if self.readings:
            return self.readings[0].estimator
        if self.suspect is None:
            return ""
        return Reading.of(self.suspect.settings).estimator

    @property
    def tied(self) -> tuple[str, ...]:
        """Bugs and estimators that fit as well."""
        if self.suspect is not None and not self.readings:
            return tuple(s.bug for s in self.asks[1:])
        names = [r.estimator for r in self.readings]
        tied = dict.fromkeys((*self.ties, *names))
        tied.pop(self.estimator, None)
        return tuple(tied)

    def residual(self, step: int) -> float:
        """How far the named computation is from the step's rows at most; NaN for
        what rounding lost."""
        fit = None
        if self.readings and not (self.suspect and self.suspect.rounds):
            fit = self.candidates.readings.get(self.readings[0])
        elif self.suspect is not None:
            fit = self.candidates.suspects.get(self.suspect)
        return float(fit.residual[step]) if fit is not None else np.nan


def judge(ruler: Ruler, asked: Asked, tick: Tick = lambda: None) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    candidates, usable = search(ruler, asked, tick), ~quiet(ruler.steps)
    whole, lost = _whole(candidates, asked, usable, tick)
    return replace(whole, frame=_frame(whole, asked, usable, lost))


def by_step(ruler: Ruler, asked: Asked) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    candidates, usable = search(ruler, asked), ~quiet(ruler.steps)
    good = candidates.level() <= WRITTEN
    named = sorted(candidates.readings, key=plainness)
    settings = settings_to_try(asked.declared, named, ruler.steps)
    search_bugs(candidates, asked, usable & good, settings)
    bad = usable & ~good
    search_bugs(candidates, asked, bad)
    lost = proof.lost_digits(candidates, asked, usable) if bad.any() else []
    return _frame(Judgement("", candidates), asked, usable, lost)


def _whole(
    candidates: Candidates, asked: Asked, usable: np.ndarray, tick: Tick
) -> tuple[Judgement, list[proof.Lost]]:
    """The verdict on all usable steps, and numbers that rounding lost."""
    steps, at = candidates.steps, np.flatnonzero(usable)
    if not len(at):
        return Judgement("cannot tell", candidates, "nothing varies"), []
    fitting = fit_all(candidates, at, WRITTEN)
    zero = np.nan_to_num(np.abs(steps.advantage), nan=1.0).max() <= 1e-9
    if fitting or zero:
        settings = settings_to_try(asked.declared, fitting, steps)
        search_bugs(candidates, asked, usable, settings, tick)
        if zero:
            asks = conditions_of(candidates, at)
            return Judgement("cannot tell", candidates, "all zero", asks=asks), []
        return _decided(candidates, asked, at, []), []
    left = usable & (candidates.level() > WRITTEN)
    parts = one_change(candidates, at, len(usable))
    search_bugs(candidates, asked, left if left.any() else usable, None, tick)
    lost = proof.lost_digits(candidates, asked, usable, tick)
    j = _decided(candidates, asked, at, lost)
    rounded = j.level == REWARDS or (j.suspect is not None and j.suspect.rounds)
    if parts and j.verdict != "suspect" and not rounded:
        readings = tuple(reading for _, _, reading in parts)
        settings = settings_to_try(asked.declared, readings, steps)
        search_bugs(candidates, asked, usable, settings, tick)
        asks = conditions_of(candidates, at)
        return Judgement(
            "asks", candidates, "changed", readings, asks=asks, parts=parts
        ), lost
    if j.verdict == "none fits":
        turned = replace(steps, advantage=-steps.advantage)
        turned_ruler = replace(candidates.ruler, steps=turned)
        if opposite := fit_all(search(turned_ruler, asked, tick), at, WRITTEN):
            return replace(j, why="opposite sign", readings=tuple(opposite)), lost
    return j, lost


def _decided(
    candidates: Candidates,
    asked: Asked,
    at: np.ndarray,
    lost: Sequence[proof.Lost],
    whole: Judgement | None = None,
) -> Judgement:
    """The verdict on the steps `at` from what was found to fit; `whole` is the
    one on the log that they are of."""
    fitting = _preferred(candidates, at, WRITTEN, whole)
    if fitting:
        return _fits(candidates, asked, at, fitting)
    suspected = _suspected(candidates, asked, at, False, whole)
    if suspected is not None:
        return suspected
    for each in lost:
        shown = each.shown[at] != ""
        good = each.right[at] | shown | (candidates.level()[at] <= WRITTEN)
        if good.all() and shown.any():
            verdict = "suspect" if (each.shown[at] == "suspect").any() else "asks"
            s, readings = each.suspect, (each.reading,)
            return Judgement(verdict, candidates, "", readings, s, (s,), level=WRITTEN)
    suspected = _suspected(candidates, asked, at, True, whole)
    if suspected is not None:
        return suspected
    fitting = _preferred(candidates, at, REWARDS, whole)
    if not fitting:
        return Judgement("none fits", candidates, "nothing")
    reading = next((r for r in fitting if asked.wanted(r)), fitting[0])
    named = (reading, *(r for r in fitting if r != reading))
    rows = np.isin(candidates.steps.step_of, at)
    moved = candidates.ruler.rewards(compute(candidates.steps, reading))[rows]
    verdict, why = "correct" if asked.wanted(reading) else "other", ""
    if not moved.max() <= MOST_REWARD:
        verdict, why = "cannot tell", "rounding"
    return Judgement(verdict, candidates, why, named, level=REWARDS)


def _preferred(
    candidates: Candidates, at: np.ndarray, level: int, whole: Judgement | None
) -> list[Reading]:
    """The readings that fit the steps `at` best: those that the whole log is
    named by first, or in its absence an exact fit before one within the base."""
    fitting, fits = fit_all(candidates, at, level), candidates.readings
    if whole is None or not fitting:
        return fitting
    if not whole.readings:
        return sorted(
            fitting,
            key=lambda r: (fits[r].residual[at].max() > 1e-9, r.divides and r.eps == 0),
        )
    named = [r for r in whole.readings if r in fits]
    named = [r for r in named if (fits[r].level[at] <= level).all()]
    return [*named, *(r for r in fitting if r not in named)]


def _fits(
    candidates: Candidates, asked: Asked, at: np.ndarray, fitting: list[Reading]
) -> Judgement:
    """Something of the space fits: correct, other, or a question."""
    level = int(candidates.readings[fitting[0]].level[at].max())
    standing = conditions_of(candidates, at)
    conditions = {s.bug for s in standing}
    fitting_bugs = dict.fromkeys(
        s.bug for s, fit in candidates.suspects.items() if fit.good[at].all()
    )
    ties = tuple(bug for bug in fitting_bugs if bug not in conditions)
    fits = Judgement("correct", candidates, asks=standing, ties=ties, level=level)
    mine = [r for r in fitting if asked.wanted(r)]
    if asked.is_declared and not mine:
        return replace(fits, verdict="other", readings=tuple(fitting))
    named = tuple(mine or fitting)
    fits = replace(fits, readings=named)
    counting = [s for s in standing if s.record.stage in proof.HOW_ROWS_COUNT]
    if counting and named[0].rows == "all":
        proved = proof.proved(counting[0], candidates.steps, asked)
        verdict = "suspect" if proved else "asks"
        return replace(fits, verdict=verdict, suspect=counting[0])
    if not asked.is_declared and "none" in {r.estimator for r in named}:
        return replace(fits, verdict="asks", why="raw reward")
    return fits


def conditions_of(candidates: Candidates, at: np.ndarray) -> tuple[Suspect, ...]:
    """A suspect of each bug that fits all the steps `at` while the correct
    engine under its settings does not: what these numbers would be, if those
    settings were asked for."""
    chosen: dict[str, Suspect] = {}
    for suspect, fit in candidates.suspects.items():
        # Rounding is no other setting's computation.
        if suspect.bug in chosen or suspect.record.loses or not fit.good[at].all():
            continue
        if not candidates.correct(suspect).good[at].all():
            chosen[suspect.bug] = suspect
    return tuple(sorted(chosen.values(), key=lambda s: len(s.record.columns)))


def _suspected(
    candidates: Candidates,
    asked: Asked,
    at: np.ndarray,
    rounds: bool,
    whole: Judgement | None,
) -> Judgement | None:
    """No reading fits all steps: a bug that does, or that does on some while
    the others are right. `rounds`: one that only float32 tells, which the
    numbers did not prove."""

    def explains(suspect: Suspect) -> bool:
        good = candidates.suspects[suspect].good[at]
        if not good.any() or good.all():
            return bool(good.any())
        return bool((good | candidates.correct(suspect).good[at]).all())

    def merit(suspect: Suspect) -> tuple:
        fit = candidates.suspects[suspect]
        return (
            whole is None or suspect != whole.suspect,
            -int(fit.good[at].sum()),
            int(fit.level[at].max()),
            len(suspect.record.columns),
            len(suspect.guesses),
            BUGS.index(suspect.bug),
        )

    fitting = sorted(filter(explains, candidates.suspects), key=merit)
    fitting = [s for s in fitting if s.rounds == rounds]
    if not fitting:
        return None
    named = fitting[0]
    others = {s.bug: s for s in fitting if s.bug != named.bug}
    level = int(candidates.suspects[named].level[at].max())
    if rounds:
        verdict = "asks"
    elif whole is not None and named == whole.suspect:
        verdict = whole.verdict
    else:
        some = np.isin(np.arange(candidates.steps.step_count), at)
        verdict = proof.verdict_of(named, candidates.steps.of_steps(some), asked)
    asks = (named, *others.values())
    return Judgement(verdict, candidates, "", (), named, asks, level=level)


def _frame(
    whole: Judgement, asked: Asked, usable: np.ndarray, lost: Sequence[proof.Lost]
) -> pd.DataFrame:
    """One row a step: COLUMNS and COUNTS."""
    candidates, steps = whole.candidates, whole.candidates.steps
    zero = steps.worst(np.nan_to_num(np.abs(steps.advantage), nan=1.0)) <= 1e-9
    tells = usable & ~(zero & (whole.verdict != "correct"))
    judged = [
        _decided(candidates, asked, np.array([step]), lost, whole)
        if tells[step]
        else Judgement("cannot tell", candidates)
        for step in range(steps.step_count)
    ]
    correct = _correct(whole, asked, judged)
    off = distance(correct, steps.advantage) > 10 * candidates.ruler.base
    columns = apart(steps, correct, steps.advantage, off)
    return blank(steps).assign(
        verdict=[j.verdict for j in judged],
        bug=[j.bug for j in judged],
        ties=[j.tied for j in judged],
        asks=[tuple(s.bug for s in j.asks) for j in judged],
        estimator=[j.estimator for j in judged],
        residual=[j.residual(step) for step, j in enumerate(judged)],
        correct_residual=columns.pop("largest"),
        **columns,
    )


def blank(steps: LoggedSteps) -> pd.DataFrame:
    """One row a step that cannot be judged: COLUMNS and COUNTS."""
    count = steps.step_count
    frame = pd.DataFrame({"step": steps.labels, "verdict": "cannot tell"})
    frame["bug"] = ""
    frame["ties"] = frame["asks"] = [()] * count
    frame["estimator"] = ""
    frame["residual"] = frame["correct_residual"] = np.nan
    frame["row"] = 0
    frame["rows"] = steps.batch.step_rows.numpy()
    frame["groups"] = np.bincount(steps.groups.step, minlength=count)
    frame["flips"] = frame["groups_affected"] = 0
    return frame


def _correct(whole: Judgement, asked: Asked, judged: list[Judgement]) -> np.ndarray:
    """What is correct beside the log: on steps that are another computation
    than declared, what was declared; else the named reading, the correct engine
    beside the bug, or the reading that fits most. float64 [R]"""
    candidates, steps = whole.candidates, whole.candidates.steps
    fits, values = candidates.readings, steps.advantage
    reading = whole.readings[0] if whole.readings and not whole.suspect else None
    named = {j.bug for j in judged}
    suspects = (s for s in candidates.suspects if s.bug in named)
    suspect = whole.suspect or next(suspects, None)
    nearest = candidates.nearest[0] if candidates.nearest else None
    try:
        if reading is None and suspect is not None:
            values = trace(steps, suspect.correct).values
        else:
            reading = reading or max(
                fits, key=lambda r: fits[r].good.sum(), default=nearest
            )
            if reading is not None and reading.grouping != "without copies":
                values = compute(steps, reading).values
        other = np.array([j.verdict == "other" for j in judged])[steps.step_of]
        if other.any():
            values = np.where(other, due(steps, asked, whole.readings), values)
    except GradebookError:
        pass  # some step is refused by the engine
    return values
