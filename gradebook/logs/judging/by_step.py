"""The verdict on each step, by its own rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradebook.core.differences import flips
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging import proof
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.conditions import settings_to_try
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import (
    MOST_REWARD,
    NONE,
    REWARDS,
    WRITTEN,
    Ruler,
    distance,
)
from gradebook.logs.judging.judgement import Judgement
from gradebook.logs.judging.lost_digits import Lost, lost_digits
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.search import Found, quiet, search, search_bugs
from gradebook.logs.judging.suspects import Suspect

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


@dataclass(eq=False)
class BySteps:
    """The verdict on each step, from what fits it."""

    found: Found
    asked: Asked
    lost: list[Lost]
    whole: Judgement | None = None

    def __post_init__(self) -> None:
        fits = self.found.readings
        order = sorted(fits, key=plainness)
        if self.whole is not None and self.whole.readings:
            first = [r for r in self.whole.readings if r in fits]
            order = first + [r for r in order if r not in first]
        self.readings = order
        self.suspects = list(self.found.suspects)
        if self.whole is not None and self.whole.suspect in self.found.suspects:
            self.suspects.remove(self.whole.suspect)
            self.suspects.insert(0, self.whole.suspect)
        self.right = {s: self.found.correct(s).good for s in self.suspects}

    def step(self, at: int) -> Step:
        """One step's verdict."""
        levels = [self.found.readings[r].level[at] for r in self.readings]
        best = min(levels, default=NONE)
        asks = self._asks(at)
        ties = [s.bug for s in self.suspects if self._ties(s, at)]
        named = [
            r
            for r, level in zip(self.readings, levels)
            if level == best or level <= WRITTEN and self._is_named(r)
        ]
        if best <= WRITTEN:
            ties = [b for b in ties if b not in {s.bug for s in asks}]
            return self._fits(at, named, asks, ties)
        for s in self.suspects:
            if self.found.suspects[s].good[at] and not s.rounds:
                return self._suspect(at, s)
        for lost in self.lost:
            if lost.shown[at]:
                name = lost.suspect.bug
                return Step(lost.shown[at], name, (), (name,), lost.reading.estimator)
        for s in self.suspects:
            if self.found.suspects[s].good[at]:
                return replace(self._suspect(at, s), verdict="asks")
        if best == REWARDS:
            r, part = named[0], self.found.steps.step_of == at
            moved = self.found.ruler.rewards(self.found.compute(r).scale)[part]
            sure = moved.max() <= MOST_REWARD
            verdict = "correct" if sure and self.asked.wanted(r) else "cannot tell"
            residual = float(self.found.readings[r].residual[at])
            return Step(verdict, "", (), (), r.estimator, residual)
        return Step("none fits")

    def _is_named(self, r: Reading) -> bool:
        return self.whole is not None and r in self.whole.readings

    def _asks(self, at: int) -> list[Suspect]:
        good = self.found.suspects
        chosen: dict[str, Suspect] = {}
        for s in self.suspects:
            if good[s].good[at] and not self.right[s][at] and not s.record.loses:
                chosen.setdefault(s.bug, s)
        return list(chosen.values())

    def _ties(self, s: Suspect, at: int) -> bool:
        return bool(self.found.suspects[s].good[at] and self.right[s][at])

    def _fits(
        self, at: int, named: list[Reading], asks: list[Suspect], ties: list[str]
    ) -> Step:
        mine = [r for r in named if self.asked.wanted(r)]
        fits = self.found.readings
        r = (mine or named)[0]
        if self.whole is None:  # an exact fit before one within the base
            without_eps = {o: o.divides and o.eps == 0 for o in named}
            exact = {o: fits[o].residual[at] > 1e-9 for o in named}
            r = min(mine or named, key=lambda o: (exact[o], without_eps[o]))
        residual = float(fits[r].residual[at])
        names = dict.fromkeys(o.estimator for o in named if o.estimator != r.estimator)
        own = tuple(dict.fromkeys((*ties, *names)))
        about = tuple(s.bug for s in asks)
        verdict, label = "correct" if mine else "other", ""
        counting = [s for s in asks if s.record.stage in proof.HOW_ROWS_COUNT]
        if mine and counting and r.rows == "all":
            sure = proof.proved(counting[0], self.found.steps, self.asked)
            verdict, label = "suspect" if sure else "asks", counting[0].bug
        elif not self.asked.is_declared and {o.estimator for o in named} == {"none"}:
            verdict = "asks"
        return Step(verdict, label, own, about, r.estimator, residual)

    def _suspect(self, at: int, s: Suspect) -> Step:
        fits = self.found.suspects
        others = [o.bug for o in self.suspects if fits[o].good[at] and o.bug != s.bug]
        residual = float(fits[s].residual[at])
        names = tuple(dict.fromkeys((s.bug, *others)))
        if self.whole is not None and self.whole.suspect == s:
            verdict = self.whole.verdict
        else:
            only = np.arange(self.found.steps.step_count) == at
            verdict = proof.verdict_of(s, self.found.steps.of_steps(only), self.asked)
        label = "" if verdict == "other" else s.bug
        return Step(verdict, label, names[1:], names, _estimator_of(s), residual)


@dataclass(frozen=True)
class Step:
    """One step's verdict, under the names of COLUMNS."""

    verdict: str
    bug: str = ""
    ties: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    estimator: str = ""
    residual: float = np.nan


def frame_of(
    found: Found,
    asked: Asked,
    usable: np.ndarray,
    lost: list[Lost],
    whole: Judgement | None = None,
) -> pd.DataFrame:
    """One row a step: COLUMNS and COUNTS."""
    steps = found.steps
    count = steps.step_count
    by_step = BySteps(found, asked, lost, whole)
    zero = steps.worst(np.nan_to_num(np.abs(steps.advantage), nan=1.0)) <= 1e-9
    rows = []
    for at in range(count):
        if not usable[at] or zero[at] and (whole is None or whole.verdict != "correct"):
            rows.append(Step("cannot tell"))
        else:
            rows.append(by_step.step(at))
    correct = _as_declared(found, asked, whole, rows)
    away = distance(correct, steps.advantage)
    worst = steps.worst(away)
    group = steps.batch.prompt_index.numpy()
    affected = np.zeros(len(steps.groups.size), dtype=bool)
    affected[group[away > 10 * found.ruler.base]] = True
    frame = pd.DataFrame([vars(row) for row in rows])
    frame["step"] = steps.labels
    frame["correct_residual"] = worst
    frame["row"] = steps.first_at(away, worst) - steps.starts
    frame["rows"] = steps.batch.step_rows.numpy()
    frame["groups"] = np.bincount(steps.groups.step, minlength=count)
    frame["flips"] = steps.total(flips(correct, steps.advantage))
    touched = np.bincount(steps.groups.step, affected, minlength=count)
    frame["groups_affected"] = touched.astype("int64")
    return frame[[*COLUMNS, *COUNTS]]


def _estimator_of(suspect: Suspect) -> str:
    s = suspect.settings
    second = "tokens 1" if s.whiten_tokens else ""
    return Reading(s.baseline, s.scale, lone_row=s.lone_row, second=second).estimator


def _as_declared(
    found: Found, asked: Asked, whole: Judgement | None, rows: list[Step]
) -> np.ndarray:
    """What is correct beside the log; on steps that are another computation
    than declared, what was declared. float64 [R]"""
    values = _correct_values(found, asked, whole, rows)
    other = np.array([row.verdict == "other" for row in rows])[found.steps.step_of]
    if not other.any():
        return values
    declared = Suspect("", settings_to_try(asked, (), found.steps)[0])
    try:
        return np.where(other, bugs.trace(found.steps, declared).values, values)
    except GradebookError:  # a step that the declared computation refuses
        return values


def _correct_values(
    found: Found, asked: Asked, whole: Judgement | None, rows: list[Step]
) -> np.ndarray:
    """What is correct beside the log: the named reading, else that of the
    bug, else the reading that fits most. float64 [R]"""
    steps = found.steps
    reading, suspect = None, None
    if whole is not None:
        suspect = whole.suspect
        reading = whole.reading if suspect is None else None
    if reading is None and suspect is None:
        named = [row.bug for row in rows if row.bug]
        own = [s for s in found.suspects if s.bug in named]
        suspect = own[0] if own else None
    if reading is None and suspect is not None:
        try:
            return bugs.trace(steps, suspect.correct).values
        except GradebookError:
            pass
    if reading is None and found.readings:
        reading = max(found.readings, key=lambda r: found.readings[r].good.sum())
    if reading is None and found.nearest is not None:
        reading = found.nearest[0]
    if reading is None or reading.grouping == "without copies":
        return steps.advantage
    return found.compute(reading).values


def by_step(ruler: Ruler, asked: Asked) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    found = search(ruler, asked)
    usable = ~quiet(ruler.steps)
    good = found.level() <= WRITTEN
    named = sorted(found.readings, key=plainness)
    search_bugs(found, asked, usable & good, settings_to_try(asked, named, ruler.steps))
    search_bugs(found, asked, usable & ~good)
    lost = lost_digits(found, asked, usable, _nothing) if (usable & ~good).any() else []
    return frame_of(found, asked, usable, lost)


def _nothing() -> None:
    """No progress is told."""
