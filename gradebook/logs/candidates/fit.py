"""Fit: how far a candidate's advantages are from the logged ones, and how
far they may be. Letters: R rows, S steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.runs import StageTrace

ABSOLUTE = RELATIVE = 1e-5
"""How far a float32 advantage with noise of 1e-6 may lie from its value."""

FLOAT32 = 4 * 2.0**-24
"""Relative rounding of a float32 score and of a mean over such scores."""

CLEAR = 8
"""Two computations differ clearly on a row when they are this many times
further apart than the log may be off."""

ALIKE = 3e-6
"""Residuals below this are all the same: the log's own noise."""

ENOUGH = 24
"""So many different numbers must agree before a rounding is believed."""

LOOKED_AT = 8_192
"""So many numbers are looked at for it, at most."""

SIGNS = ("score", "credited", "baseline")
"""The stages that decide an advantage's sign."""

COMPARED = (*SIGNS, "counted", "group")
"""The stages that decide what float32 does before anything is divided."""

TYPES = (("bfloat16", 2.0**-7), ("float16", 2.0**-10))
"""Number types with few digits, and their spacing relative to a value."""


@dataclass(frozen=True)
class Rounding:
    """How the log's numbers were rounded when they were written.

    places    decimals of the advantages, None when they are not rounded
    kind      the advantages' number type, "" for float32 or better
    relative  half the type's spacing, relative to the value
    """

    places: int | None = None
    kind: str = ""
    relative: float = 0.0

    def __bool__(self) -> bool:
        return self.places is not None or bool(self.kind)

    def of(self, logged: np.ndarray) -> np.ndarray:
        """How far rounding may have moved each number. [R]"""
        size = np.abs(np.where(np.isfinite(logged), logged, 0))
        moved = self.relative * size
        if self.places is not None:
            moved = moved + 0.51 * 10.0**-self.places
        return moved

    @property
    def words(self) -> str:
        """What a note says: "rounded to 3 decimals"."""
        if self.kind:
            return f"stored as {self.kind}"
        return f"rounded to {self.places} decimals"


EXACT = Rounding()


def rounding_of_type(kind: str) -> Rounding:
    """The rounding of numbers that were handed over in a float type."""
    spacing = dict(TYPES).get(kind)
    return EXACT if spacing is None else Rounding(None, kind, spacing / 2)


def rounding_of(logged: np.ndarray) -> Rounding:
    """The rounding that many different numbers share, evenly spread."""
    some = logged[:: len(logged) // LOOKED_AT + 1]
    sizes = np.unique(np.abs(some[np.isfinite(some)]))
    sizes = sizes[(sizes > 1e-4) & (sizes < 1e4)]
    if len(sizes) < ENOUGH:
        return EXACT
    for kind, spacing in TYPES:
        if bool((_as(kind, sizes) == sizes).all()) and not _short(sizes):
            return Rounding(None, kind, spacing / 2)
    for places in range(1, 7):
        away = np.abs(sizes - np.round(sizes, places))
        if bool((away <= 1e-7 * np.maximum(sizes, 1e-3)).all()):
            return Rounding(places)
    return EXACT


def _as(kind: str, values: np.ndarray) -> np.ndarray:
    """The values, rounded to a number type."""
    short = torch.from_numpy(values).float().to(getattr(torch, kind))
    return short.double().numpy()


def _short(values: np.ndarray) -> bool:
    """Short binary fractions, such as quarters, stand in any type."""
    return bool((values * 64 == np.round(values * 64)).all())


@dataclass(frozen=True, eq=False)
class Fit:
    """How one candidate lies with the log. [S]

    residual  float64, the largest distance of a row
    tight     bool, every row is as close as the log's numbers can tell
    loose     bool, every row is as close as float32 scores can tell
    """

    residual: np.ndarray
    tight: np.ndarray
    loose: np.ndarray

    @classmethod
    def none(cls, steps: int) -> Fit:
        """Nothing computed, or nothing that could be computed."""
        no = np.zeros(steps, dtype=bool)
        return cls(np.full(steps, np.inf), no, no.copy())

    def put(self, at: np.ndarray, other: Fit) -> None:
        """Takes over another's steps; `at`, bool [S], says which."""
        self.residual[at] = other.residual
        self.tight[at], self.loose[at] = other.tight, other.loose


@dataclass(frozen=True, eq=False)
class Ruler:
    """What distances on some logged steps are measured with. Stages that
    were measured before, by their numbers, are not measured again."""

    steps: LoggedSteps
    rounding: Rounding = EXACT
    _dusts: dict[tuple, np.ndarray] = field(default_factory=dict)
    _fits: dict[tuple, Fit] = field(default_factory=dict)
    _opposed: dict[tuple, np.ndarray] = field(default_factory=dict)

    @cached_property
    def allowed(self) -> np.ndarray:
        """How far each logged advantage may be off. float64 [R]"""
        logged = self.steps.advantage
        size = np.abs(np.where(np.isfinite(logged), logged, 0))
        return ABSOLUTE + RELATIVE * size + self.rounding.of(logged)

    def fit(self, trace: StageTrace) -> Fit:
        """How a trace's advantages lie with the log."""
        if trace.key not in self._fits:
            self._fits[trace.key] = self._fit(trace)
        return self._fits[trace.key]

    def _fit(self, trace: StageTrace) -> Fit:
        steps = self.steps
        away = distance(trace.advantage.numpy(), steps.advantage)
        worst = steps.worst(away)
        over = np.flatnonzero(away > self.allowed)
        tight = np.ones(len(worst), dtype=bool)
        tight[steps.step_of[over]] = False
        if not len(over):
            return Fit(worst, tight, tight)
        loose = tight.copy()
        open_, first = np.unique(steps.step_of[over], return_index=True)
        beyond = self._beyond(trace, over[first], away)
        hopeful = np.zeros(len(worst), dtype=bool)
        hopeful[open_[~beyond]] = True
        if hopeful.any():
            over = over[hopeful[steps.step_of[over]]]
            beyond = self._beyond(trace, over, away)
            loose |= hopeful
            loose[steps.step_of[over[beyond]]] = False
        return Fit(worst, tight, loose)

    def _beyond(
        self, trace: StageTrace, rows: np.ndarray, away: np.ndarray
    ) -> np.ndarray:
        """bool [rows]: rounding of scores does not explain the distance,
        float64 [R]."""
        return away[rows] > self.allowed[rows] + self.slack(trace, rows)

    def slack(self, trace: StageTrace, rows: np.ndarray) -> np.ndarray:
        """What float32 rounding of scores and means may do to these rows.
        [rows]"""
        dust = self._dust(trace)[rows]
        if not dust.any():
            return dust
        scale = np.abs(trace.scale.numpy()[rows])
        dust /= np.where(scale > 0, scale, np.inf)
        step = self.steps.step_of[rows]
        most = np.sqrt(self.steps.batch.step_rows.numpy())[step]
        return np.minimum(dust, most) * self._gain(trace)[step]

    def _dust(self, trace: StageTrace) -> np.ndarray:
        """What float32 rounding may do to each row's distance from its
        baseline.

        Scores such as 0, 1 or 0.25 have exact sums. A row that is compared
        with no other row has nothing to round but its own score. [R]
        """
        key = tuple(trace.number(name) for name in COMPARED)
        if key not in self._dusts:
            score = trace.score.numpy().astype("float64")
            size = np.abs(score) + np.abs(trace.baseline.numpy())
            size[~np.isfinite(size)] = 0  # beyond float32: no dust
            none = _exact(score, size) | ~trace.credited.numpy()
            if not none.all():
                none |= _alone(trace)
            self._dusts[key] = np.where(none, 0, FLOAT32 * size)
        return self._dusts[key]

    def _gain(self, trace: StageTrace) -> np.ndarray:
        """How much the last stage spreads the standardized scores. [S]"""
        if not trace.moved:
            return np.ones(self.steps.step_count)
        spreads = []
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for name in ("advantage", "standardized"):
                values = np.nan_to_num(getattr(trace, name).numpy())
                high, low = self.steps.worst(values), self.steps.worst(-values)
                spreads.append(high + low)
            gain = spreads[0] / spreads[1]
        return np.where(np.isfinite(gain), gain, 1.0)

    def sides(self, suspect: StageTrace, correct: StageTrace) -> np.ndarray:
        """int64 [S]: the rows on which the two differ clearly and the log
        is where the suspect is. Rounding of scores counts only on steps
        that the suspect needs it for. A row without a finite advantage is
        no evidence: every division by 0 gives such a one."""
        found = suspect.advantage.numpy()
        loose = np.flatnonzero(~self.fit(suspect).tight[self.steps.step_of])
        near, dust = self.allowed.copy(), np.zeros(self.steps.rows)
        if len(loose):
            near[loose] += self.slack(suspect, loose)
            dust[loose] = self.slack(correct, loose)
        apart = distance(found, correct.advantage.numpy())
        clear = apart > CLEAR * (near + dust)
        away = distance(found, self.steps.advantage)
        clear &= np.isfinite(self.steps.advantage)
        return self.steps.total(clear & (away <= near))

    def opposed(self, trace: StageTrace) -> np.ndarray:
        """bool [S]: whatever positive numbers the distances from the
        baseline are divided by, some row's advantage in the log has the
        other sign, or is not 0 where it must be. Runs no stage after the
        baseline."""
        key = tuple(trace.number(name) for name in SIGNS)
        if key not in self._opposed:
            self._opposed[key] = self._signs(trace)
        return self._opposed[key]

    def _signs(self, trace: StageTrace) -> np.ndarray:
        score = trace.score.numpy().astype("float64")
        baseline = trace.baseline.numpy()
        with np.errstate(invalid="ignore"):
            away, logged = score - baseline, self.steps.advantage
        size = np.abs(score) + np.abs(baseline)
        sure = (np.abs(away) > FLOAT32 * size) | _exact(score, size)
        wrong = sure & (np.sign(away) != np.sign(logged))
        wrong |= ~trace.credited.numpy()
        wrong &= np.isfinite(logged) & (np.abs(logged) > self.allowed)
        return self.steps.total(wrong) > 0

    def blurred(self, trace: StageTrace) -> np.ndarray:
        """bool [S]: rounding may move a row by a quarter of the step's
        largest advantage or more, so that a loose fit tells nothing."""
        slack = self.slack(trace, np.arange(self.steps.rows))
        size = self.steps.worst(np.nan_to_num(np.abs(self.steps.advantage)))
        return self.steps.worst(slack) > 0.25 * size


def _alone(trace: StageTrace) -> np.ndarray:
    """bool [R]: no other row of the row's group counts."""
    group = trace.group.numpy() + 1
    voters = np.bincount(group[trace.counted.numpy()], minlength=group.max() + 1)
    return (group == 0) | (voters[group] <= 1)


def _exact(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """bool: float32 sums of such scores are exact, where score and mean
    together are of this size."""
    return (score * 1024 == np.round(score * 1024)) & (size < 4096)


def distance(found: np.ndarray, logged: np.ndarray) -> np.ndarray:
    """|found - logged|; 0 where both are not finite, inf where one is."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(found - logged)
    odd = ~np.isfinite(away)
    if odd.any():
        same = np.isfinite(found[odd]) == np.isfinite(logged[odd])
        away[odd] = np.where(same, 0.0, np.inf)
    return away
