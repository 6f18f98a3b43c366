"""Judging: which computations give the logged advantages, step by step.

Every computation is one engine run over all steps at once; the distance
from the log is then reduced to one number a step. Letters: R rows, S steps.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Iterable, Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gradebook.batch import Batch
from gradebook.bugs import BUGS
from gradebook.engine.pipeline import Engine, Trace, run
from gradebook.logs.computations import (
    CLIPS,
    EPS,
    NEEDS,
    STRIDES,
    TRACELESS,
    Computation,
    Facts,
    bare,
    computations,
    variants,
)
from gradebook.logs.rollouts import Rollouts, under

ABSOLUTE = RELATIVE = 1e-5
"""How far a float32 advantage with noise of 1e-6 may lie from its value."""

DUST = 4 * 2.0**-24
"""Relative rounding of a float32 score and of a mean over such scores."""

ALIKE = 3e-6
"""Residuals below this are all the same: the log's own noise."""

PROBED = 4096
"""From so many rows on, a few groups of each step are looked at first."""

VERDICTS = ("correct", "suspect", "cannot tell", "none fits")


@dataclass(frozen=True, eq=False)
class Fit:
    """How one computation lies with the log. NaN and false where the step
    was not computed.

    residual  float64 [S] largest distance of a row, dust left out
    fits      bool [S] every row is within tolerance and rounding dust
    tight     bool [S] every row is within tolerance
    """

    residual: np.ndarray
    fits: np.ndarray
    tight: np.ndarray

    @classmethod
    def unknown(cls, steps: int) -> "Fit":
        """Nothing computed yet."""
        no = np.zeros(steps, dtype=bool)
        return cls(np.full(steps, np.nan), no, no.copy())

    @classmethod
    def out(cls, steps: int) -> "Fit":
        """Nothing that could be computed."""
        no = np.zeros(steps, dtype=bool)
        return cls(np.full(steps, np.inf), no, no)

    def at(self, steps: np.ndarray) -> "Fit":
        """Only these steps, bool [S]."""
        return Fit(
            self.residual[steps], self.fits[steps], self.tight[steps]
        )

    def filled(self, at: np.ndarray, new: "Fit") -> "Fit":
        """This fit with `new` at the steps `at`, bool [S]."""
        both = zip(
            (self.residual, self.fits, self.tight),
            (new.residual, new.fits, new.tight),
        )
        merged = []
        for old, value in both:
            old = old.copy()
            old[at] = value
            merged.append(old)
        return Fit(*merged)


def facts_of(rollouts: Rollouts) -> Facts:
    """What the rows allow to differ."""
    batch = rollouts.batch
    muted = ~(batch.eos & batch.mask.any(-1))
    voting = torch.where(muted, 0, batch.prompt_index + 1)
    counted = torch.bincount(voting)[1:]
    groups = int(batch.prompt_index.max()) + 1
    largest = float(batch.reward.abs().max())
    lone = len(counted) < groups or bool((counted <= 1).any())
    return Facts(
        has=rollouts.has,
        lone=lone,
        no_eos=not bool(batch.eos.all()),
        muted=bool(muted.any()),
        clips=tuple(c for c in CLIPS if c < largest),
    )


def full_groups(rollouts: Rollouts, sizes: np.ndarray) -> np.ndarray:
    """bool [S]: every group is one stride of `sizes`, int64 [S], rows."""
    groups = rollouts.groups
    size = sizes[groups.step]
    place = groups.first - rollouts.starts[groups.step]
    whole = (groups.size == size) & (place % size == 0)
    whole &= groups.last - groups.first + 1 == size
    odd = np.bincount(groups.step[~whole], minlength=rollouts.steps)
    return odd == 0


def replicas(has: frozenset[str]) -> tuple[str, ...]:
    """The bugs whose replica can be tried with these columns."""
    return tuple(
        name
        for name in BUGS
        if name != TRACELESS
        and has.intersection(NEEDS.get(name, ("reward",)))
    )


def numbers_of(
    rollouts: Rollouts, computation: Computation, sizes: Tensor | None = None
) -> np.ndarray:
    """The advantages under one computation. float64 [R]."""
    batch = under(rollouts.batch, computation.settings, sizes)
    return run(without_loss(computation.engine), batch).advantage.numpy()


@lru_cache
def without_loss(engine: Engine) -> Engine:
    """The engine without its question which rows train: advantages do not
    ask it."""
    return replace(engine, trained=_not_asked)


def _not_asked(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """Counted rows, in place of `trained`. bool [R]."""
    return counted


def distance(found: np.ndarray, logged: np.ndarray) -> np.ndarray:
    """|found - logged|; 0 where both are not finite, inf where one is."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(found - logged)
    odd = ~np.isfinite(away)
    if odd.any():
        same = np.isfinite(found[odd]) == np.isfinite(logged[odd])
        away[odd] = np.where(same, 0.0, np.inf)
    return away


def _dust(
    rollouts: Rollouts, trace: Trace, scale: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """What float32 rounding of scores and means may do to these rows.

    Scores such as 0, 1 or 0.25 have exact sums, and so has a group in which
    one row counts. Dust over its own spread stays below the root of
    the number of rows. [rows]
    """
    score = trace.score.numpy()[rows]
    baseline = np.nan_to_num(trace.baseline.numpy()[rows])
    size = np.abs(score) + np.abs(baseline)
    divisor = np.where(scale[rows] > 0, scale[rows], np.inf)
    group = trace.group.numpy() + 1
    voters = np.bincount(group[trace.counted.numpy()], minlength=1)
    own = group[rows]
    alone = voters[np.minimum(own, len(voters) - 1)] <= 1
    alone |= own >= len(voters)
    short = (score * 1024 == np.round(score * 1024)) & (size < 4096)
    exact = short | alone & (own > 0) | ~trace.credited.numpy()[rows]
    dust = np.where(exact, 0, DUST * size / divisor)
    step = rollouts.batch.step_index.numpy()[rows]
    return np.minimum(dust, np.sqrt(rollouts.batch.step_rows.numpy())[step])


def fit_of(
    rollouts: Rollouts, trace: Trace, scale: np.ndarray, allowed: np.ndarray
) -> Fit:
    """How a trace's advantages lie with the log."""
    found = trace.advantage.numpy()
    away = distance(found, rollouts.advantage)
    over = np.flatnonzero(away > allowed)
    if not len(over):
        yes = np.ones(rollouts.steps, dtype=bool)
        return Fit(rollouts.worst(away), yes, yes)
    step = rollouts.batch.step_index.numpy()[over]
    loose = np.zeros(rollouts.steps, dtype=bool)
    loose[step] = True
    gain = _gain(rollouts, trace, found)[step]
    bound = allowed[over] + _dust(rollouts, trace, scale, over) * gain
    dusty = away[over] <= bound
    away[over[dusty]] = 0
    misfit = np.zeros(rollouts.steps, dtype=bool)
    misfit[step[~dusty]] = True
    return Fit(rollouts.worst(away), ~misfit, ~loose)


def _gain(
    rollouts: Rollouts, trace: Trace, found: np.ndarray
) -> np.ndarray:
    """How much the last stage spreads the standardized scores. [S]"""
    before = trace.standardized.numpy()
    if found is before or np.array_equal(found, before):
        return np.ones(rollouts.steps)
    spreads = []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for values in (found, before):
            values = np.nan_to_num(values)
            spreads.append(rollouts.worst(values) + rollouts.worst(-values))
        gain = spreads[0] / spreads[1]
    return np.where(np.isfinite(gain), gain, 1.0)


@dataclass(eq=False)
class Judging:
    """The computations tried on some steps so far.

    wanted      if given, all others count as out
    leaders     likely to fit: run on every row at once
    fits        how each lies with the log
    advantages  float64 [R] of those that were run on every step and fit
    """

    rollouts: Rollouts
    places: int | None = None
    group_size: int | None = None
    wanted: frozenset[Computation] | None = None
    leaders: frozenset[Computation] = frozenset()
    fits: dict[Computation, Fit] = field(default_factory=dict)
    advantages: dict[Computation, np.ndarray] = field(default_factory=dict)
    _shared: dict[tuple, tuple[Fit, ...]] = field(default_factory=dict)
    _probes: dict[int, tuple[Rollouts, np.ndarray]] = field(
        default_factory=dict
    )
    _windows: dict[tuple, np.ndarray] = field(default_factory=dict)
    _same: dict[tuple, np.ndarray] = field(default_factory=dict)
    _two_tokens: dict[bool, np.ndarray] = field(default_factory=dict)

    @cached_property
    def facts(self) -> Facts:
        """What the rows allow to differ."""
        return facts_of(self.rollouts)

    @cached_property
    def wide(self) -> Facts:
        """What rows with these columns might differ in: what is tried has
        the same names in every part of a log."""
        has = self.rollouts.has
        return replace(
            self.facts,
            lone=True,
            no_eos="eos" in has,
            muted=bool(has & {"eos", "length"}),
        )

    @cached_property
    def allowed(self) -> np.ndarray:
        """How far each logged advantage may be off. float64 [R]."""
        logged = self.rollouts.advantage
        rounding = 0 if self.places is None else 0.51 * 10.0**-self.places
        size = np.abs(np.where(np.isfinite(logged), logged, 0))
        return rounding + ABSOLUTE + RELATIVE * size

    def same(self, computation: Computation) -> np.ndarray:
        """bool [S]: on these steps the replica is the correct engine."""
        c = computation
        key = (c.bug, c.stride, c.settings.group_size)
        if key not in self._same:
            self._same[key] = self._same_as_correct(c)
        return self._same[key]

    def _same_as_correct(self, computation: Computation) -> np.ndarray:
        rollouts, bug = self.rollouts, computation.bug
        b = rollouts.batch
        if bug == "partial_groups":
            return full_groups(rollouts, self.strides(computation).numpy())
        if bug == "rejected_rows" and self.facts.muted:
            differs = ~b.mask.any(-1).numpy()
        elif bug == "no_eos_outliers" and self.facts.no_eos:
            differs = ~b.eos.numpy()
        else:
            same = bug in ("rejected_rows", "no_eos_outliers", "")
            return np.full(rollouts.steps, same)
        return rollouts.total(differs.astype("int64")) == 0

    def strides(self, computation: Computation) -> Tensor:
        """int64 [S] the rows per prompt that strides are cut by."""
        b = self.rollouts.batch
        guess, given = computation.stride, computation.settings.group_size
        largest = torch.zeros_like(b.step_rows).scatter_reduce(
            0, b.step_index, b.prompt_rows, "amax"
        )
        if guess == "given":
            return torch.full_like(largest, int(given or 1))
        if guess == "power of two":
            above = (largest - 1).clamp(min=1).double().log2().floor()
            return 2 ** (above.long() + 1)
        if guess == "commonest":
            return self._commonest()
        if guess == "smallest":
            return largest.scatter_reduce(
                0, b.step_index, b.prompt_rows, "amin"
            )
        if guess == "twice":
            return 2 * largest
        more = {"one more": 1, "two more": 2, "one less": -1}
        return (largest + more.get(guess, 0)).clamp(min=1)

    def _commonest(self) -> Tensor:
        groups = self.rollouts.groups
        counts = (
            pd.DataFrame({"step": groups.step, "size": groups.size})
            .value_counts(["step", "size"])
            .reset_index()
            .sort_values(
                ["step", "count", "size"], ascending=[True, False, False]
            )
        )
        best = counts.drop_duplicates("step")["size"].to_numpy()
        return torch.from_numpy(best.astype("int64"))

    def try_all(
        self, tried: Iterable[Computation], steps: np.ndarray
    ) -> None:
        """Computes what is not yet known of these steps, bool [S]."""
        if not steps.any():
            return
        for computation in tried:
            key = self._key(computation)
            each = variants(computation)
            known = self._shared.get(key)
            if known is None:
                known = (Fit.unknown(self.rollouts.steps),) * len(each)
            missing = steps & np.isnan(known[0].residual)
            if missing.any():
                known = self._computed(computation, each, missing, known)
                self._shared[key] = known
            self.fits.update(zip(each, known))

    def _key(self, computation: Computation) -> tuple:
        settings = bare(computation, self.facts)
        return computation.bug, computation.stride, settings

    def _computed(
        self,
        computation: Computation,
        each: tuple[Computation, ...],
        steps: np.ndarray,
        known: tuple[Fit, ...],
    ) -> tuple[Fit, ...]:
        """The fits with `steps` filled in: taken over from the correct
        engine where the replica is no different, ruled out by a few
        groups, or computed."""
        fits = list(known)
        if computation.bug:
            same = steps & self.same(computation)
            if same.any():
                self.try_all([computation.correct], same)
                for i, one in enumerate(each):
                    taken = self.fits[one.correct].at(same)
                    fits[i] = fits[i].filled(same, taken)
                steps = steps & ~same
        cannot = steps & ~self._computable(computation)
        if cannot.any():
            out = Fit.out(int(cannot.sum()))
            fits = [fit.filled(cannot, out) for fit in fits]
            steps = steps & ~cannot
        alive = [self.wanted is None or c in self.wanted for c in each]
        probing = self.rollouts.batch.rows >= PROBED
        if steps.any() and probing and self.leaders.isdisjoint(each):
            steps, probed = self._probed(computation, each, steps, fits)
            alive = [a and b for a, b in zip(alive, probed)]
        if steps.any():
            part = self.rollouts.of_steps(steps)
            new = self._run(computation, each, part, steps, alive)
            out = Fit.out(part.steps)
            for i, fit in enumerate(new):
                if fit is not None:
                    fits[i] = fits[i].filled(steps, fit)
                elif self.wanted is not None and each[i] not in self.wanted:
                    fits[i] = fits[i].filled(steps, out)
        return tuple(fits)

    def _computable(self, computation: Computation) -> np.ndarray:
        """bool [S]: whitening needs two tokens."""
        if not computation.settings.whiten_tokens:
            return np.ones(self.rollouts.steps, dtype=bool)
        masked = computation.settings.mask_no_eos
        if masked not in self._two_tokens:
            b = self.rollouts.batch
            credited = b.mask.any(-1) & (b.eos | (not masked))
            tokens = (b.tokens * credited).numpy()
            self._two_tokens[masked] = self.rollouts.total(tokens) >= 2
        return self._two_tokens[masked]

    def _probed(
        self,
        computation: Computation,
        each: tuple[Computation, ...],
        steps: np.ndarray,
        fits: list[Fit],
    ) -> tuple[np.ndarray, list[bool]]:
        """Rules out what already fails on a few whole groups of a step.

        A row's number depends on its group alone, or, when `coupled`, is
        one straight line a step through such numbers: what fails there
        fails on the step. Fills `fits` where all is lost; returns the
        steps that are left and the variants alive on any of them.
        """
        shape = shape_of(computation)
        if shape is None:
            return steps, [True] * len(each)
        rows = self._probe_rows(computation)
        if rows.sum() * 2 > len(rows):
            return steps, [True] * len(each)
        part, rows = self._probe(rows, steps)
        if computation.coupled:
            shapes = variants(shape) if len(each) > 1 else (shape,)
            found = self._lines(shape, shapes, part, rows, steps)
        else:
            found = self._run(
                computation, each, part, steps, [True] * len(each), rows
            )
        if len(found) < len(each):
            found = found * len(each)
        left = np.zeros(int(steps.sum()), dtype=bool)
        alive = []
        for fit in found:
            left |= fit.fits
            alive.append(bool(fit.fits.any()))
        lost = steps.copy()
        lost[steps] = ~left
        for i, fit in enumerate(found):
            fits[i] = fits[i].filled(lost, fit.at(~left))
            if not alive[i]:
                keep = steps & ~lost
                fits[i] = fits[i].filled(keep, fit.at(left))
        return steps & ~lost, alive

    def _probe(
        self, rows: np.ndarray, steps: np.ndarray
    ) -> tuple[Rollouts, np.ndarray]:
        """The rollouts of these rows in these steps, and which they are."""
        if not steps.all():
            rows = rows & self.rollouts.rows_of(steps)
            return self.rollouts.of_rows(rows), rows
        key = id(rows)
        if key not in self._probes:
            self._probes[key] = (self.rollouts.of_rows(rows), rows)
        return self._probes[key]

    def _probe_rows(self, computation: Computation) -> np.ndarray:
        """bool [R]: a few whole groups, or strides, of every step."""
        if computation.bug != "partial_groups":
            return self._group_rows
        key = (computation.stride, computation.settings.group_size)
        if key not in self._windows:
            self._windows[key] = self._stride_rows(computation)
        return self._windows[key]

    @cached_property
    def _group_rows(self) -> np.ndarray:
        """The first two groups of each step whose rewards vary, and the
        first in which some row is muted."""
        rollouts = self.rollouts
        groups, b = rollouts.groups, rollouts.batch
        code = b.prompt_index.numpy()
        reward = b.reward.numpy()
        count = len(groups.size)
        varied = reward != reward[groups.first][code]
        varies = np.bincount(code[varied], minlength=count) > 0
        muted = ~(b.eos & b.mask.any(-1)).numpy()
        odd = np.bincount(code[muted], minlength=count) > 0
        taken = _first_of_step(varies, groups.step, 2)
        taken |= _first_of_step(odd & varies, groups.step, 1)
        taken |= _first_of_step(np.ones(count, bool), groups.step, 1)
        return taken[code]

    def _stride_rows(self, computation: Computation) -> np.ndarray:
        """Some strides of each step, from the first that is no group."""
        rollouts = self.rollouts
        groups, b = rollouts.groups, rollouts.batch
        size = self.strides(computation).numpy()
        place = groups.first - rollouts.starts[groups.step]
        own = size[groups.step]
        whole = (groups.size == own) & (place % own == 0)
        start = np.full(rollouts.steps, np.iinfo("int64").max)
        np.minimum.at(start, groups.step[~whole], place[~whole])
        full = b.step_rows.numpy() // size
        first = np.minimum(start // size, np.maximum(full - 1, 0)) * size
        last = np.minimum(first + size * (1 + 16 // size), full * size)
        last = np.where(full == 0, b.step_rows.numpy(), last)
        step, where = b.step_index.numpy(), b.place.numpy()
        return (where >= first[step]) & (where < last[step])

    def _lines(
        self,
        shape: Computation,
        shapes: tuple[Computation, ...],
        part: Rollouts,
        rows: np.ndarray,
        steps: np.ndarray,
    ) -> list[Fit]:
        """Whether the log is a straight line through the shape's numbers,
        on each step: [Fit] a variant of the shape."""
        sizes = self._sizes(shape, steps)
        batch = under(part.batch, shape.settings, sizes)
        trace = run(without_loss(shape.engine), batch)
        allowed = 4 * self.allowed[rows]
        found = []
        for one in shapes:
            extra = one.settings.eps - shape.settings.eps
            scale = trace.scale + extra
            x = (trace.standardized * (trace.scale / scale)).numpy()
            found.append(
                _line_fit(part, trace, x, scale.numpy(), allowed)
            )
        return found

    def _sizes(
        self, computation: Computation, steps: np.ndarray
    ) -> Tensor | None:
        if computation.bug != "partial_groups":
            return None
        return self.strides(computation)[torch.from_numpy(steps)]

    def _run(
        self,
        computation: Computation,
        each: tuple[Computation, ...],
        part: Rollouts,
        steps: np.ndarray,
        alive: list[bool],
        rows: np.ndarray | None = None,
    ) -> list[Fit]:
        """One engine run, and its numbers under every eps."""
        allowed = self.allowed
        if rows is not None:
            allowed = allowed[rows]
        elif not steps.all():
            allowed = allowed[self.rollouts.rows_of(steps)]
        sizes = self._sizes(computation, steps)
        batch = under(part.batch, computation.settings, sizes)
        engine = without_loss(computation.engine)
        trace = run(engine, batch)
        if rows is not None and len(each) > 1:
            away = _beyond_eps(part, trace, computation.settings.eps, allowed)
            if (away > 0).all():
                no = np.zeros(part.steps, dtype=bool)
                return [Fit(away, no, no)] * len(each)
        fits = []
        for variant, wanted in zip(each, alive):
            if not wanted:
                fits.append(None)
                continue
            extra = variant.settings.eps - computation.settings.eps
            scale, now = trace.scale, trace
            if extra:
                scale = trace.scale + extra
                rescaled = trace.standardized * (trace.scale / scale)
                found = engine.advantage(batch, rescaled, trace.credited)
                now = replace(trace, standardized=rescaled, advantage=found)
            fits.append(fit_of(part, now, scale.numpy(), allowed))
            if rows is None and steps.all() and fits[-1].fits.any():
                self.advantages[variant] = now.advantage.numpy()
        return fits


@lru_cache(maxsize=65536)
def shape_of(computation: Computation) -> Computation | None:
    """A computation within groups through whose numbers the log must be a
    straight line on every step; None when there is none."""
    c, s = computation, computation.settings
    if not c.coupled:
        return c
    if c.bug == "double_normalization":
        c = replace(c, bug="")
        return c if not c.coupled else None
    if s.baseline == "batch_mean" and s.scale != "group_std":
        local = replace(s, baseline="none", scale="none")
        return replace(c, settings=replace(local, whiten_tokens=False))
    if s.baseline == "batch_mean":
        return None
    local = replace(s, scale="none", whiten_tokens=False)
    return replace(c, settings=local)


def _beyond_eps(
    part: Rollouts, trace: Trace, eps: float, allowed: np.ndarray
) -> np.ndarray:
    """How far the log lies outside what any eps gives, 0 where inside. [S]

    An advantage only grows as eps shrinks, so it lies between that of the
    largest eps and that of the smallest.
    """
    scale = trace.scale.numpy()
    now = trace.advantage.numpy()
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        least = now * (scale / (scale - eps + max(EPS)))
        most = now * (scale / np.maximum(scale - eps, 0))
        low, high = np.minimum(least, most), np.maximum(least, most)
        logged = part.advantage
        away = np.maximum(low - logged, logged - high)
        away = np.where(np.isfinite(away), away, 0)
    over = np.flatnonzero(away > allowed)
    smallest = np.maximum(scale - eps, min(e for e in EPS if e))
    bound = allowed[over] + _dust(part, trace, smallest, over)
    inside = away <= allowed
    inside[over] = away[over] <= bound
    return part.worst(np.where(inside, 0, away))


def _first_of_step(
    wanted: np.ndarray, step: np.ndarray, count: int
) -> np.ndarray:
    """bool [G]: one of the first `count` wanted groups of its step."""
    at = np.flatnonzero(wanted)
    order = at[np.argsort(step[at], kind="stable")]
    sorted_step = step[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_step, sorted_step)
    taken = np.zeros(len(wanted), dtype=bool)
    taken[order[rank < count]] = True
    return taken


def _line_fit(
    part: Rollouts,
    trace: Trace,
    x: np.ndarray,
    scale: np.ndarray,
    allowed: np.ndarray,
) -> Fit:
    """How far the credited rows are from the best line through x. [S]"""
    use = trace.credited.numpy() & np.isfinite(x)
    use &= np.isfinite(part.advantage)
    weight = use.astype("float64")
    x, y = np.where(use, x, 0), np.where(use, part.advantage, 0)
    n = np.maximum(part.total(weight), 1)
    step = part.batch.step_index.numpy()
    dx = np.where(use, x - (part.total(x) / n)[step], 0)
    dy = np.where(use, y - (part.total(y) / n)[step], 0)
    power = part.total(dx * dx)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.where(power > 0, part.total(dx * dy) / power, 0)
        away = np.abs(dy - slope[step] * dx)
        rows = np.arange(len(x))
        dust = _dust(part, trace, scale, rows) * np.abs(slope)[step]
        bound = 4 * part.worst(dust)[step] + allowed
        out = use & ~(away <= bound)
    away = np.where(np.isfinite(away), away, 0)
    fits = part.total(out.astype("int64")) == 0
    return Fit(part.worst(away), fits, fits)


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: parts are small, and a pool of threads that waits
    for a busy machine costs more than it gives."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def judged(
    rollouts: Rollouts,
    places: int | None = None,
    group_size: int | None = None,
    focus: Iterable[Computation] = (),
) -> Judging:
    """All computations that matter for these steps, tried.

    The correct engine comes first; a replica is tried under every named
    estimator, and under the rest where nothing correct fits. `focus` is
    tried on every step.
    """
    work = Judging(rollouts, places, group_size)
    every = np.ones(rollouts.steps, dtype=bool)
    facts = work.wide
    work.try_all(computations("", 1, facts), every)
    for tier in (2, 3):
        open_steps = ~fitting(work, "")
        if open_steps.any():
            work.try_all(computations("", tier, facts), open_steps)
    names = replicas(rollouts.has)
    for name in names:
        work.try_all(computations(name, 1, facts), every)
    for tier in (2, 3):
        open_steps = ~fitting(work)
        for name in names:
            work.try_all(computations(name, tier, facts), open_steps)
    _try_strides(work, names)
    work.try_all(focus, every)
    return work


def fitting(work: Judging, bug: str | None = None) -> np.ndarray:
    """bool [S]: a computation fits, of one engine or of any."""
    found = np.zeros(work.rollouts.steps, dtype=bool)
    for computation, fit in work.fits.items():
        if bug is None or computation.bug == bug:
            found |= fit.fits
    return found


def _try_strides(work: Judging, names: tuple[str, ...]) -> None:
    """Other guesses at the group size, where nothing fits yet."""
    if "partial_groups" not in names:
        return
    guesses = [*STRIDES]
    if work.group_size:
        guesses.insert(0, "given")
    plain = computations("partial_groups", 1, work.wide)
    tried: list[np.ndarray] = []
    for guess in guesses:
        first = restrided(plain[0], guess, work.group_size)
        sizes = work.strides(first).numpy()
        known = [sizes == other for other in tried]
        tried.append(sizes)
        if guess == STRIDES[0]:
            continue
        open_steps = ~fitting(work)
        if known:
            open_steps &= ~np.logical_or.reduce(known)
        for tier in (1, 2):
            each = computations("partial_groups", tier, work.wide)
            strided = [restrided(c, guess, work.group_size) for c in each]
            work.try_all(strided, open_steps)


@lru_cache(maxsize=65536)
def restrided(
    computation: Computation, guess: str, group_size: int | None
) -> Computation:
    """The same computation with another guess at the stride."""
    settings = computation.settings
    if guess == "given":
        settings = replace(settings, group_size=group_size)
    return replace(computation, stride=guess, settings=settings)
