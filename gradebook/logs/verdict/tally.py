"""Tally: which candidates fit which steps of a whole log."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.fit import ALIKE
from gradebook.logs.candidates.trials import Trials
from gradebook.logs.verdict.steps import StepResults


@dataclass(eq=False)
class Own:
    """One candidate on the steps read so far.

    fits   first step of a part -> bool, the part's steps that it fits
    worst  the largest residual on a step that it fits
    tight  on how many steps it needs no allowance for rounding
    sides  rows on which the log sides with it against the correct engine
    """

    fits: dict[int, np.ndarray] = field(default_factory=dict)
    worst: float = 0.0
    tight: int = 0
    sides: int = 0


@dataclass(eq=False)
class Tally:
    """Every candidate that fits some step.

    steps  steps read so far
    quiet  bool a part, the steps that tell nothing
    """

    own: dict[Candidate, Own] = field(default_factory=dict)
    steps: int = 0
    quiet: list[np.ndarray] = field(default_factory=list)

    def add(self, trials: Trials, results: StepResults) -> None:
        """Adds a part's trials."""
        suspect = (results.frame["verdict"] == "suspect").to_numpy()
        for candidate, fit in trials.fits.items():
            fits = fit.loose if candidate.bug else fit.loose & ~suspect
            if not fits.any():
                continue
            own = self.own.setdefault(candidate, Own())
            own.fits[self.steps] = fits
            own.worst = max(own.worst, float(fit.residual[fits].max()))
            own.tight += int((fit.tight & fits).sum())
        for candidate, rows in results.sides.items():
            if candidate in self.own:
                self.own[candidate].sides += int(rows.sum())
        self.quiet.append(trials.quiet)
        self.steps += trials.steps.step_count

    def count(self, candidate: Candidate) -> int:
        """Steps that it fits."""
        own = self.own.get(candidate)
        return sum(int(p.sum()) for p in own.fits.values()) if own else 0

    def fitted(self, candidate: Candidate) -> np.ndarray:
        """bool [steps]: the steps that it fits."""
        found = np.zeros(self.steps, dtype=bool)
        own = self.own.get(candidate)
        for at, part in (own.fits if own else {}).items():
            found[at : at + len(part)] = part
        return found

    def preferred(self, wanted: list[Candidate]) -> Candidate:
        """The first of those that need the least allowance for rounding,
        and whose residual is as small as the smallest."""
        most = max(self.own[c].tight for c in wanted)
        wanted = [c for c in wanted if self.own[c].tight == most]
        bound = max(ALIKE, 3 * min(self.own[c].worst for c in wanted))
        return next(c for c in wanted if self.own[c].worst <= bound)


@dataclass(frozen=True)
class Segment:
    """Consecutive steps under one candidate, the first and last by their
    place in the log."""

    first: int
    last: int
    candidate: Candidate


@dataclass(frozen=True, eq=False)
class Named:
    """What a log is called.

    candidate  what it is named by, or the closest to it, or None
    fits       bool [steps] where it (or, for a bug that is only in part of
               the log, the correct engine) fits
    alive      what fits as many steps
    mixed      the correct engine fits where the bug does not
    why        for "cannot tell": no advantages, nothing varies, no evidence,
               rounding, unlisted, split
    segments   several candidates, one after the other
    frame      one row a step
    residual   the candidate's largest, or the steps' where nothing fits
    """

    verdict: str
    candidate: Candidate | None
    fits: np.ndarray
    alive: tuple[Candidate, ...] = ()
    mixed: bool = False
    why: str = ""
    segments: tuple[Segment, ...] = ()
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    residual: float = math.nan


def named(tally: Tally, frame: pd.DataFrame) -> Named:
    """The one candidate behind a log, several in turn, or the closest to
    it. `frame` has the steps' own verdicts, one row a step."""
    found = _named(tally, frame["verdict"].to_numpy())
    residual = math.nan
    if found.candidate in tally.own:
        residual = tally.own[found.candidate].worst
    if found.verdict == "none fits" and len(frame):
        residual = float(frame["residual"].max())
    if found.verdict == "suspect" and not found.segments:
        frame = _named_alike(frame, found.candidate)
    return replace(found, frame=frame, residual=residual)


def _named_alike(frame: pd.DataFrame, candidate: Candidate | None) -> pd.DataFrame:
    """The frame, with the log's own bug first wherever it is tied: a step
    of few rows alone may fit several."""
    name = candidate.bug if candidate else ""
    tied = np.array([name in ties for ties in frame["ties"]], dtype=bool)
    tied &= (frame["verdict"] == "suspect").to_numpy()
    if not tied.any():
        return frame
    frame = frame.copy()
    for at in np.flatnonzero(tied):
        own = frame["bug"].iloc[at]
        ties = [own if t == name else t for t in frame["ties"].iloc[at]]
        frame.at[at, "ties"] = tuple(ties)
    frame.loc[tied, "bug"] = name
    return frame


def _named(tally: Tally, told: np.ndarray) -> Named:
    """What the steps' verdicts, [steps], and the candidates come to."""
    none = np.zeros(tally.steps, dtype=bool)
    quiet = np.concatenate(tally.quiet) if tally.quiet else none
    if not tally.steps or quiet.all():
        return Named("cannot tell", None, none, why="nothing varies")
    every = list(tally.own)
    full = [c for c in every if tally.count(c) == tally.steps]
    correct = [c for c in full if not c.bug and c.listed]
    if correct:
        chosen = tally.preferred(correct)
        alive = (*correct, *(c for c in full if c.bug))
        if (told == "correct").any():
            return Named("correct", chosen, ~none, alive)
        return Named("cannot tell", chosen, ~none, alive, why="rounding")
    partly = [c for c in every if c.bug and c.listed and _covers(tally, c)]
    proven = [c for c in partly if tally.own[c].sides > c.freedom]
    if not proven and (quiet | (told == "correct")).all():
        return _changing(tally, quiet)
    for wanted, verdict, why in (
        (proven, "suspect", ""),
        (partly, "cannot tell", "no evidence"),
        ([c for c in full if not c.listed], "cannot tell", "unlisted"),
    ):
        if wanted:
            whole = [c for c in wanted if tally.count(c) == tally.steps]
            chosen = tally.preferred(whole or wanted)
            mixed = not whole
            return Named(verdict, chosen, ~none, tuple(wanted), mixed, why)
    return _changing(tally, quiet)


def _changing(tally: Tally, quiet: np.ndarray) -> Named:
    """Several computations in turn, or none that fits."""
    every = list(tally.own)
    found = segments(tally, quiet)
    suspects = [
        s.candidate
        for s in found
        if s.candidate.bug and tally.own[s.candidate].sides > s.candidate.freedom
    ]
    if suspects:
        all_ = np.ones(tally.steps, dtype=bool)
        return Named("suspect", suspects[0], all_, tuple(suspects), segments=found)
    best = max(every, key=tally.count, default=None)
    fits = np.zeros(tally.steps, dtype=bool)
    fits = fits if best is None else tally.fitted(best)
    return Named("none fits", best, fits, segments=found)


def _covers(tally: Tally, candidate: Candidate) -> bool:
    """It fits every step, or its correct engine does where it does not."""
    count = tally.count(candidate)
    if count == tally.steps:
        return True
    if not count or count + tally.count(candidate.correct) < tally.steps:
        return False
    either = tally.fitted(candidate) | tally.fitted(candidate.correct)
    return bool(either.all())


MOST_SEGMENTS = 6
"""More changes than that are no story of a run."""


def segments(tally: Tally, quiet: np.ndarray) -> tuple[Segment, ...]:
    """The log in as few runs of steps as possible, each under one listed
    candidate; none where some step fits nothing, or there are too many.
    A bug's run includes steps on which only its correct engine fits."""
    listed = [c for c in tally.own if c.listed]
    if not listed or len(listed) > 512:
        return ()
    listed.sort(key=lambda c: bool(c.bug))
    fits = [tally.fitted(c) | quiet for c in listed]
    found: list[Segment] = []
    at = 0
    while at < tally.steps and len(found) < MOST_SEGMENTS:
        ends = [_end(f, at) for f in fits]
        best = int(np.argmax(ends))
        if ends[best] == at:
            return ()
        found.append(Segment(at, ends[best] - 1, listed[best]))
        at = ends[best]
    short = any(s.first == s.last for s in found)
    whole = at == tally.steps and len(found) > 1 and not short
    return tuple(found) if whole else ()


def _end(fits: np.ndarray, at: int) -> int:
    """The first step from `at` on that does not fit."""
    miss = np.flatnonzero(~fits[at:])
    return at + int(miss[0]) if len(miss) else len(fits)
