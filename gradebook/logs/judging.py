"""Judging: which computations give the logged advantages, step by step.

Every computation is one engine run over all steps at once; the distance
from the log is then reduced to one number a step. Letters: R rows, S steps.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from gradebook.bugs import BUGS
from gradebook.core.lazy_pandas import pd
from gradebook.engine.pipeline import run
from gradebook.logs.candidates.rollouts import Rollouts, under
from gradebook.logs.computations import (
    CLIPS,
    NEEDS,
    STRIDES,
    TRACELESS,
    Computation,
    Facts,
    altered,
    bare,
    computations,
    variants,
)
from gradebook.logs.fits import (
    Fit,
    all_filled,
    fit_of,
    tolerance,
    without_loss,
)
from gradebook.logs.probes import (
    PROBED,
    beyond_eps,
    has_own_line,
    line_fit,
    scores,
    shape_of,
    some_groups,
    some_strides,
)


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
        if name != TRACELESS and has.intersection(NEEDS.get(name, ("reward",)))
    )


@dataclass(eq=False)
class Judging:
    """The computations tried on some steps so far.

    wanted   if given, all others count as out
    leaders  likely to fit: run on every row at once
    fits     how each lies with the log
    """

    rollouts: Rollouts
    places: int | None = None
    group_size: int | None = None
    wanted: frozenset[Computation] | None = None
    leaders: frozenset[Computation] = frozenset()
    fits: dict[Computation, Fit] = field(default_factory=dict)
    _advantages: dict[tuple, np.ndarray] = field(default_factory=dict)
    _shared: dict[tuple, tuple[Fit, ...]] = field(default_factory=dict)
    _fitted: dict[str, np.ndarray] = field(default_factory=dict)
    _probes: dict[int, tuple[Rollouts, np.ndarray]] = field(
        default_factory=dict
    )
    _strides: dict[tuple, tuple[int, Tensor]] = field(default_factory=dict)
    _windows: dict[int, np.ndarray] = field(default_factory=dict)
    _same: dict[tuple, np.ndarray] = field(default_factory=dict)
    _straight: dict[tuple, Fit] = field(default_factory=dict)
    _shapes: dict[tuple, list[Fit]] = field(default_factory=dict)
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
        """How far each logged advantage may be off, rounded as it was.
        float64 [R]."""
        rounding = 0 if self.places is None else 0.51 * 10.0**-self.places
        return rounding + tolerance(self.rollouts.advantage)

    def same(self, computation: Computation) -> np.ndarray:
        """bool [S]: on these steps the replica is the correct engine."""
        key = (computation.bug, self._cut(computation))
        if key not in self._same:
            self._same[key] = self._same_as_correct(computation)
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
        self._cut(computation)
        return self._strides[_guess(computation)][1]

    def _cut(self, computation: Computation) -> int:
        """A number for the way the steps are cut into strides: guesses
        that come to the same sizes have the same one; -1 without strides.
        """
        if computation.bug != "partial_groups":
            return -1
        key = _guess(computation)
        if key not in self._strides:
            sizes = self._guessed(*key)
            alike = (
                (number, known)
                for number, known in self._strides.values()
                if torch.equal(known, sizes)
            )
            self._strides[key] = next(alike, (len(self._strides), sizes))
        return self._strides[key][0]

    def _guessed(self, guess: str, given: int | None) -> Tensor:
        b = self.rollouts.batch
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

    def try_all(self, tried: Iterable[Computation], steps: np.ndarray) -> None:
        """Computes what is not yet known of these steps, bool [S]."""
        if not steps.any():
            return
        for computation in tried:
            each = variants(computation)
            key = (self._key(computation), self._wants(each))
            known = self._shared.get(key)
            if known is None:
                known = (Fit.unknown(self.rollouts.steps),) * len(each)
            missing = steps & np.isnan(known[0].residual)
            if missing.any():
                known = self._computed(computation, each, missing, known)
                self._shared[key] = known
                fitting = self.fitted(computation.bug)
                for fit in known:
                    fitting |= fit.fits
            self.fits.update(zip(each, known))

    def fitted(self, bug: str) -> np.ndarray:
        """bool [S]: a computation of this engine fits, "" for the correct
        one."""
        no = np.zeros(self.rollouts.steps, dtype=bool)
        return self._fitted.setdefault(bug, no)

    def _key(self, computation: Computation) -> tuple:
        """Equal for computations that give equal numbers on these rows."""
        cut, facts = self._cut(computation), self.facts
        if cut >= 0:
            lone = facts.muted or bool((self.strides(computation) < 2).any())
            facts = replace(facts, lone=lone)
        return computation.bug, cut, bare(computation, facts)

    def _wants(self, each: tuple[Computation, ...]) -> tuple[bool, ...]:
        return tuple(self.wanted is None or c in self.wanted for c in each)

    def advantage(self, computation: Computation) -> np.ndarray | None:
        """float64 [R] of one that was run on every step, if it was kept."""
        return self._advantages.get(self._key(computation))

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
            fits = all_filled(fits, cannot, out)
            steps = steps & ~cannot
        alive = list(self._wants(each))
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
        rows, every = self._probe_rows(computation), [True] * len(each)
        if rows.sum() * 2 > len(rows):
            return steps, every
        steps = self._bent(computation, steps, fits)
        shape = shape_of(computation)
        if shape is None or not steps.any():
            return steps, every
        part, rows = self._probe(rows, steps)
        if computation.coupled:
            shapes = variants(shape) if len(each) > 1 else (shape,)
            key = (self._key(shape), len(shapes), steps.tobytes())
            if key not in self._shapes:
                of = part.batch.step_index
                found = self._lines(shape, shapes, part, rows, steps, of)
                self._shapes[key] = found
            found = self._shapes[key]
        else:
            found = self._run(computation, each, part, steps, every, rows)
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

    def _bent(
        self,
        computation: Computation,
        steps: np.ndarray,
        fits: list[Fit],
    ) -> np.ndarray:
        """The steps on which the log is a straight line through the scores
        of each group that is looked at; fills `fits` on the others."""
        if not has_own_line(computation):
            return steps
        s = computation.settings
        key = (self._cut(computation), s.reward_clip, s.mask_no_eos)
        if key not in self._straight:
            every = np.ones(self.rollouts.steps, dtype=bool)
            few = self.rollouts.batch.rows <= 4 * PROBED
            rows = self._every_row if few else self._probe_rows(computation)
            part, rows = self._probe(rows, every)
            shape, sizes = scores(computation), self._sizes(computation, every)
            of = computation.engine.group(under(part.batch, s, sizes))
            self._straight[key] = self._lines(
                shape, (shape,), part, rows, every, of
            )[0]
        line = self._straight[key]
        lost = steps & ~line.fits
        if lost.any():
            fits[:] = all_filled(fits, lost, line.at(lost))
        return steps & ~lost

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
        key = self._cut(computation)
        if key not in self._windows:
            sizes = self.strides(computation).numpy()
            self._windows[key] = some_strides(self.rollouts, sizes)
        return self._windows[key]

    @cached_property
    def _every_row(self) -> np.ndarray:
        return np.ones(self.rollouts.batch.rows, dtype=bool)

    @cached_property
    def _group_rows(self) -> np.ndarray:
        return some_groups(self.rollouts)

    def _lines(
        self,
        shape: Computation,
        shapes: tuple[Computation, ...],
        part: Rollouts,
        rows: np.ndarray,
        steps: np.ndarray,
        of: Tensor,
    ) -> list[Fit]:
        """Whether the log is a straight line through the shape's numbers
        in each step or group `of`, int64 [R]: [Fit] a variant of the shape.
        """
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
                line_fit(part, trace, x, scale.numpy(), allowed, of.numpy())
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
            away = beyond_eps(part, trace, computation.settings.eps, allowed)
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
            kept = fits[-1].fits.any() or variant in self.leaders
            if rows is None and steps.all() and kept:
                self._advantages[self._key(variant)] = now.advantage.numpy()
        return fits


def _guess(computation: Computation) -> tuple[str, int | None]:
    return computation.stride, computation.settings.group_size


@contextmanager
def undisturbed() -> Iterator[None]:
    """One torch thread: parts are small, and a pool of threads that waits
    for a busy machine costs more than it gives. And a collector of garbage
    that leaves alone what was there before: torch and pandas are half a
    million objects, and a look at all of them costs as much as a search.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    free = not gc.get_freeze_count()  # the app's server has frozen it for good
    if free:
        gc.freeze()
    try:
        yield
    finally:
        if free:
            gc.unfreeze()
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
    names = ("", *BUGS) if bug is None else (bug,)
    return np.logical_or.reduce([work.fitted(name) for name in names])


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
        settings = altered(settings, group_size=group_size)
    return replace(computation, stride=guess, settings=settings)
