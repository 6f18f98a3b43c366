"""Judge: what the logged advantages are, as a whole and step by step.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks". "none fits" is left
where no reading and no bug explains every step. R rows, S steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gradebook.bugs import BUGS
from gradebook.core.formatting import flips
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging import fit, search, suspects
from gradebook.logs.judging.fit import REWARDS, WRITTEN, Ruler
from gradebook.logs.judging.reading import Asked, Reading, plainness
from gradebook.logs.judging.search import Candidates, quiet
from gradebook.logs.judging.suspects import HOW_ROWS_COUNT, Suspect, advantages, compute

OFF = ("suspect", "other", "asks", "none fits")
"""Verdicts on steps that a person should look at."""

COLUMNS = {
    **dict.fromkeys(("step", "verdict", "bug", "ties", "asks", "estimator"), object),
    **dict.fromkeys(("residual", "correct_residual"), float),
    **dict.fromkeys(("row", "flips", "groups_affected", "rows", "groups"), int),
}
"""The columns of `gradebook.check`, with their types."""


def no_steps() -> pd.DataFrame:
    return pd.DataFrame({n: pd.Series(dtype=kind) for n, kind in COLUMNS.items()})


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the advantages of some steps are.

    why       what stands behind "asks" and "cannot tell"
    readings  the computations of the space that fit, the preferred first
    suspect   the bug that is named or asked about, under its settings
    asks      bugs that these numbers would be under a condition
    ties      bugs that leave no trace on these rows
    change    the step where the run changed from the first reading to the second
    level     how closely the named computation fits
    residual  how far it is from a row at most; NaN for what rounding lost
    correct   float64 [R] what is correct beside the log
    """

    verdict: str
    candidates: Candidates
    why: str = ""
    readings: tuple[Reading, ...] = ()
    suspect: Suspect | None = None
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    change: int | None = None
    level: int = fit.NONE
    residual: float = np.nan
    frame: pd.DataFrame = field(default_factory=no_steps)
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
        reading = self.reading
        if reading is None and self.suspect is not None:
            reading = Reading.of(self.suspect.settings)
        return reading.estimator if reading else ""

    @property
    def settings(self) -> Settings:
        """What pages show a step under: the bug's settings, or what was declared."""
        if self.suspect is not None:
            return self.suspect.settings
        asked = self.candidates.asked
        if self.verdict == "other":
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


def judge(ruler: Ruler, asked: Asked, tick: search.Tick = search.untold) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    if "advantage" not in ruler.steps.has:
        unknown = Judgement("cannot tell", Candidates(ruler, asked), "no advantages")
        return framed(unknown)
    candidates = search.search(ruler, asked, tick)
    judgement = framed(_whole(candidates))
    candidates.tick = search.untold  # whom it told is no part of a verdict
    return judgement


def by_step(ruler: Ruler, asked: Asked) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    candidates, usable = search.search(ruler, asked), ~quiet(ruler.steps)
    good = candidates.level() <= WRITTEN
    fits = candidates.readings
    likely = sorted(fits, key=lambda r: (-fits[r].good.sum(), plainness(r)))
    search.search_bugs(candidates, usable & good, beside=likely)
    search.search_bugs(candidates, usable & ~good)
    if (usable & ~good).any():
        search.find_lost_digits(candidates, np.flatnonzero(usable))
    return framed(Judgement("", candidates)).frame


def _whole(candidates: Candidates) -> Judgement:
    """The verdict on all steps that tell something."""
    steps, usable = candidates.steps, ~quiet(candidates.steps)
    unknown, telling = Judgement("cannot tell", candidates), np.flatnonzero(usable)
    if not len(telling):
        return replace(unknown, why="nothing varies")
    fitting = candidates.fitting(telling, WRITTEN)
    if np.nan_to_num(np.abs(steps.advantage), nan=1.0).max() <= 1e-9:
        search.search_bugs(candidates, usable, beside=fitting)
        return replace(unknown, why="all zero", asks=conditions_of(candidates, telling))
    if fitting:
        search.search_bugs(candidates, usable, beside=fitting)
        return _decided(unknown, telling)
    left = usable & (candidates.level() > WRITTEN)
    search.search_bugs(candidates, left if left.any() else usable)
    search.find_lost_digits(candidates, telling)
    j = _decided(unknown, telling)
    rounded = j.level == REWARDS or (j.suspect is not None and j.suspect.surety > 0)
    change = _one_change(candidates, telling)
    if change is None or j.verdict == "suspect" or rounded:
        return j
    step, *both = change
    search.search_bugs(candidates, usable, beside=both)
    asks = conditions_of(candidates, telling)
    return Judgement("asks", candidates, "", tuple(both), asks=asks, change=step)


def _one_change(
    candidates: Candidates, at: np.ndarray
) -> tuple[int, Reading, Reading] | None:
    """The step of `at` where one change explains the run, and the readings before
    it and from there on."""
    good = {r: f.good[at] for r, f in candidates.readings.items()}
    runs_on = {r: int(np.argmin(np.append(g, False))) for r, g in good.items()}
    first = min(good, key=lambda r: (-runs_on[r], plainness(r)), default=None)
    if first is None or not 0 < runs_on[first] < len(at):
        return None
    cut = runs_on[first]
    second = min((r for r in good if good[r][cut:].all()), key=plainness, default=None)
    return None if second is None else (int(at[cut]), first, second)


def _decided(whole: Judgement, at: np.ndarray) -> Judgement:
    """The first verdict that explains the steps `at`; `whole` is their log's."""
    return (
        _fits(whole, at, WRITTEN)
        or _suspected(whole, at)
        or _fits(whole, at, REWARDS)
        or Judgement("none fits", whole.candidates, "none fits")
    )


def _fits(whole: Judgement, at: np.ndarray, most: int) -> Judgement | None:
    """Readings fit: correct, other, or a question. First come those that the whole
    log is named by; without such, exact fits."""
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
    mine = tuple(filter(asked.wanted, readings))
    asks = conditions_of(candidates, at)
    tied = (
        s.bug
        for s, lies in candidates.suspects.items()
        if lies.good[at].all() and s.surety != 1 and s.bug not in {a.bug for a in asks}
    )
    first = (mine or readings)[0]
    j = Judgement(
        "correct" if mine else "other",
        candidates,
        readings=mine or readings,
        asks=asks,
        ties=tuple(dict.fromkeys(tied)),
        level=int(fits[first].level[at].max()),
        residual=float(fits[first].residual[at].max()),
    )
    if j.level == REWARDS:
        moved = candidates.ruler.reward_slack(compute(candidates.steps, first))
        if not moved[np.isin(candidates.steps.step_of, at)].max() <= fit.MOST_REWARD:
            return replace(j, verdict="cannot tell", why="rounding")
    counting = [s for s in asks if s.record.stage in HOW_ROWS_COUNT]
    if mine and counting and first.rows == "all":
        verdict = suspects.verdict_of(counting[0], candidates.steps, asked)
        return replace(j, verdict=verdict, suspect=counting[0])
    if mine and not asked.is_declared and "none" in {r.estimator for r in mine}:
        return replace(j, verdict="asks", why="raw reward")
    return j


def conditions_of(candidates: Candidates, at: np.ndarray) -> tuple[Suspect, ...]:
    """What these numbers would be, if its settings were asked for: a suspect of each
    bug that fits all the steps `at` where its correct engine does not."""
    chosen: dict[str, Suspect] = {}
    for suspect, lies in candidates.suspects.items():
        # Rounding is no other setting's computation.
        if suspect.bug in chosen or suspect.record.loses or not lies.good[at].all():
            continue
        if not candidates.fit(suspect.correct).good[at].all():
            chosen[suspect.bug] = suspect
    return tuple(sorted(chosen.values(), key=lambda s: len(s.record.columns)))


def _suspected(whole: Judgement, at: np.ndarray) -> Judgement | None:
    """A bug that fits all the steps `at`, or some while the others are right."""
    candidates = whole.candidates
    fits = candidates.suspects

    def explains(suspect: Suspect) -> bool:
        good = fits[suspect].good[at]
        if good.any() and not good.all():
            good = good | candidates.fit(suspect.correct).good[at]
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
        verdict = suspects.verdict_of(named, steps, candidates.asked)
    return Judgement(
        verdict,
        candidates,
        suspect=named,
        asks=(named, *others.values()),
        level=int(fits[named].level[at].max()),
        residual=float(fits[named].residual[at].max()),
    )


def framed(whole: Judgement) -> Judgement:
    """The judgement with its steps: one row per step, and what is correct."""
    candidates, steps = whole.candidates, whole.candidates.steps
    has_advantages = "advantage" in steps.has
    zero = steps.worst(np.nan_to_num(np.abs(steps.advantage), nan=1.0)) <= 1e-9
    tells = ~quiet(steps) & ~(zero & (whole.verdict != "correct")) & has_advantages
    unknown = Judgement("cannot tell", candidates)
    judged = [
        _decided(whole, np.array([step])) if tells[step] else unknown
        for step in range(steps.step_count)
    ]
    correct = _correct(whole, judged)
    away = fit.distance(correct, steps.advantage)
    off = away > 10 * candidates.ruler.base
    groups_off = np.bincount(steps.prompt, off) > 0
    columns = {
        "step": steps.labels,
        "verdict": [j.verdict for j in judged],
        "bug": [j.bug for j in judged],
        "ties": [j.tied for j in judged],
        "asks": [tuple(s.bug for s in j.asks) for j in judged],
        "estimator": [j.estimator for j in judged],
        "residual": [j.residual for j in judged],
        "correct_residual": steps.worst(away) if has_advantages else np.nan,
        "row": [part.argmax() for part in np.split(away, steps.starts[1:])],
        "flips": steps.total(flips(correct, steps.advantage)),
        "groups_affected": np.bincount(steps.groups.step, groups_off).astype("int64"),
        "rows": steps.batch.step_rows.numpy(),
        "groups": np.bincount(steps.groups.step),
    }
    frame = pd.DataFrame({name: columns[name] for name in COLUMNS})
    return replace(whole, frame=frame, correct=correct)


def _correct(whole: Judgement, judged: list[Judgement]) -> np.ndarray:
    """What is correct beside the log: on steps that are not what was declared,
    what was; else the named reading, the correct engine beside the bug, or the
    reading that fits most. float64 [R]"""
    candidates, steps = whole.candidates, whole.candidates.steps
    fits, asked, values = candidates.readings, candidates.asked, steps.advantage
    suspect, named = whole.suspect, {j.bug for j in judged}
    if suspect is None and not whole.readings:
        suspect = next((s for s in candidates.suspects if s.bug in named), None)
    best = sorted(fits, key=lambda r: -fits[r].good.sum())
    nearest = [*whole.readings, *best, *(candidates.nearest or ())[:1]]
    if suspect is not None:
        traced = advantages(steps, suspect.correct)
        values = np.where(np.isfinite(traced), traced, values)
    elif nearest:
        values = advantages(steps, nearest[0])
    as_declared = ("other", "none fits") if asked.is_declared else ()
    other = np.array([j.verdict in as_declared for j in judged])[steps.step_of]
    if not other.any():
        return values
    return np.where(other, advantages(steps, asked.reading(whole.readings)), values)
