"""Search: which computations and which suspects fit which steps.

Everything is tried on a sample of whole steps; what fits some of them is
computed for all. Steps that nothing fits are sampled again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.vocabulary import SCALES
from gradebook.logs.judging import space
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.computation import Computation, plainness
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import NONE, REWARDS, WRITTEN, Fit, Ruler, distance
from gradebook.logs.judging.space import Runs
from gradebook.logs.judging.suspects import Candidate, Suspect
from gradebook.logs.logged_steps import LoggedSteps

SAMPLE = 1_024
"""About so many rows are searched at once, in whole steps."""

KEPT = 16
"""So many candidates that fit the sample are computed for a large log."""

Tick = Callable[[], object]


def untold() -> None:
    """No progress callback."""


@dataclass(eq=False)
class Candidates:
    """How computations and suspects fit the steps."""

    ruler: Ruler
    declaration: Declaration
    tick: Tick = untold
    computations: dict[Computation, Fit] = field(default_factory=dict)
    suspects: dict[Suspect, Fit] = field(default_factory=dict)
    nearest: tuple[Computation, float] | None = None
    fits: dict[Candidate, Fit] = field(default_factory=dict)

    @property
    def steps(self) -> LoggedSteps:
        return self.ruler.steps

    def fit(self, candidate: Candidate) -> Fit:
        if candidate not in self.fits:
            self.tick()
            self.fits[candidate] = bugs.fit(self.ruler, candidate)
        return self.fits[candidate]

    def level(self) -> np.ndarray:
        """int [S] the best level of any computation."""
        levels = [fit.level for fit in self.computations.values()]
        return np.min([np.full(self.steps.step_count, NONE), *levels], axis=0)

    def fitting(self, at: np.ndarray, level: int) -> list[Computation]:
        """Computations that fit every step in `at`, int64 or bool. Only those at the
        best level that any reaches count, and it must not exceed `level`."""
        fits = self.computations.items()
        worst = {c: fit.level[at].max(initial=0) for c, fit in fits}
        best = min(worst.values(), default=NONE)
        named = [c for c in worst if worst[c] == best <= level]
        return sorted(named, key=plainness)


def views(steps: LoggedSteps, declaration: Declaration) -> Iterator[Runs]:
    """The runs for each way that computations may see the rows, the usual ways
    first."""
    clip = declaration.settings.get("reward_clip")
    counting = _counting(steps, declaration)
    for view, (ended, all_rows) in product(space.groupings(steps), counting):
        yield Runs(steps, replace(view, all_rows=all_rows), ended, clip)


FLAGGED, ENDED, ALL = (False, False), (True, False), (False, True)
"""Which rows count, as (rows without EOS are left out, all rows count)."""


def _counting(steps: LoggedSteps, declaration: Declaration) -> list[tuple[bool, bool]]:
    """The ways to count rows that may matter in this log, the usual one first."""
    masked = declaration.settings.get("mask_no_eos")
    if masked is not None:
        return [ENDED] if masked else [FLAGGED, ALL]
    counting = [FLAGGED]
    if not bool(steps.batch.eos.all()):
        counting.append(ENDED)
    if not bool(Runs(steps).counted.all()):
        counting.append(ALL)
    return counting


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
    are 0. Such a step fits every computation, so it decides nothing."""
    logged = np.nan_to_num(np.abs(steps.advantage), nan=1.0)
    reward = steps.reward
    first = reward[steps.groups.first][steps.prompt]
    flat = steps.worst(np.abs(reward - first) - 1e-6 * np.abs(reward)) <= 0
    return (steps.worst(logged) <= 1e-5) & flat


def search(
    ruler: Ruler,
    declaration: Declaration,
    tick: Tick = untold,
    only: Callable[[Computation], bool] = lambda computation: True,
) -> Candidates:
    """The computations that fit some step, with their fit on every step."""
    candidates = Candidates(ruler, declaration, tick)
    left = ~quiet(ruler.steps)
    for _ in range(4):
        part, before = ruler.of_steps(some_steps(ruler.steps, left)), left.sum()
        if not before:
            break
        for computation in _fitting(part, candidates, only):
            candidates.computations[computation] = candidates.fit(computation)
        left &= candidates.level() > WRITTEN
        if left.sum() == before or part.steps.step_count == before:
            break
    return candidates


def _fitting(
    ruler: Ruler, candidates: Candidates, only: Callable[[Computation], bool]
) -> list[Computation]:
    """Computations that fit some of these steps, best first. Unusual views are
    tried only if some steps are still unexplained."""
    declaration, fits = candidates.declaration, dict[Computation, Fit]()
    left = ~quiet(ruler.steps)
    for runs in views(ruler.steps, declaration):
        candidates.tick()
        if not left.any() and runs.view.regroups:
            break
        _try_view(ruler, candidates, runs, only, fits)
        for near in fits.values():
            left = left & ~near.good
    best = _by_merit(ruler, candidates, fits)
    if ruler is candidates.ruler:
        candidates.fits.update(fits.items())
        return best
    kept = {c.estimator: c for c in reversed(best)}  # one of each name, and more
    return list(dict.fromkeys((*best[:KEPT], *kept.values())))


def _try_view(
    ruler: Ruler,
    candidates: Candidates,
    runs: Runs,
    only: Callable[[Computation], bool],
    fits: dict[Computation, Fit],
) -> None:
    """Adds the computations of one view that fit some step to `fits`."""
    # If all advantages are small, any small number is near them. A step that was
    # normalized over its rows has larger advantages.
    sizes = np.nan_to_num(np.abs(ruler.steps.advantage))
    usable = ~quiet(ruler.steps)
    large = usable & (ruler.steps.worst(sizes) > 0.5)
    declared = candidates.declaration.settings.get("eps")
    for family in space.families(runs, declared):
        in_reach = True
        for place, computation in enumerate(filter(only, family)):
            if not in_reach and computation.eps != declared:
                continue
            numbers = runs.compute(computation)
            near = ruler.fit(numbers)
            if fits_some := bool((near.level <= REWARDS).any()):
                fits[computation] = near
            if fits_some or (place == 0 and computation.second is None):
                share = near.fitting.sum() / ruler.steps.rows
                if candidates.nearest is None or share > candidates.nearest[1]:
                    candidates.nearest = computation, share
            if computation.second and not (near.near[large] == 1).any():
                break  # no eps brings a second normalization near
            if place == 0:
                is_whitened = computation.second is not None
                in_reach = not ruler.out_of_reach(numbers, is_whitened)[usable].all()


def _by_merit(
    ruler: Ruler, candidates: Candidates, fits: dict[Computation, Fit]
) -> list[Computation]:
    """Sorted by the number of steps they fit, then by distance, then declared first."""
    usable = ~quiet(ruler.steps)

    def merit(c: Computation) -> tuple:
        level = fits[c].level[usable]
        plain = not candidates.declaration.allows(c), *plainness(c)
        return -(level <= WRITTEN).sum(), level.max(initial=0), *plain

    return sorted(fits, key=merit)


def search_bugs(
    candidates: Candidates,
    at: np.ndarray,
    beside: Sequence[Computation] | None = None,
) -> None:
    """Adds the suspects that fit some of the steps `at`, bool [S]. With `beside`, only
    those that give the numbers of one of these computations."""
    if not at.any():
        return
    ruler, declaration = candidates.ruler, candidates.declaration
    part = ruler.of_steps(some_steps(ruler.steps, at, SAMPLE // 2))
    fits: dict[Suspect, Fit] = {}
    if beside is None:
        tried = _under_all_settings(part.steps, declaration, fits)
    else:
        table = bugs.settings_beside(declaration, beside, ruler.steps)
        tried = bugs.suspects(part.steps, table, group_size=declaration.group_size)
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
    steps: LoggedSteps, declaration: Declaration, fits: dict[Suspect, Fit]
) -> Iterator[Suspect]:
    """Each bug under few settings; if none fits every step, those that come near on
    most rows with every ddof and eps. `fits` has the fit of each that was yielded."""
    lone = bool((steps.groups.size == 1).any())
    whitened = (bugs.WHITENED,) if "length" in steps.has else ()
    for shapes in ((*bugs.SHAPES, *bugs.RARE), *whitened):
        table = bugs.conventions(declaration, lone, shapes)
        group_size = declaration.group_size
        tried = [*bugs.suspects(steps, table, group_size=group_size)]
        if (yield from _until_found(tried, fits)):
            return
        detailed = _with_details(tried, declaration, fits)
        if (yield from _until_found(detailed, fits)):
            return


def _until_found(
    tried: Iterable[Suspect], fits: Mapping[Suspect, Fit]
) -> Generator[Suspect, None, set[str]]:
    """Suspects, those of each bug until one fits every step. Returns the bugs of which
    one does."""
    found = set[str]()
    for each in tried:
        if each.bug not in found:
            yield each
            if fits[each].good.all():
                found.add(each.bug)
    return found


def _with_details(
    tried: Iterable[Suspect], declaration: Declaration, fits: Mapping[Suspect, Fit]
) -> Iterator[Suspect]:
    """Suspects that divide by a deviation and come near on most rows, with every ddof
    and eps."""
    near: dict[tuple[str, Settings], Suspect] = {}
    for each in tried:
        if fits[each].near.mean() > 0.6 and SCALES[each.settings.scale].is_std:
            shape = replace(each.settings, ddof=1, eps=0.0)
            near.setdefault((each.bug, shape), each)
    for each, (ddof, eps) in product(near.values(), bugs.DETAILS):
        details = {"ddof": ddof, "eps": eps, **declaration.settings}
        yield replace(each, settings=replace(each.settings, **details))


def find_lost_digits(candidates: Candidates, at: np.ndarray) -> None:
    """Adds the bugs that round. Each is paired with a computation that fits all other
    rows of the steps `at`, and is kept only if the remaining rows show its
    evidence."""
    ruler, steps = candidates.ruler, candidates.steps
    columns = {n: getattr(steps, n) for n in ("prompt", "reward", "advantage")}
    log = pd.DataFrame(columns, copy=False)
    for record in map(bug, BUGS):
        if record.unexplained is None or record.evidence is None:
            continue
        rows = record.unexplained(log)
        if not rows.any() or rows.all():
            continue

        def takes_part(c: Computation, record: Bug = record) -> bool:
            return all(getattr(c, k) == v for k, v in record.reading.items())

        part = replace(ruler, ignored=rows)
        others = search(part, candidates.declaration, candidates.tick, takes_part)
        fits, beside = others.computations, dict[Suspect, Fit]()
        # If no computation fits all steps, use the one that fits most.
        order = sorted(fits, key=lambda c: (-fits[c].good[at].sum(), plainness(c)))
        for c in others.fitting(at, WRITTEN)[:8] or order[:1]:
            computed, good = bugs.compute(steps, c), fits[c].good
            off = distance(computed.values, steps.advantage) > ruler.base
            odd = rows & off & good[steps.step_of]
            rounded = log.assign(odd=odd, baseline=computed.baseline)
            shown = record.evidence(rounded, c.settings)
            good &= (steps.total(odd & (shown == 0)) == 0) & (steps.total(odd) > 0)
            if good.any():
                lost = np.full(steps.step_count, np.nan)
                level = np.where(good, WRITTEN, NONE)
                suspect = Suspect(record.name, c.settings, (), c, 2 in shown)
                beside[suspect] = Fit(level, lost, good.astype(float), good)
        for suspect in sorted(beside, key=lambda s: not s.is_shown)[:1]:
            candidates.suspects[suspect] = beside[suspect]
