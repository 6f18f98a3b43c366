"""Judge: names the computation of the logged advantages, for all steps and each.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks". The verdict is
"none fits" if no computation and no bug explains every step. R rows, S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradebook.bugs import BUGS
from gradebook.core.formatting import flips
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging import fit, search, suspects
from gradebook.logs.judging.computation import Computation, plainness
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import REWARDS, WRITTEN, Ruler
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
    """The judgement on the advantages of some steps.

    why       the reason for "asks" or "cannot tell"
    computations  those of the space that fit, the preferred first
    suspect   the bug that is named or asked about, under its settings
    asks      bugs that these numbers would be under a condition
    ties      bugs that leave no trace on these rows
    change    the step where the run changed from the first computation to the second
    level     how closely the named computation fits
    residual  its largest distance from a row; NaN if rounding lost the digits
    correct   float64 [R] the reference advantages (`_correct`)
    """

    verdict: str
    candidates: Candidates
    why: str = ""
    computations: tuple[Computation, ...] = ()
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
    def computation(self) -> Computation | None:
        """The one that is named, or that other rows than a bug's follow."""
        if self.computations:
            return self.computations[0]
        return self.suspect.computation if self.suspect else None

    @property
    def estimator(self) -> str:
        """The name of the computation, or of the bug's correct twin; else ""."""
        computation = self.computation
        if computation is None and self.suspect is not None:
            computation = Computation.of(self.suspect.settings)
        return computation.estimator if computation else ""

    @property
    def settings(self) -> Settings:
        """Settings that a page shows a step under: the bug's, or the declared ones."""
        if self.suspect is not None:
            return self.suspect.settings
        if self.verdict == "other":
            return self.candidates.declaration.computation(self.computations).settings
        first = self.computation
        return first.settings if first else Settings(eps=1e-6)

    @property
    def tied(self) -> tuple[str, ...]:
        """Bugs and estimators that fit as well."""
        if self.suspect is not None and not self.computations:
            return tuple(s.bug for s in self.asks[1:])
        tied = dict.fromkeys((*self.ties, *(c.estimator for c in self.computations)))
        tied.pop(self.estimator, None)
        return tuple(tied)


def judge(
    ruler: Ruler, declaration: Declaration, tick: search.Tick = search.untold
) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    if "advantage" not in ruler.steps.has:
        unknown = Judgement(
            "cannot tell", Candidates(ruler, declaration), "no advantages"
        )
        return framed(unknown)
    candidates = search.search(ruler, declaration, tick)
    judgement = framed(_whole(candidates))
    # A stored verdict must not keep the page alive that follows the progress.
    candidates.tick = search.untold
    return judgement


def by_step(ruler: Ruler, declaration: Declaration) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    candidates, usable = search.search(ruler, declaration), ~quiet(ruler.steps)
    good = candidates.level() <= WRITTEN
    fits = candidates.computations
    likely = sorted(fits, key=lambda c: (-fits[c].good.sum(), plainness(c)))
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
) -> tuple[int, Computation, Computation] | None:
    """The index in `at` of the one change that explains the run, with the computations
    before it and from it on; None if one change does not explain the run."""
    good = {c: f.good[at] for c, f in candidates.computations.items()}
    runs_on = {c: int(np.argmin(np.append(g, False))) for c, g in good.items()}
    first = min(good, key=lambda c: (-runs_on[c], plainness(c)), default=None)
    if first is None or not 0 < runs_on[first] < len(at):
        return None
    cut = runs_on[first]
    rest = (c for c in good if good[c][cut:].all())
    second = min(rest, key=plainness, default=None)
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
    """At least one computation fits: decide between correct, other and a question.
    Prefer the computations chosen for the whole log; otherwise prefer exact fits."""
    candidates, declaration = whole.candidates, whole.candidates.declaration
    fits = candidates.computations
    fitting = _preferred(whole, at, most)
    if not fitting:
        return None
    declared = tuple(filter(declaration.allows, fitting))
    asks = conditions_of(candidates, at)
    first = (declared or fitting)[0]
    j = Judgement(
        "correct" if declared else "other",
        candidates,
        computations=declared or fitting,
        asks=asks,
        ties=_tied_bugs(candidates, at, asks),
        level=int(fits[first].level[at].max()),
        residual=float(fits[first].residual[at].max()),
    )
    if j.level == REWARDS:
        moved = candidates.ruler.reward_slack(compute(candidates.steps, first))
        if not moved[np.isin(candidates.steps.step_of, at)].max() <= fit.MOST_REWARD:
            return replace(j, verdict="cannot tell", why="rounding")
    counting = [s for s in asks if s.record.stage in HOW_ROWS_COUNT]
    if declared and counting and first.view.all_rows:
        verdict = suspects.verdict_of(counting[0], candidates.steps, declaration)
        return replace(j, verdict=verdict, suspect=counting[0])
    is_raw = "none" in {c.estimator for c in declared}
    if is_raw and not declaration.decides:
        return replace(j, verdict="asks", why="raw reward")
    return j


def _preferred(whole: Judgement, at: np.ndarray, most: int) -> tuple[Computation, ...]:
    """The computations that fit the steps `at`, up to the level `most`, in the order
    in which they are named."""
    fits = whole.candidates.computations
    fitting = whole.candidates.fitting(at, most)
    if not fitting:
        return ()
    if not whole.computations:
        fitting.sort(
            key=lambda c: (fits[c].residual[at].max() > 1e-9, c.divides and c.eps == 0)
        )
    named = [c for c in whole.computations if c in fits]
    named = [c for c in named if fits[c].level[at].max() <= most]
    return tuple(dict.fromkeys((*named, *fitting)))


def _tied_bugs(
    candidates: Candidates, at: np.ndarray, asks: Sequence[Suspect]
) -> tuple[str, ...]:
    """Bugs that leave no trace on the steps `at`: they fit as well, and nothing has to
    be asked about them."""
    asked_about = {suspect.bug for suspect in asks}
    fitting = [s for s, lies in candidates.suspects.items() if lies.good[at].all()]
    tied = [s.bug for s in fitting if s.surety != 1 and s.bug not in asked_about]
    return tuple(dict.fromkeys(tied))


def conditions_of(candidates: Candidates, at: np.ndarray) -> tuple[Suspect, ...]:
    """A suspect of each bug that fits all the steps `at` while its correct engine does
    not: the bug that these numbers would be if those settings were configured."""
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
        verdict = suspects.verdict_of(named, steps, candidates.declaration)
    return Judgement(
        verdict,
        candidates,
        suspect=named,
        asks=(named, *others.values()),
        level=int(fits[named].level[at].max()),
        residual=float(fits[named].residual[at].max()),
    )


def framed(whole: Judgement) -> Judgement:
    """The judgement with one row per step and the reference advantages."""
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
    """The reference advantages. On steps that contradict the declaration, those of
    the declaration; otherwise the named computation, the bug's correct twin, or the
    computation that fits most steps. float64 [R]"""
    candidates, steps = whole.candidates, whole.candidates.steps
    declaration, values = candidates.declaration, steps.advantage
    if (twin := _correct_twin(whole, judged)) is not None:
        computed = advantages(steps, twin)
        values = np.where(np.isfinite(computed), computed, values)
    elif nearest := _nearest(whole):
        values = advantages(steps, nearest)
    contradicts = ("other", "none fits") if declaration.decides else ()
    other = np.array([j.verdict in contradicts for j in judged])[steps.step_of]
    if not other.any():
        return values
    declared = declaration.computation(whole.computations)
    return np.where(other, advantages(steps, declared), values)


def _correct_twin(
    whole: Judgement, judged: list[Judgement]
) -> suspects.Candidate | None:
    """The correct twin of the bug that the log, or a step of it, is named after."""
    suspect = whole.suspect
    if suspect is None and not whole.computations:
        named = {j.bug for j in judged}
        suspect = next((s for s in whole.candidates.suspects if s.bug in named), None)
    return suspect.correct if suspect else None


def _nearest(whole: Judgement) -> Computation | None:
    """The named computation, or the one that fits most steps, or most rows."""
    fits = whole.candidates.computations
    best = max(fits, key=lambda c: fits[c].good.sum(), default=None)
    nearest = whole.candidates.nearest
    return next(iter(whole.computations), best or (nearest[0] if nearest else None))
