"""Judge: what the logged advantages are, as a whole and step by step.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks". "none fits" is left
where no reading and no bug explains every step. R rows, S steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gradebook.bugs import BUGS
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging.fit import (
    MOST_REWARD,
    NONE,
    REWARDS,
    WRITTEN,
    Ruler,
    apart,
    distance,
)
from gradebook.logs.judging.reading import Asked, Reading, plainness
from gradebook.logs.judging.search import (
    Candidates,
    Tick,
    find_lost_digits,
    quiet,
    search,
    search_bugs,
)
from gradebook.logs.judging.space import compute
from gradebook.logs.judging.suspects import (
    HOW_ROWS_COUNT,
    Suspect,
    settings_beside,
    trace,
    verdict_of,
)
from gradebook.logs.logged_steps import LoggedSteps

OFF = ("suspect", "other", "asks", "none fits")
"""Verdicts on steps that a person should look at."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the advantages of some steps are.

    verdict     correct, other, suspect, asks, cannot tell or none fits
    candidates  all that was searched
    why         what stands behind "asks" and "cannot tell"
    readings    the computations of the space that fit, the preferred first
    suspect     the bug that is named or asked about, under its settings
    asks        bugs that these numbers would be under a condition, each with
                the settings that it takes
    ties        bugs that leave no trace on these rows
    change      the step where the run changed from the first reading to the second
    level       how closely the named computation fits
    residual    how far it is from a row at most; NaN for what rounding lost
    frame       one row a step, see `framed`
    correct     float64 [R] what is correct beside the log
    """

    verdict: str
    candidates: Candidates
    why: str = ""
    readings: tuple[Reading, ...] = ()
    suspect: Suspect | None = None
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    change: int | None = None
    level: int = NONE
    residual: float = np.nan
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    correct: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def bug(self) -> str:
        """The bug that is named or asked about, or ""."""
        named = self.suspect if self.verdict in ("suspect", "asks") else None
        return named.bug if named else ""

    @property
    def reading(self) -> Reading | None:
        """The computation that is named, or that other rows than a bug's follow."""
        if self.readings:
            return self.readings[0]
        return self.suspect.reading if self.suspect else None

    @property
    def estimator(self) -> str:
        """The name of the computation, or of the one that the bug is beside."""
        if self.readings:
            return self.readings[0].estimator
        return self.suspect.estimator if self.suspect else ""

    @property
    def settings(self) -> Settings:
        """What pages show a step under: the bug's settings, or what was declared."""
        if self.suspect is not None:
            return self.suspect.settings
        asked = self.candidates.asked
        if self.verdict == "other" and asked.by_engine:
            return asked.reading(self.readings).settings
        return self.readings[0].settings if self.readings else Settings(eps=1e-6)

    @property
    def tied(self) -> tuple[str, ...]:
        """Bugs and estimators that fit as well."""
        if self.suspect is not None and not self.readings:
            return tuple(s.bug for s in self.asks[1:])
        tied = dict.fromkeys((*self.ties, *(r.estimator for r in self.readings)))
        tied.pop(self.estimator, None)
        return tuple(tied)


def judge(ruler: Ruler, asked: Asked, tick: Tick = lambda: None) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    if "advantage" not in ruler.steps.has:
        candidates = Candidates(ruler, asked)
        frame = blank(ruler.steps)
        return Judgement("cannot tell", candidates, "no advantages", frame=frame)
    candidates = search(ruler, asked, tick)
    return framed(_whole(candidates, np.flatnonzero(~quiet(ruler.steps))))


def by_step(ruler: Ruler, asked: Asked) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    candidates, usable = search(ruler, asked), ~quiet(ruler.steps)
    good = candidates.level() <= WRITTEN
    named = sorted(candidates.readings, key=plainness)
    search_bugs(candidates, usable & good, settings_beside(asked, named, ruler.steps))
    search_bugs(candidates, usable & ~good)
    if (usable & ~good).any():
        find_lost_digits(candidates, np.flatnonzero(usable))
    return framed(Judgement("", candidates)).frame


def _whole(candidates: Candidates, at: np.ndarray) -> Judgement:
    """The verdict on the steps `at`, int64: all that tell something."""
    steps, asked = candidates.steps, candidates.asked
    unknown = Judgement("", candidates)
    if not len(at):
        return replace(unknown, verdict="cannot tell", why="nothing varies")
    usable = np.isin(np.arange(steps.step_count), at)
    fitting = candidates.fitting(at, WRITTEN)
    zero = np.nan_to_num(np.abs(steps.advantage), nan=1.0).max() <= 1e-9
    if fitting or zero:
        search_bugs(candidates, usable, settings_beside(asked, fitting, steps))
        if not zero:
            return _decided(unknown, at)
        asks = conditions_of(candidates, at)
        return replace(unknown, verdict="cannot tell", why="all zero", asks=asks)
    left = usable & (candidates.level() > WRITTEN)
    search_bugs(candidates, left if left.any() else usable)
    find_lost_digits(candidates, at)
    j = _decided(unknown, at)
    rounded = j.level == REWARDS or (j.suspect is not None and j.suspect.surety > 0)
    change = _one_change(candidates, at)
    if change is None or j.verdict == "suspect" or rounded:
        return j
    step, *both = change
    search_bugs(candidates, usable, settings_beside(asked, both, steps))
    asks = conditions_of(candidates, at)
    return Judgement("asks", candidates, "", tuple(both), asks=asks, change=step)


def _one_change(
    candidates: Candidates, at: np.ndarray
) -> tuple[int, Reading, Reading] | None:
    """A step of `at`, and the readings that fit up to it and from there on; None
    where one change in the run does not explain it."""
    good = {r: f.good[at] for r, f in candidates.readings.items()}
    runs_on = {r: int(np.argmin(np.append(g, False))) for r, g in good.items()}
    first = min(good, key=lambda r: (-runs_on[r], plainness(r)), default=None)
    if first is None or not 0 < runs_on[first] < len(at):
        return None
    cut = runs_on[first]
    second = min((r for r in good if good[r][cut:].all()), key=plainness, default=None)
    return None if second is None else (int(at[cut]), first, second)


def _decided(whole: Judgement, at: np.ndarray) -> Judgement:
    """The verdict on the steps `at` from what was found to fit: the first of these
    that explains them. `whole` is the one on the log that they are of."""
    return (
        _fits(whole, at, WRITTEN)
        or _suspected(whole, at)
        or _fits(whole, at, REWARDS)
        or Judgement("none fits", whole.candidates)
    )


def _fits(whole: Judgement, at: np.ndarray, most: int) -> Judgement | None:
    """Readings fit: correct, other, or a question. Those that the whole log is
    named by come first, or in their absence an exact fit before one within the
    base."""
    candidates, asked = whole.candidates, whole.candidates.asked
    fits, fitting = candidates.readings, candidates.fitting(at, most)
    if not fitting:
        return None
    named = [r for r in whole.readings if r in fits and fits[r].level[at].max() <= most]
    if not whole.readings:
        fitting.sort(
            key=lambda r: (fits[r].residual[at].max() > 1e-9, r.divides and r.eps == 0)
        )
    readings = tuple(dict.fromkeys((*named, *fitting)))
    asks = conditions_of(candidates, at)
    conditions = {s.bug for s in asks}
    tied = (
        s.bug
        for s, fit in candidates.suspects.items()
        if fit.good[at].all() and s.surety != 1 and s.bug not in conditions
    )
    ties = tuple(dict.fromkeys(tied))
    mine = tuple(filter(asked.wanted, readings))
    j = Judgement("correct", candidates, "", mine or readings, None, asks, ties)
    fit = fits[j.readings[0]]
    level, residual = int(fit.level[at].max()), float(fit.residual[at].max())
    j = replace(j, level=level, residual=residual)
    if level == REWARDS:
        moved = candidates.ruler.slack(
            REWARDS, compute(candidates.steps, j.readings[0])
        )
        if not moved[np.isin(candidates.steps.step_of, at)].max() <= MOST_REWARD:
            return replace(j, verdict="cannot tell", why="rounding")
    if not mine:
        return replace(j, verdict="other")
    counting = [s for s in asks if s.record.stage in HOW_ROWS_COUNT]
    if counting and mine[0].rows == "all":
        verdict = verdict_of(counting[0], candidates.steps, asked)
        return replace(j, verdict=verdict, suspect=counting[0])
    if not asked.is_declared and "none" in {r.estimator for r in mine}:
        return replace(j, verdict="asks", why="raw reward")
    return j


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


def _suspected(whole: Judgement, at: np.ndarray) -> Judgement | None:
    """A bug that fits all the steps `at`, or some while the others are right."""
    candidates = whole.candidates
    fits = candidates.suspects

    def explains(suspect: Suspect) -> bool:
        good = fits[suspect].good[at]
        if good.any() and not good.all():
            good = good | candidates.correct(suspect).good[at]
        return bool(good.all())

    def merit(suspect: Suspect) -> tuple:
        return (
            suspect.surety,
            suspect != whole.suspect,
            -int(fits[suspect].good[at].sum()),
            int(fits[suspect].level[at].max()),
            len(suspect.record.columns),
            len(suspect.guesses),
            BUGS.index(suspect.bug),
        )

    fitting = sorted(filter(explains, fits), key=merit)
    if not fitting:
        return None
    named = fitting[0]
    others = {s.bug: s for s in fitting if s.surety == named.surety}
    others.pop(named.bug)
    if named == whole.suspect:
        verdict = whole.verdict
    else:
        some = np.isin(np.arange(candidates.steps.step_count), at)
        steps = candidates.steps.of_steps(some)
        verdict = verdict_of(named, steps, candidates.asked)
    return Judgement(
        verdict,
        candidates,
        suspect=named,
        asks=(named, *others.values()),
        level=int(fits[named].level[at].max()),
        residual=float(fits[named].residual[at].max()),
    )


def framed(whole: Judgement) -> Judgement:
    """The judgement with its steps: one row a step, and what is correct."""
    candidates, steps = whole.candidates, whole.candidates.steps
    zero = steps.worst(np.nan_to_num(np.abs(steps.advantage), nan=1.0)) <= 1e-9
    tells = ~quiet(steps) & ~(zero & (whole.verdict != "correct"))
    judged = [
        _decided(whole, np.array([step]))
        if tells[step]
        else Judgement("cannot tell", candidates)
        for step in range(steps.step_count)
    ]
    correct = _correct(whole, judged)
    off = distance(correct, steps.advantage) > 10 * candidates.ruler.base
    columns = apart(steps, correct, steps.advantage, off)
    frame = blank(steps).assign(
        verdict=[j.verdict for j in judged],
        bug=[j.bug for j in judged],
        ties=[j.tied for j in judged],
        asks=[tuple(s.bug for s in j.asks) for j in judged],
        estimator=[j.estimator for j in judged],
        residual=[j.residual for j in judged],
        correct_residual=columns.pop("largest"),
        **columns,
    )
    return replace(whole, frame=frame, correct=correct)


def blank(steps: LoggedSteps | None) -> pd.DataFrame:
    """The columns of `gradebook.check`, one row for each step: it cannot be judged."""
    frame = pd.DataFrame({"step": steps.labels if steps else []})
    frame["verdict"], frame["bug"] = "cannot tell", ""
    frame["ties"] = frame["asks"] = [()] * len(frame)
    frame["estimator"] = ""
    frame["residual"] = frame["correct_residual"] = np.nan
    frame["row"] = frame["flips"] = frame["groups_affected"] = 0
    if steps is not None:
        frame["rows"] = steps.batch.step_rows.numpy()
        frame["groups"] = np.bincount(steps.groups.step, minlength=len(frame))
    return frame


def _correct(whole: Judgement, judged: list[Judgement]) -> np.ndarray:
    """What is correct beside the log: on steps that are not what was declared,
    what was; else the named reading, the correct engine
    beside the bug, or the reading that fits most. float64 [R]"""
    candidates, steps = whole.candidates, whole.candidates.steps
    fits, asked, values = candidates.readings, candidates.asked, steps.advantage
    named = {j.bug for j in judged}
    suspects = (s for s in candidates.suspects if s.bug in named)
    suspect = whole.suspect or next(suspects, None)
    nearest = candidates.nearest[0] if candidates.nearest else None
    if whole.readings and whole.suspect is None:
        nearest = whole.readings[0]
    elif suspect is not None:
        nearest = None
        traced = trace(steps, suspect.correct).values
        values = np.where(np.isfinite(traced), traced, values)
    else:
        nearest = max(fits, key=lambda r: fits[r].good.sum(), default=nearest)
    if nearest is not None:
        values = compute(steps, nearest).values
    as_declared = ("other", "none fits") if asked.is_declared else ()
    other = np.array([j.verdict in as_declared for j in judged])[steps.step_of]
    declared = asked.reading(whole.readings)
    return np.where(other, compute(steps, declared).values, values)
