"""Search: which readings and which suspects fit which steps.

Everything is tried on a sample of whole steps; what fits some of them is
computed for all. Steps that nothing fits are sampled again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging import space
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.fit import NONE, REWARDS, WRITTEN, Fit, Ruler, distance
from gradebook.logs.judging.reading import Asked, Reading, plainness
from gradebook.logs.judging.space import Rows
from gradebook.logs.judging.suspects import Computation, Suspect
from gradebook.logs.logged_steps import LoggedSteps

SAMPLE = 1_024
"""About so many rows are searched at once, in whole steps."""

KEPT = 16
"""So many candidates that fit the sample are computed for a large log."""

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them."""

Tick = Callable[[], object]


def untold() -> None:
    """Progress that nobody is told of."""


@dataclass(eq=False)
class Candidates:
    """How readings and suspects lie with the steps."""

    ruler: Ruler
    asked: Asked
    tick: Tick = untold
    readings: dict[Reading, Fit] = field(default_factory=dict)
    suspects: dict[Suspect, Fit] = field(default_factory=dict)
    nearest: tuple[Reading, float] | None = None
    fits: dict[Computation, Fit] = field(default_factory=dict)

    @property
    def steps(self) -> LoggedSteps:
        return self.ruler.steps

    def fit(self, computation: Computation) -> Fit:
        if computation not in self.fits:
            self.tick()
            self.fits[computation] = bugs.fit(self.ruler, computation)
        return self.fits[computation]

    def level(self) -> np.ndarray:
        """int [S] the best level of any reading."""
        levels = [fit.level for fit in self.readings.values()]
        return np.min([np.full(self.steps.step_count, NONE), *levels], axis=0)

    def fitting(self, at: np.ndarray, level: int) -> list[Reading]:
        """Readings that fit all the steps `at`, int64 or bool, at the best level
        that any does, up to this one."""
        worst = {r: fit.level[at].max(initial=0) for r, fit in self.readings.items()}
        best = min(worst.values(), default=NONE)
        named = [r for r in worst if worst[r] == best <= level]
        return sorted(named, key=plainness)


def views(steps: LoggedSteps, asked: Asked) -> Iterator[Rows]:
    """The rows as readings may see them, the usual ways first."""
    counting = ["flagged"]
    if not bool(steps.batch.eos.all()):
        counting.append("ended")
    if not Rows(steps).counted.all():
        counting.append("all")
    masked = asked.declared.get("mask_no_eos")
    if masked is not None:
        counting = ["ended"] if masked else ["flagged", "all"]
    clip = asked.declared.get("reward_clip")
    plain = Reading("none", "none", clip=clip)
    ways = [replace(plain, grouping=name) for name in space.groupings(steps)]
    if clip is None:
        largest = float(np.abs(steps.reward).max(initial=0))
        ways += [replace(plain, clip=clip) for clip in CLIPS if largest > clip]
    for way, rows in product(ways, counting):
        yield Rows(steps, replace(way, rows=rows))


def some_steps(steps: LoggedSteps, left: np.ndarray, rows: int = SAMPLE) -> np.ndarray:
    """Of the steps `left` some of about so many rows, spread evenly, with the first
    that lost rows. bool [S]"""
    size = steps.batch.step_rows.numpy()
    places = np.flatnonzero(left)
    if size[places].sum() <= 2 * rows:
        return left
    count = max(int(rows / max(size[places].mean(), 1)), 1)
    b = steps.batch
    flagged = steps.total(~(b.eos & b.scored & (b.tokens > 0)).numpy()) > 0
    short = size != np.bincount(size).argmax()
    chosen = np.zeros(len(size), dtype=bool)
    chosen[places[np.linspace(0, len(places) - 1, count).astype(int)]] = True
    for odd in (short, flagged):
        chosen[np.flatnonzero(left & odd)[:1]] = True
    return chosen


def quiet(steps: LoggedSteps) -> np.ndarray:
    """bool [S]: the rewards of every prompt are equal, and all advantages
    are 0: whatever was computed, this step tells nothing."""
    logged = np.nan_to_num(np.abs(steps.advantage), nan=1.0)
    reward = steps.reward
    first = reward[steps.groups.first][steps.prompt]
    flat = steps.worst(np.abs(reward - first) - 1e-6 * np.abs(reward)) <= 0
    return (steps.worst(logged) <= 1e-5) & flat


def search(
    ruler: Ruler,
    asked: Asked,
    tick: Tick = untold,
    only: Callable[[Reading], bool] = lambda reading: True,
) -> Candidates:
    """The readings that fit some step, with their fit on every step."""
    candidates = Candidates(ruler, asked, tick)
    left = ~quiet(ruler.steps)
    for _ in range(4):
        part, before = ruler.of_steps(some_steps(ruler.steps, left)), left.sum()
        if not before:
            break
        for reading in _fitting(part, candidates, only):
            candidates.readings[reading] = candidates.fit(reading)
        left &= candidates.level() > WRITTEN
        if left.sum() == before or part.steps.step_count == before:
            break
    return candidates


def _fitting(
    ruler: Ruler, candidates: Candidates, only: Callable[[Reading], bool]
) -> list[Reading]:
    """Readings that fit some of these steps, best first. Unusual views are looked
    at where steps are left."""
    asked, fits = candidates.asked, dict[Reading, Fit]()
    usable = left = ~quiet(ruler.steps)
    # Where all advantages are small, anything small comes near; a step that was
    # normalized over its rows has larger ones.
    sizes = np.nan_to_num(np.abs(ruler.steps.advantage))
    large = usable & (ruler.steps.worst(sizes) > 0.5)
    for rows in views(ruler.steps, asked):
        candidates.tick()
        view, clip = rows.view, asked.declared.get("reward_clip")
        if not left.any() and (view.grouping != "by prompt" or view.clip != clip):
            break
        for family in space.families(rows, asked.declared.get("eps")):
            for place, reading in enumerate(filter(only, family)):
                near = ruler.fit(rows.compute(reading))
                fits_some = bool((near.level <= REWARDS).any())
                if fits_some:
                    fits[reading] = near
                share = near.fitting.sum() / ruler.steps.rows
                is_plain = place == 0 and not reading.second
                nearest = candidates.nearest or (reading, -1.0)
                if (fits_some or is_plain) and share > nearest[1]:
                    candidates.nearest = reading, share
                if reading.second and not (near.near[large] == 1).any():
                    break
        for near in fits.values():
            left = left & ~near.good

    def merit(reading: Reading) -> tuple:
        level = fits[reading].level[usable]
        plain = not asked.wanted(reading), *plainness(reading)
        return -(level <= WRITTEN).sum(), level.max(initial=0), *plain

    best = sorted(fits, key=merit)
    if ruler is candidates.ruler:
        candidates.fits.update(fits.items())
        return best
    kept = {r.estimator: r for r in reversed(best)}  # one of each name, and more
    return list(dict.fromkeys((*best[:KEPT], *kept.values())))


def search_bugs(
    candidates: Candidates, at: np.ndarray, beside: Sequence[Reading] | None = None
) -> None:
    """Adds the suspects that fit some of the steps `at`, bool [S]: those that the
    readings `beside` them would be under a condition, or any."""
    if not at.any():
        return
    ruler, asked = candidates.ruler, candidates.asked
    part = ruler.of_steps(some_steps(ruler.steps, at, SAMPLE // 2))
    fits: dict[Suspect, Fit] = {}
    if beside is None:
        tried = _under_all_settings(part.steps, asked, fits)
    else:
        table = bugs.settings_beside(asked, beside, ruler.steps)
        tried = bugs.suspects(part.steps, table, group_size=asked.group_size)
    for each in tried:
        candidates.tick()
        fits[each] = bugs.fit(part, each)
    best = sorted(
        (s for s in fits if fits[s].good.any()),
        key=lambda s: (-int(fits[s].good.sum()), int(fits[s].level.max())),
    )
    chosen: dict[tuple[str, bool], Suspect] = {}
    for each in best:  # of a bug one that is as near as the correct engine, and one not
        if (each.bug, False) not in chosen or (each.bug, True) not in chosen:
            correct = bugs.fit(part, each.correct)
            same = bool((correct.level <= fits[each].level).all())
            chosen.setdefault((each.bug, same), each)
    for suspect in list(chosen.values())[:KEPT]:
        candidates.suspects[suspect] = candidates.fit(suspect)


def _under_all_settings(
    steps: LoggedSteps, asked: Asked, fits: dict[Suspect, Fit]
) -> Iterator[Suspect]:
    """Each bug under few settings; where most rows come near, with every ddof and
    eps, until some fit every step. `fits` is how those that were yielded lie."""
    lone = bool((steps.groups.size == 1).any())
    whitened = (bugs.WHITENED,) if "length" in steps.has else ()
    for shapes in ((*bugs.SHAPES, *bugs.RARE), *whitened):
        table, done = bugs.conventions(asked, lone, shapes), set[str]()
        like: dict[tuple, Suspect] = {}
        for each in bugs.suspects(steps, table, group_size=asked.group_size):
            if each.bug in done:
                continue
            yield each
            near = fits[each].near.mean()
            if fits[each].good.all():
                done.add(each.bug)
            elif near > 0.6 and each.settings.scale.endswith("_std"):
                shape = replace(each.settings, ddof=1, eps=0.0)
                like.setdefault((each.bug, shape), each)
        if done:
            return
        for each, (ddof, eps) in product(like.values(), bugs.DETAILS):
            details = {"ddof": ddof, "eps": eps, **asked.declared}
            other = replace(each, settings=replace(each.settings, **details))
            if each.bug not in done:
                yield other
                if fits[other].good.all():
                    done.add(each.bug)
        if done:
            return


def find_lost_digits(candidates: Candidates, at: np.ndarray) -> None:
    """Adds the bugs that round, each beside the reading that fits all other rows of
    the steps `at`, where its evidence stands in those that it alone explains."""
    ruler, steps = candidates.ruler, candidates.steps
    columns = {n: getattr(steps, n) for n in ("prompt", "reward", "advantage")}
    log = pd.DataFrame(columns, copy=False)
    for record in map(bug, BUGS):
        if record.unexplained is None or record.evidence is None:
            continue
        rows = record.unexplained(log)
        if not rows.any() or rows.all():
            continue

        def takes_part(r: Reading, record: Bug = record) -> bool:
            return all(getattr(r, k) == v for k, v in record.reading.items())

        part = replace(ruler, ignored=rows)
        others = search(part, candidates.asked, candidates.tick, takes_part)
        fits, beside = others.readings, dict[Suspect, Fit]()
        # Where none fits all steps, the reading that fits most.
        order = sorted(fits, key=lambda r: (-fits[r].good[at].sum(), plainness(r)))
        for r in others.fitting(at, WRITTEN)[:8] or order[:1]:
            computed, good = bugs.compute(steps, r), fits[r].good
            off = distance(computed.values, steps.advantage) > ruler.base
            odd = rows & off & good[steps.step_of]
            rounded = log.assign(odd=odd, baseline=computed.baseline)
            shown = record.evidence(rounded, r.settings)
            good &= (steps.total(odd & (shown == 0)) == 0) & (steps.total(odd) > 0)
            if good.any():
                lost = np.full(steps.step_count, np.nan)
                level = np.where(good, WRITTEN, NONE)
                suspect = Suspect(record.name, r.settings, (), r, 2 in shown)
                beside[suspect] = Fit(level, lost, good.astype(float), good)
        for suspect in sorted(beside, key=lambda s: not s.is_shown)[:1]:
            candidates.suspects[suspect] = beside[suspect]
