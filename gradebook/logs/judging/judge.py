"""Judge: what the logged advantages are, step by step and as a whole.

First the space is searched, then the bugs; a declaration decides between
"correct" and "other", and proof between "suspect" and "asks".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradebook.cases.record import BUGS, bug
from gradebook.core.differences import flips
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging import proof
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.fit import (
    MOST_REWARD,
    NONE,
    REWARDS,
    WRITTEN,
    Fit,
    Rounding,
    Ruler,
    distance,
    rounding_of,
)
from gradebook.logs.judging.search import (
    Asked,
    Found,
    Tick,
    compute,
    is_usual,
    quiet,
    search,
    search_bugs,
)
from gradebook.logs.judging.space import Reading
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

VERDICTS = ("correct", "other", "suspect", "asks", "cannot tell", "none fits")


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a log's advantages are.

    verdict   one of VERDICTS
    why       what stands behind "asks", "cannot tell" and "none fits"
    readings  the computations of the space that fit, the preferred first
    suspect   the bug that is named or asked about, under its settings
    asks      bugs that these numbers would be under a condition, each with
              the settings that it takes
    ties      bugs that leave no trace on these rows
    parts     (first step, last step, reading) where the run changed once
    found     all that was searched
    level     how closely the named computation fits
    """

    verdict: str
    found: Found
    why: str = ""
    readings: tuple[Reading, ...] = ()
    suspect: Suspect | None = None
    asks: tuple[Suspect, ...] = ()
    ties: tuple[str, ...] = ()
    parts: tuple[tuple[int, int, Reading], ...] = ()
    level: int = NONE
    frame: Any = None

    @property
    def reading(self) -> Reading | None:
        """The computation that is named, or that is correct beside a bug."""
        return self.readings[0] if self.readings else None


def ruler_of(
    steps: LoggedSteps,
    kinds: Mapping[str, str] | None = None,
    places: int | None = None,
) -> Ruler:
    """The ruler of a log: `kinds` are the types of its columns, `places` the
    decimals that advantages were rounded to."""
    kinds = kinds or {}
    advantage = Rounding(places)
    if places is None:
        advantage = _rounding(steps.advantage, kinds.get("advantage", ""))
    reward = steps.batch.reward.numpy().astype("float64")
    return Ruler(steps, advantage, _rounding(reward, kinds.get("reward", "")))


def _rounding(values: np.ndarray, kind: str) -> Rounding:
    if kind.startswith("text "):
        places = int(kind.removeprefix("text "))
        few = rounding_of(values)
        return few if few.kind else Rounding(places) if places <= 8 else Rounding()
    return rounding_of(values, kind)


def judge(ruler: Ruler, asked: Asked, tick: Tick = lambda: None) -> Judgement:
    """The verdict on a log's steps, as a whole and step by step."""
    steps = ruler.steps
    found = search(ruler, asked, tick)
    usable = ~quiet(steps)
    whole, lost = _whole(found, asked, usable, tick), []
    if whole.suspect is not None and _is_float32(whole.suspect):
        lost = lost_digits(found, asked, usable, tick)
    return replace(whole, frame=frame_of(found, asked, usable, lost, whole))


def _whole(found: Found, asked: Asked, usable: np.ndarray, tick: Tick) -> Judgement:
    ruler, steps = found.ruler, found.steps
    if not usable.any():
        return Judgement("cannot tell", found, "nothing varies")
    logged = np.nan_to_num(np.abs(steps.advantage), nan=1.0)
    if logged.max() <= 1e-9:
        search_bugs(found, asked, usable, _table(asked, ()), tick)
        asks = _standing(found, usable, WRITTEN)
        return Judgement("cannot tell", found, "all zero", asks=asks)
    fitting = fit_all(found, usable, WRITTEN)
    if fitting:
        return _fits(found, asked, usable, fitting, tick)
    search_bugs(found, asked, usable & (found.level() > WRITTEN), None, tick)
    named = _suspected(found, asked, usable)
    if named is not None:
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
    parts = _parts(found, usable)
    if parts:
        search_bugs(found, asked, usable, _table(asked, [p[2] for p in parts]), tick)
        return Judgement(
            "asks",
            found,
            "changed",
            tuple(p[2] for p in parts),
            asks=_standing(found, usable, WRITTEN),
            parts=parts,
        )
    turned = replace(steps, advantage=-steps.advantage)
    part = search(replace(ruler, steps=turned), asked, tick, is_usual)
    opposite = fit_all(part, usable, WRITTEN)
    if opposite:
        return Judgement("none fits", found, "opposite sign", tuple(opposite))
    return Judgement("none fits", found, "nothing")


def fit_all(found: Found, usable: np.ndarray, level: int) -> list[Reading]:
    """Readings that fit all usable steps at the best level that any does, up
    to this one."""
    for at in range(level + 1):
        named = [r for r, f in found.readings.items() if (f.level[usable] <= at).all()]
        if named:
            return sorted(named, key=plainness)
    return []


def plainness(r: Reading) -> tuple:
    """Usual computations first, among those that fit equally well."""
    usual = ("grpo", "dr_grpo", "rloo", "rloo_vectorized", "batch_zscore")
    name = r.estimator
    return (
        r.rows == "all",
        r.rows == "ended",
        r.grouping != "prompt",
        r.clip is not None,
        bool(r.second),
        r.eps_at != "after",
        r.about != "mean",
        usual.index(name) if name in usual else len(usual),
    )


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
    search_bugs(found, asked, usable, _table(asked, fitting), tick)
    standing = _standing(found, usable, WRITTEN)
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


def _table(asked: Asked, readings: Iterable[Reading]) -> tuple[Settings, ...]:
    """The settings under which a condition may make a bug of the readings."""
    details: dict[tuple[int, float], None] = {}
    for r in list(readings)[:6]:
        if r.divides and r.eps_at == "after":
            details[r.ddof, r.eps] = None
    details = details or {(1, 1e-6): None, (0, 1e-6): None}
    few = list(details)[:2]
    declared = dict(asked.declared)
    shapes: tuple[dict[str, Any], ...] = (
        {},
        {"scale": "none"},
        {"baseline": "leave_one_out", "scale": "none"},
        {"baseline": "batch_mean", "scale": "none"},
        {"baseline": "batch_mean", "scale": "batch_std"},
        {"scale": "batch_std"},
    )
    own: list[dict[str, Any]] = [
        {"baseline": r.baseline, "scale": r.scale, "lone_row": r.lone_row}
        for r in list(readings)[:3]
        if r.settings.baseline == r.baseline and r.settings.scale == r.scale
    ]
    found: dict[Settings, None] = {}
    for lone_row in ("raw", "zero"):
        for changes in (*own, *shapes):
            for ddof, eps in few if changes.get("scale") != "none" else few[:1]:
                free = {"lone_row": lone_row, "ddof": ddof, "eps": eps, **changes}
                free = {k: v for k, v in free.items() if k not in declared}
                found[Settings(**{**free, **declared})] = None
    for r in list(readings)[:3]:
        if r.second.startswith("tokens"):
            found[replace(r.settings, **declared)] = None
    return tuple(found)


def _standing(found: Found, usable: np.ndarray, level: int) -> tuple[Suspect, ...]:
    """A suspect of each bug that fits all usable steps while the correct
    engine under its settings does not: what these numbers would be, if those
    settings were asked for."""
    chosen: dict[str, Suspect] = {}
    for suspect, fit in found.suspects.items():
        if suspect.bug in chosen or not (fit.level[usable] <= level).all():
            continue
        if suspect.record.loses:
            continue  # rounding is no other setting's computation
        correct = bugs.fit(found.ruler, suspect.correct)
        if not (correct.level[usable] <= level).all():
            chosen[suspect.bug] = suspect
    return tuple(sorted(chosen.values(), key=lambda s: len(s.record.columns)))


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
            correct = bugs.fit(found.ruler, suspect.correct)
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

    fitting = sorted((s for s in fitting if _is_float32(s) == numbers), key=merit)
    if not fitting:
        return None
    named = fitting[0]
    others = {s.bug: s for s in fitting if s.bug != named.bug}
    level = int(found.suspects[named].level[usable].max())
    verdict = "asks" if numbers else verdict_of(named, found.steps, asked)
    asks = (named, *others.values())
    return Judgement(verdict, found, "", (), named, asks, level=level)


def _is_float32(suspect: Suspect) -> bool:
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


def _rounded(found: Found, asked: Asked, fitting: list[Reading]) -> Judgement:
    """A fit within the rounding of the rewards: a verdict where that is
    small."""
    best = next((r for r in fitting if asked.wanted(r)), None)
    reading = best or fitting[0]
    named = (reading, *(r for r in fitting if r != reading))
    moved = found.ruler.rewards(compute(found.steps, reading).scale)
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
        self.right = {
            s: bugs.fit(self.found.ruler, s.correct).good for s in self.suspects
        }

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
            if self.found.suspects[s].good[at] and not _is_float32(s):
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
            moved = self.found.ruler.rewards(compute(self.found.steps, r).scale)[part]
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
            verdict = verdict_of(s, self.found.steps.of_steps(only), self.asked)
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


def verdict_of(suspect: Suspect, steps: LoggedSteps, asked: Asked) -> str:
    """What a bug is called that fits where no reading does."""
    if proof.proved(suspect, steps, asked):
        return "suspect"
    intent = suspect.record.stage in proof.HOW_ROWS_COUNT
    if asked.is_declared and suspect.record.proof == "declaration" and not intent:
        return "other"
    return "asks"


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
    correct = _correct_values(found, asked, whole, rows)
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
        if whole.verdict == "other":
            suspect = suspect or Suspect("", _table(asked, ())[0])
            reading = None
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
    return compute(steps, reading).values


def by_step(ruler: Ruler, asked: Asked) -> pd.DataFrame:
    """`gradebook.check`: each step judged by its own rows."""
    found = search(ruler, asked)
    usable = ~quiet(ruler.steps)
    good = found.level() <= WRITTEN
    named = sorted(found.readings, key=plainness)
    search_bugs(found, asked, usable & good, _table(asked, named))
    search_bugs(found, asked, usable & ~good)
    lost = lost_digits(found, asked, usable, _nothing) if (usable & ~good).any() else []
    return frame_of(found, asked, usable, lost)


def _nothing() -> None:
    """No progress is told."""
