"""Decide: evidence in, a judgement out. Pure: no engine runs here, and nothing is kept.

A computation that fits every step is named; a declaration decides between "correct" and
"other". Else a bug that explains every step is named, and proof decides between
"suspect" and "asks". Else the verdict is "none fits".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from gradebook.bugs import BUGS
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.tolerance import EXACT
from gradebook.logs.judging import fit, proof
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.evidence import Evidence
from gradebook.logs.judging.fit import REWARDS, WRITTEN
from gradebook.logs.judging.left_over import LeftOver
from gradebook.logs.judging.near import NearMiss
from gradebook.logs.judging.suspects import Suspect

OFF = ("suspect", "other", "asks", "none fits")
"""Verdicts on steps that a person should look at."""

VERDICT_COLUMNS = {
    **dict.fromkeys(("step", "verdict", "bug", "ties", "asks", "estimator"), object),
    **dict.fromkeys(("residual", "correct_residual"), float),
    **dict.fromkeys(("row", "flips", "groups_affected", "rows", "groups"), int),
}
"""The columns of `gradebook.check`, with their types."""


def no_steps() -> pd.DataFrame:
    return pd.DataFrame(
        {n: pd.Series(dtype=kind) for n, kind in VERDICT_COLUMNS.items()}
    )


@cache
def _no_frame() -> pd.DataFrame:
    """`no_steps`, made once: each step of a log has a judgement without a frame."""
    return no_steps()


@dataclass(frozen=True, eq=False)
class Judgement:
    """The judgement on the advantages of some steps.

    why       the reason for "asks" or "cannot tell"
    computations  those of the space that fit, the preferred first
    named     the bug that is named or asked about, under its settings, and every
              other bug that explains these rows as well
    asks      bugs that these numbers would be under a condition
    ties      bugs that leave no trace on these rows
    change    the step at which the run changed from the first computation to the second
    level     how closely the named computation fits
    residual  its largest distance from a row; NaN if rounding lost it
    frame     one row per step, and
    correct   float64 [R] the reference advantages: `frame.framed` adds both
    """

    verdict: str
    evidence: Evidence
    why: str = ""
    computations: tuple[Computation, ...] = ()
    named: tuple[Suspect, ...] = ()
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    change: int | None = None
    level: int = fit.NONE
    residual: float = np.nan
    frame: pd.DataFrame = field(default_factory=_no_frame)
    correct: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def declaration(self) -> Declaration:
        return self.evidence.declaration

    @property
    def suspect(self) -> Suspect | None:
        """The first bug that is named or asked about: by the alphabet, if several
        explain these rows equally well."""
        return next(iter(self.named), None)

    @property
    def bug(self) -> str:
        """The first bug that is named or asked about, or ""."""
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
            return self.declaration.computation(self.computations).settings
        first = self.computation
        return first.settings if first else Settings(eps=1e-6)

    @property
    def left_over(self) -> tuple[LeftOver, ...]:
        """What the numbers show if no computation fits, or if rounding of the rewards
        hides which one does; else ()."""
        is_open = self.verdict == "none fits" or self.why == "rounding"
        return self.evidence.left_over if is_open else ()

    @property
    def near(self) -> NearMiss | None:
        """The closest computation if none fits; else None."""
        return self.evidence.near if self.verdict == "none fits" else None

    @property
    def tied(self) -> tuple[str, ...]:
        """Bugs and estimators that fit as well."""
        if self.suspect is not None and not self.computations:
            return tuple(s.bug for s in self.asks[1:])
        tied = dict.fromkeys((*self.ties, *(c.estimator for c in self.computations)))
        tied.pop(self.estimator, None)
        return tuple(tied)


def decide(evidence: Evidence) -> Judgement:
    """The verdict on all steps that tell something."""
    unknown, telling = Judgement("cannot tell", evidence), evidence.telling
    if "advantage" not in evidence.steps.has:
        return replace(unknown, why="no advantages")
    if not len(telling):
        return replace(unknown, why="nothing varies")
    if evidence.is_all_zero:
        return replace(unknown, why="all zero", asks=conditions(evidence, telling))
    j = _decided(unknown, telling)
    change = evidence.change
    rounded = j.level == REWARDS or (j.suspect is not None and j.suspect.surety > 0)
    if change is None or j.verdict == "suspect" or rounded:
        return j
    both = change.before, change.after
    evidence = evidence.with_change()
    asks = conditions(evidence, telling)
    return Judgement("asks", evidence, "", both, asks=asks, change=change.step)


def by_step(whole: Judgement) -> list[Judgement]:
    """The judgement on each step by its own rows, beside that of its log, or beside
    `everything_open`."""
    evidence, steps = whole.evidence, whole.evidence.steps
    # A log is right as a whole if its steps of zeros are.
    zero = steps.has_zero_advantages & (whole.verdict != "correct")
    tells = ~steps.quiet & ~zero & ("advantage" in steps.has)
    unknown = Judgement("cannot tell", evidence)
    return [
        _decided(whole, np.array([step])) if tells[step] else unknown
        for step in range(steps.step_count)
    ]


def everything_open(evidence: Evidence) -> Judgement:
    """The judgement on a log that is judged step by step only."""
    return Judgement("", evidence)


def _decided(whole: Judgement, at: np.ndarray) -> Judgement:
    """The first verdict that explains the steps `at`; `whole` is their log's."""
    return (
        _fits(whole, at, WRITTEN)
        or _suspected(whole, at)
        or _fits(whole, at, REWARDS)
        or Judgement("none fits", whole.evidence, "none fits")
    )


def _fits(whole: Judgement, at: np.ndarray, most: int) -> Judgement | None:
    """At least one computation fits: decide between correct, other and a question. The
    computations chosen for the whole log come first; without them, exact fits do."""
    evidence, declaration = whole.evidence, whole.declaration
    fits = evidence.computations
    fitting = _preferred(whole, at, most)
    if not fitting:
        return None
    declared = tuple(filter(declaration.allows, fitting))
    asks = conditions(evidence, at)
    first = (declared or fitting)[0]
    j = Judgement(
        "correct" if declared else "other",
        evidence,
        computations=declared or fitting,
        asks=asks,
        ties=_tied_bugs(evidence, at, asks),
        level=int(fits[first].level[at].max()),
        residual=float(fits[first].residual[at].max()),
    )
    if evidence.tells_nothing(first, at):
        return replace(j, verdict="cannot tell", why="rounding")
    votes = [s for s in asks if s.decides_votes]
    if votes and first.view.all_rows:
        fewest = len(votes[0].record.columns)
        named = tuple(s for s in votes if len(s.record.columns) == fewest)
        return replace(j, verdict=_verdict_of(votes[0], evidence, at), named=named)
    return _questioned(j, at)


def _questioned(j: Judgement, at: np.ndarray) -> Judgement:
    """The judgement that a computation fits the steps `at`. It becomes a question if
    copies vote, if the raw reward fits and nothing was declared, or if the declared
    computation is not far from the log."""
    is_declared = j.verdict == "correct"
    if not is_declared and not j.evidence.contradicts_declaration(at):
        return replace(j, verdict="cannot tell", why="close")
    if j.evidence.copies:
        return replace(j, verdict="asks", why="copies")
    is_raw = is_declared and "none" in {c.estimator for c in j.computations}
    if is_raw and not j.declaration.decides:
        return replace(j, verdict="asks", why="raw reward")
    return j


def _preferred(whole: Judgement, at: np.ndarray, most: int) -> tuple[Computation, ...]:
    """The computations that fit the steps `at`, up to the level `most`, in the order
    in which they are named."""
    fits = whole.evidence.computations
    fitting = whole.evidence.fitting(at, most)
    if not fitting:
        return ()
    if not whole.computations:
        fitting.sort(
            key=lambda c: (fits[c].residual[at].max() > EXACT, c.divides and c.eps == 0)
        )
    named = [c for c in whole.computations if c in fits]
    named = [c for c in named if fits[c].level[at].max() <= most]
    return tuple(dict.fromkeys((*named, *fitting)))


def _tied_bugs(
    evidence: Evidence, at: np.ndarray, asks: Sequence[Suspect]
) -> tuple[str, ...]:
    """Bugs that leave no trace on the steps `at`: they fit as well as the computation,
    and no condition has to be asked about."""
    asked_about = {suspect.bug for suspect in asks}
    fitting = [s for s, lies in evidence.suspects.items() if lies.good[at].all()]
    tied = [s.bug for s in fitting if s.surety != 1 and s.bug not in asked_about]
    return tuple(dict.fromkeys(tied))


def conditions(evidence: Evidence, at: np.ndarray) -> tuple[Suspect, ...]:
    """A suspect for each bug that fits all the steps `at` while its correct engine does
    not fit them. Under the suspect's settings these numbers would be the bug."""
    chosen: dict[str, Suspect] = {}
    for suspect, lies in evidence.suspects.items():
        # Rounding is no other setting's computation.
        if suspect.bug in chosen or suspect.record.loses or not lies.good[at].all():
            continue
        if not evidence.twins[suspect].good[at].all():
            chosen[suspect.bug] = suspect

    def assumes(suspect: Suspect) -> tuple[int, bool]:
        return len(suspect.record.columns), bool(suspect.record.without)

    return tuple(sorted(chosen.values(), key=assumes))


def _suspected(whole: Judgement, at: np.ndarray) -> Judgement | None:
    """The judgement for a bug that fits all the steps `at`, or fits some while the
    other steps are correct."""
    evidence = whole.evidence
    fits = evidence.suspects

    def support(suspect: Suspect) -> tuple:
        return (
            suspect.surety,
            -int(fits[suspect].good[at].sum()),
            int(fits[suspect].level[at].max()),
            len(suspect.record.columns),
            len(suspect.guesses),
        )

    def merit(suspect: Suspect) -> tuple:
        is_other = suspect != whole.suspect
        return suspect.surety, is_other, support(suspect), BUGS.index(suspect.bug)

    fitting = sorted((s for s in fits if evidence.explains(s, at)), key=merit)
    if not fitting:
        return None
    first = fitting[0]
    best_of = {s.bug: s for s in reversed(fitting)}
    each = [s for s in fitting if s is best_of[s.bug]]
    if first == whole.suspect:
        verdict = whole.verdict
    else:
        verdict = _verdict_of(first, evidence, at)
    return Judgement(
        verdict,
        evidence,
        named=tuple(s for s in each if support(s) == support(first)),
        asks=tuple(s for s in each if s.surety == first.surety),
        level=int(fits[first].level[at].max()),
        residual=float(fits[first].residual[at].max()),
    )


def _verdict_of(suspect: Suspect, evidence: Evidence, at: np.ndarray) -> str:
    """The verdict for a bug that fits the steps `at`. It accuses only if the correct
    engine, and whatever was declared, are far from the log."""
    some = np.isin(np.arange(evidence.steps.step_count), at)
    cells = evidence.cells.get(suspect)
    if cells is not None:
        cells = cells[evidence.steps.rows_of(some)]
    coarse = evidence.coarse.get(suspect)
    is_coarse = coarse is not None and bool(coarse[at].all())
    steps = evidence.steps.of_steps(some)
    declaration = evidence.declaration
    verdict = proof.verdict_of(suspect, steps, cells, is_coarse, declaration)
    # What rounding may do is no measure for a bug that rounds: its evidence is.
    if verdict == "asks" or suspect.record.evidence is not None:
        return verdict
    is_far = evidence.contradicts_twin(suspect, at)
    if declaration.decides and evidence.declared_beyond is not None:
        is_far = is_far and evidence.contradicts_declaration(at)
    return verdict if is_far else "asks"
