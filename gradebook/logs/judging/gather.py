"""Gather: from a log to its evidence, in tiers. Computations come first, those of usual
views before those of unusual ones; then bugs, for steps that no computation explains or
beside the computations that fit; then the closest computation, if none fits.

Everything is tried on a sample of whole steps; what fits some of them is computed for
all. Steps that nothing fits are sampled again. R rows, S steps.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.tolerance import LARGE, MOST_EPS
from gradebook.core.vocabulary import SCALES
from gradebook.logs.judging import numbers, space
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.computation import Computation, View, plainness
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.evidence import (
    ChangePoint,
    Evidence,
    most_fitting,
    unexplained,
)
from gradebook.logs.judging.fit import (
    NONE,
    REWARDS,
    WRITTEN,
    Fit,
    Numbers,
    Ruler,
    distance,
)
from gradebook.logs.judging.left_over import left_over
from gradebook.logs.judging.near import NearMiss, near_miss
from gradebook.logs.judging.rounding import Rounding
from gradebook.logs.judging.space import EngineRuns
from gradebook.logs.judging.suspects import Candidate, Suspect
from gradebook.logs.logged_steps import LoggedSteps

SAMPLE = 1_024
"""About so many rows are searched at once, in whole steps. On 20 made logs of 3,200 to
7,248 rows (2026-11-29), each size from 512 to 2,048 gave the same answers. Half
as many took 0.84 to 1 times as long, twice as many up to 1.5 times. What few steps show
needs more than the least."""

KEPT = 16
"""So many candidates that fit the sample are computed for a large log, beside the best
of each name: the sample may not tell one eps from another. On those 20 logs, 4 named
the same, and all of them took 1.3 to 1.7 times as long."""

ROUNDS = 4
"""So often steps that nothing fits are sampled, while that explains more of them. In
five of those logs, six computations are used in turn: one round left 103 of 1,500 steps
unexplained, two left none."""

MOSTLY = 0.6
"""A bug that comes near on this share of a step's rows is tried with every ddof and
eps, 13 engine runs. Under the right settings but for these it is near on all rows,
except those of small deviations (`tolerance.NEAR`), which may be four in ten."""

BESIDE_LOST = 8
"""A bug that rounds is tried beside so many computations of the other rows, which may
not tell one eps from another. On nine made logs with such a bug (2026-11-29), up to 22
computations fitted, and 1 to all of them gave the same answer."""

LIMITS = frozenset({"mask_no_eos", "reward_clip"})
"""Settings that rule computations out before any is tried."""

Tick = Callable[[], object]
Only = Callable[[Computation], bool]


def untold() -> None:
    """No progress callback."""


def every(computation: Computation) -> bool:
    """No computation is left out."""
    return True


@dataclass(eq=False)
class Fits:
    """The fit of candidates on the whole log, each computed once."""

    ruler: Ruler
    tick: Tick = untold
    computed: dict[Candidate, Fit] = field(default_factory=dict)

    def of(self, candidate: Candidate) -> Fit:
        if candidate not in self.computed:
            self.tick()
            self.computed[candidate] = numbers.fit(self.ruler, candidate)
        return self.computed[candidate]


# The evidence of a log, and of each step alone


def gather(ruler: Ruler, declaration: Declaration, tick: Tick = untold) -> Evidence:
    """The evidence of a log as a whole."""
    if "advantage" not in ruler.steps.has or not len(
        Evidence(ruler, declaration).telling
    ):
        return Evidence(ruler, declaration)
    fits = Fits(ruler, tick)
    evidence = _computations(fits, declaration)
    telling, usable = evidence.telling, ~ruler.steps.quiet
    fitting = evidence.fitting(telling, WRITTEN)
    if not fitting and not LIMITS.isdisjoint(declaration.settings):
        evidence = _once_more(fits, evidence)
        fitting = evidence.fitting(telling, WRITTEN)
    evidence = _with_distance(evidence, fitting)
    if fitting or evidence.is_all_zero:
        suspects = _bugs_beside(fits, declaration, usable, fitting)
        evidence = _with_suspects(fits, evidence, suspects)
        if fitting and fitting[0].view.all_rows and not _may_vote(declaration):
            evidence = _with_voters(evidence, fitting)
        return replace(evidence, copies=_voting_copies(fits, fitting))
    left = unexplained(evidence)
    suspects = _bugs(fits, declaration, left if left.any() else usable)
    suspects |= _lost_digits(fits, declaration, telling)
    evidence = _with_suspects(fits, evidence, suspects, _change(fits, evidence))
    if _is_explained(evidence):
        return evidence
    if rest := left_over(ruler):
        return replace(evidence, left_over=rest)
    return replace(evidence, near=_nearest(fits, evidence))


def gather_by_step(ruler: Ruler, declaration: Declaration) -> Evidence:
    """The evidence for a verdict on each step by its own rows."""
    fits = Fits(ruler)
    evidence = _computations(fits, declaration)
    left, usable = unexplained(evidence), ~ruler.steps.quiet
    likely = most_fitting(evidence)
    evidence = _with_distance(evidence, likely)
    suspects = _bugs_beside(fits, declaration, usable & ~left, likely)
    suspects |= _bugs(fits, declaration, left)
    if left.any():
        suspects |= _lost_digits(fits, declaration, evidence.telling)
    return _with_suspects(fits, evidence, suspects)


def _with_suspects(
    fits: Fits,
    evidence: Evidence,
    suspects: Mapping[Suspect, Fit],
    change: ChangePoint | None = None,
) -> Evidence:
    """The evidence with suspects, their twins and their groups."""
    every_one = {**suspects, **(change.suspects if change else {})}
    ruler = fits.ruler
    few_digits = Rounding.as_type("bfloat16")
    coarse = replace(ruler, advantage=ruler.advantage.then(few_digits))
    return replace(
        evidence,
        suspects=suspects,
        twins={each: fits.of(each.correct) for each in every_one},
        beyond={each: numbers.beyond(ruler, each.correct) for each in every_one},
        coarse={
            each: numbers.fit(coarse, each.correct).good
            for each in every_one
            if each.is_proved_by_numbers
        },
        cells={
            each: numbers.cut_groups(evidence.steps, each)
            for each in every_one
            if each.cuts_by_place
        },
        change=change,
    )


def _once_more(fits: Fits, evidence: Evidence) -> Evidence:
    """The evidence with more computations: those that the declaration rules out only by
    the rows that it counts, or by a clip."""
    declaration = evidence.declaration
    rest = {k: v for k, v in declaration.settings.items() if k not in LIMITS}
    wider = replace(declaration, settings=rest)
    more = _computations(fits, wider).computations
    return replace(evidence, computations={**more, **evidence.computations})


def _with_distance(evidence: Evidence, fitting: Sequence[Computation]) -> Evidence:
    """The evidence with the distance of the declared computation from the log, unless
    that computation fits."""
    declaration = evidence.declaration
    if not declaration.decides and not declaration.counts:
        return evidence
    usable = ~evidence.steps.quiet
    good = [evidence.computations[c].good for c in fitting if declaration.allows(c)]
    if np.any([~usable, *good], axis=0).all():
        return evidence
    chosen = some_steps(evidence.steps, usable)
    part = evidence.ruler.of_steps(chosen)
    nearest = np.full(part.steps.step_count, np.inf)
    for runs in views(part.steps, declaration):
        for family in space.families(runs, declaration.settings.get("eps")):
            for c in filter(declaration.allows, family):
                nearest = np.fmin(nearest, part.beyond(runs.compute(c)))
    # A step that was not sampled is as far as the furthest one that was.
    beyond = np.full(evidence.steps.step_count, nearest.max())
    beyond[chosen] = nearest
    return replace(evidence, declared_beyond=beyond)


def _may_vote(declaration: Declaration) -> bool:
    """Whether it was declared that masked rows count in the mean, as they do in TRL."""
    return declaration.settings.get("mask_no_eos") is False


def _with_voters(evidence: Evidence, fitting: Sequence[Computation]) -> Evidence:
    """The evidence with the bugs by which rows vote that should not count. The logged
    advantages of these rows are not compared, nor are copies that have no vote."""
    steps = evidence.steps
    if fitting[0].view.no_copies:
        steps = steps.of_rows(space.originals(steps) == np.arange(steps.rows))
    counted = EngineRuns(steps).counted.numpy()
    fits = Fits(replace(evidence.ruler, steps=steps, ignored=~counted))
    suspects = {
        suspect: fit
        for suspect, fit in _bugs_beside(
            fits, evidence.declaration, ~steps.quiet, fitting
        ).items()
        if suspect.decides_votes
    }
    voters = _with_suspects(fits, evidence, suspects)
    return replace(
        evidence,
        suspects={**evidence.suspects, **suspects},
        twins={**evidence.twins, **voters.twins},
        beyond={**evidence.beyond, **voters.beyond},
        cells={**evidence.cells, **voters.cells},
        coarse={**evidence.coarse, **voters.coarse},
    )


def _voting_copies(fits: Fits, fitting: Sequence[Computation]) -> int:
    """How many rows at the ends of steps repeat the steps' first rows after rows of
    other prompts, if they vote: without their vote, the computation does not fit."""
    steps = fits.ruler.steps
    if not fitting or fitting[0].view != View():
        return 0
    is_copy = space.originals(steps) != np.arange(steps.rows)
    starts = is_copy & ~np.append(False, is_copy[:-1])
    of_another = np.diff(steps.prompt, prepend=-1) != 0
    if not is_copy.any() or not of_another[starts].all():
        return 0
    without = fits.of(replace(fitting[0], view=View(no_copies=True)))
    return 0 if without.good.all() else int(is_copy.sum())


def _is_explained(evidence: Evidence) -> bool:
    """Whether one computation or bug fits all steps, at least within the rounding of
    the rewards, if that is small."""
    telling = evidence.telling
    fitting = evidence.fitting(telling, REWARDS)
    tells = any(not evidence.tells_nothing(c, telling) for c in fitting)
    if evidence.change is not None or tells:
        return True
    return any(evidence.explains(suspect, telling) for suspect in evidence.suspects)


def _change(fits: Fits, evidence: Evidence) -> ChangePoint | None:
    """The one change that explains the run; None if one change does not."""
    at = evidence.telling
    good = {c: f.good[at] for c, f in evidence.computations.items()}
    runs_on = {c: int(np.argmin(np.append(g, False))) for c, g in good.items()}
    first = min(good, key=lambda c: (-runs_on[c], plainness(c)), default=None)
    if first is None or not 0 < runs_on[first] < len(at):
        return None
    cut = runs_on[first]
    rest = (c for c in good if good[c][cut:].all())
    second = min(rest, key=plainness, default=None)
    if second is None:
        return None
    usable = ~evidence.steps.quiet
    beside = _bugs_beside(fits, evidence.declaration, usable, (first, second))
    return ChangePoint(int(at[cut]), first, second, beside)


def _nearest(fits: Fits, evidence: Evidence) -> NearMiss | None:
    """The computation that is closest to a log that nothing fits, also if it fits only
    with every sign turned; None if none is close."""
    ruler = fits.ruler
    turned = replace(ruler.steps, advantage=-ruler.steps.advantage)
    of_turned = search(replace(ruler, steps=turned), evidence.declaration)
    if fitting := of_turned.fitting(~turned.quiet, WRITTEN):
        return NearMiss(fitting[0], is_turned=True)
    if evidence.nearest is None:
        return None
    return near_miss(
        ruler, evidence.nearest, numbers.advantages(ruler.steps, evidence.nearest)
    )


# Computations


def search(
    ruler: Ruler, declaration: Declaration, tick: Tick = untold, only: Only = every
) -> Evidence:
    """The computations that fit some step, with their fit on every step; no bugs."""
    return _computations(Fits(ruler, tick), declaration, only)


def _computations(fits: Fits, declaration: Declaration, only: Only = every) -> Evidence:
    """The computations that fit some step, with their fit on every step."""
    ruler = fits.ruler
    evidence = Evidence(ruler, declaration)
    left = ~ruler.steps.quiet
    best_share = -1.0  # a computation that fits no row is nearer than none
    for _ in range(ROUNDS):
        before = left.sum()
        if not before:
            break
        part = ruler.of_steps(some_steps(ruler.steps, left))
        sample = _sampled(part, declaration, fits.tick, only)
        if part is ruler:
            fits.computed.update([*sample.fits.items()])
        some = {c: fits.of(c) for c in sample.best(kept_all=part is ruler)}
        nearest = evidence.nearest
        if sample.share > best_share:
            nearest, best_share = sample.nearest, sample.share
        computations = {**evidence.computations, **some}
        evidence = replace(evidence, computations=computations, nearest=nearest)
        left &= evidence.level() > WRITTEN
        if left.sum() == before or part.steps.step_count == before:
            break
    return evidence


@dataclass(eq=False)
class Sample:
    """The computations that fit some of the sampled steps. `nearest` is the computation
    that fits the largest share of their rows."""

    ruler: Ruler
    declaration: Declaration
    fits: dict[Computation, Fit] = field(default_factory=dict)
    nearest: Computation | None = None
    share: float = 0.0

    def best(self, kept_all: bool) -> list[Computation]:
        """The computations by the number of steps that they fit, then by distance,
        then declared ones first: all, or a few and the best of each name."""
        usable = ~self.ruler.steps.quiet

        def merit(c: Computation) -> tuple:
            level = self.fits[c].level[usable]
            plain = not self.declaration.allows(c), *plainness(c)
            return -(level <= WRITTEN).sum(), level.max(initial=0), *plain

        best = sorted(self.fits, key=merit)
        if kept_all:
            return best
        of_name = {c.estimator: c for c in reversed(best)}
        return list(dict.fromkeys((*best[:KEPT], *of_name.values())))


def _sampled(ruler: Ruler, declaration: Declaration, tick: Tick, only: Only) -> Sample:
    """The computations that fit some of these steps. Unusual views are tried only if
    some steps are still unexplained."""
    sample = Sample(ruler, declaration)
    left = ~ruler.steps.quiet
    for runs in views(ruler.steps, declaration):
        tick()
        if not left.any() and runs.view.regroups:
            break
        _try_view(sample, runs, only)
        for near in sample.fits.values():
            left = left & ~near.good
    return sample


def _try_view(sample: Sample, runs: EngineRuns, only: Only) -> None:
    """Adds the computations of one view that fit some step to the sample."""
    usable = ~sample.ruler.steps.quiet
    # If all advantages are small, any small number is near them. A step that was
    # normalized over its rows has larger advantages.
    sizes = np.nan_to_num(np.abs(sample.ruler.steps.advantage))
    large = usable & (sample.ruler.steps.worst(sizes) > LARGE)
    declared = sample.declaration.settings.get("eps")
    for family in space.families(runs, declared):
        first = next(filter(only, family), None)
        if first is None:
            continue
        computed = runs.compute(first)
        near = _try(sample, first, computed, is_first=True)
        if first.second and not (near.near[large] == 1).any():
            continue  # no eps brings a second normalization near
        out = sample.ruler.out_of_reach(computed, first.second is not None)[usable]
        logged = sample.ruler.steps.advantage
        relatives = [*family, *space.solved(first, computed, logged)]
        for each in filter(only, relatives):
            in_table = each.eps <= MOST_EPS and each.eps != declared
            if in_table and out.all():
                continue  # no usual eps brings it near
            _try(sample, each, runs.compute(each))


def _try(
    sample: Sample, computation: Computation, computed: Numbers, is_first: bool = False
) -> Fit:
    """The computation's fit with the sample. It is kept if it fits some step."""
    ruler = sample.ruler
    near = ruler.fit(computed)
    fits_some = bool((near.level <= REWARDS).any())
    if fits_some:
        sample.fits[computation] = near
    if fits_some or (is_first and computation.second is None):
        share = near.fitting.sum() / ruler.steps.rows
        if sample.nearest is None or share > sample.share:
            sample.nearest, sample.share = computation, share
    return near


def views(steps: LoggedSteps, declaration: Declaration) -> Iterator[EngineRuns]:
    """The runs for each way that computations may see the rows, the usual ways
    first."""
    clip = declaration.settings.get("reward_clip")
    counting = _counting(steps, declaration)
    for view, (ended, all_rows) in product(space.groupings(steps), counting):
        yield EngineRuns(steps, replace(view, all_rows=all_rows), ended, clip)


FLAGGED, ENDED, ALL = (False, False), (True, False), (False, True)
"""Which rows count, as (rows without EOS are left out, all rows count)."""


def _counting(steps: LoggedSteps, declaration: Declaration) -> list[tuple[bool, bool]]:
    """The ways to decide which rows count that may matter in this log, the usual one
    first."""
    masked = declaration.settings.get("mask_no_eos")
    if masked is not None:
        return [ENDED] if masked else [FLAGGED, ALL]
    counting = [FLAGGED]
    if not bool(steps.batch.eos.all()):
        counting.append(ENDED)
    if not bool(EngineRuns(steps).counted.all()):
        counting.append(ALL)
    return counting


def some_steps(steps: LoggedSteps, left: np.ndarray, rows: int = SAMPLE) -> np.ndarray:
    """bool [S]: some of the steps `left`, of about so many rows in all. They are spread
    evenly, and include the first step that lost rows."""
    size = steps.batch.rows_per_step.numpy()
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


# Bugs


def _bugs(fits: Fits, declaration: Declaration, at: np.ndarray) -> dict[Suspect, Fit]:
    """The suspects that fit some of the steps `at`, bool [S], under the settings that
    people use most."""
    if not at.any():
        return {}
    part = _part(fits.ruler, at)
    tried: dict[Suspect, Fit] = {}
    for each in _under_all_settings(part.steps, declaration, tried):
        fits.tick()
        tried[each] = numbers.fit(part, each)
    return _best_of_each(fits, part, tried)


def _bugs_beside(
    fits: Fits,
    declaration: Declaration,
    at: np.ndarray,
    beside: Sequence[Computation],
) -> dict[Suspect, Fit]:
    """The suspects that fit some of the steps `at`, bool [S], under the settings of
    computations that fit there."""
    if not at.any():
        return {}
    part = _part(fits.ruler, at)
    table = bugs.settings_beside(declaration, beside, fits.ruler.steps)
    tried: dict[Suspect, Fit] = {}
    for each in bugs.suspects(
        part.steps,
        table,
        group_size=declaration.group_size,
        fixed=declaration.settings.keys(),
    ):
        fits.tick()
        tried[each] = numbers.fit(part, each)
    return _best_of_each(fits, part, tried)


def _part(ruler: Ruler, at: np.ndarray) -> Ruler:
    """The ruler on a sample of the steps `at`."""
    return ruler.of_steps(some_steps(ruler.steps, at, SAMPLE // 2))


def _best_of_each(
    fits: Fits, part: Ruler, tried: Mapping[Suspect, Fit]
) -> dict[Suspect, Fit]:
    """For each bug that fits some sampled step, up to two suspects with their fit on
    the whole log: the best that is as near as its correct engine, and the best that is
    not."""
    best = sorted(
        (s for s in tried if tried[s].good.any()),
        key=lambda s: (-int(tried[s].good.sum()), int(tried[s].level.max())),
    )
    chosen: dict[tuple[str, bool], Suspect] = {}
    for each in best:
        if (each.bug, False) not in chosen or (each.bug, True) not in chosen:
            correct = numbers.fit(part, each.correct)
            same = bool((correct.level <= tried[each].level).all())
            chosen.setdefault((each.bug, same), each)
    return {each: fits.of(each) for each in list(chosen.values())[:KEPT]}


def _under_all_settings(
    steps: LoggedSteps, declaration: Declaration, tried: Mapping[Suspect, Fit]
) -> Iterator[Suspect]:
    """Each bug under few settings; if none fits every step, those that come near on
    most rows with every ddof and eps. `tried` has the fit of each that was yielded."""
    lone = bool((steps.groups.size == 1).any())
    whitened = (bugs.WHITENED,) if "length" in steps.has else ()
    for shapes in (bugs.ALL_ASKED, *whitened):
        table = bugs.conventions(declaration, lone, shapes)
        group_size = declaration.group_size
        fixed = declaration.settings.keys()
        few = [*bugs.suspects(steps, table, group_size=group_size, fixed=fixed)]
        if (yield from _until_found(few, tried)):
            return
        detailed = _with_details(few, declaration, tried)
        if (yield from _until_found(detailed, tried)):
            return


def _until_found(
    few: Iterable[Suspect], tried: Mapping[Suspect, Fit]
) -> Generator[Suspect, None, set[str]]:
    """Yields suspects, those of each bug until one fits every step. Returns the bugs
    for which one did."""
    bugs = set[str]()
    for each in few:
        if each.bug not in bugs:
            yield each
            if tried[each].good.all():
                bugs.add(each.bug)
    return bugs


def _with_details(
    few: Iterable[Suspect], declaration: Declaration, tried: Mapping[Suspect, Fit]
) -> Iterator[Suspect]:
    """Suspects that divide by a deviation and come near on most rows, with every ddof
    and eps."""
    near: dict[tuple[str, Settings, str], Suspect] = {}
    for each in few:
        if tried[each].near.mean() > MOSTLY and SCALES[each.settings.scale].is_std:
            shape = replace(each.settings, ddof=1, eps=0.0)
            near.setdefault((each.bug, shape, each.tail), each)
    for each, (ddof, eps) in product(near.values(), bugs.DETAILS):
        details = {"ddof": ddof, "eps": eps, **declaration.settings}
        yield replace(each, settings=replace(each.settings, **details))


# Bugs that round


def _lost_digits(
    fits: Fits, declaration: Declaration, at: np.ndarray
) -> dict[Suspect, Fit]:
    """The bugs that round. Each is paired with a computation that fits all other
    rows of the steps `at`, and is kept only if the remaining rows show its
    evidence."""
    steps = fits.ruler.steps
    columns = {n: getattr(steps, n) for n in ("prompt", "reward", "advantage")}
    log = pd.DataFrame(columns, copy=False)
    suspects: dict[Suspect, Fit] = {}
    for record in map(bug, BUGS):
        if record.unexplained is None or record.evidence is None:
            continue
        rows = record.unexplained(log)
        if rows.any() and not rows.all():
            suspects |= _lost_by(record, log, rows, fits, declaration, at)
    return suspects


def _lost_by(
    record: Bug,
    log: "pd.DataFrame",
    rows: np.ndarray,
    fits: Fits,
    declaration: Declaration,
    at: np.ndarray,
) -> dict[Suspect, Fit]:
    """The suspect of one bug that rounds, if the rows that it alone explains show
    it. `rows`, bool [R], are these."""
    ruler, steps, evidence_of = fits.ruler, fits.ruler.steps, record.evidence
    assert evidence_of is not None

    def takes_part(c: Computation) -> bool:
        return all(getattr(c, k) == v for k, v in record.reading.items())

    kept = search(replace(ruler, ignored=rows), declaration, fits.tick, takes_part)
    computations, beside = kept.computations, dict[Suspect, Fit]()
    fitting = kept.fitting(at, WRITTEN)[:BESIDE_LOST]
    if not fitting:  # the one that fits most steps
        good = {c: -computations[c].good[at].sum() for c in computations}
        fitting = sorted(computations, key=lambda c: (good[c], plainness(c)))[:1]
    for c in fitting:
        computed = numbers.compute(steps, c)
        away = distance(computed.values, steps.advantage)
        # A row that misses in a step that does not fit must be explained, too.
        odd = (rows & (away > ruler.base)) | (away > ruler.limit(computed))
        rounded = log.assign(odd=odd, baseline=computed.baseline)
        shown = evidence_of(rounded, c.settings)
        good_steps = steps.total(odd & (shown == 0)) == 0
        good_steps &= steps.total(odd) > 0
        if good_steps.any():
            unknown = np.full(steps.step_count, np.nan)
            level = np.where(good_steps, WRITTEN, NONE)
            suspect = Suspect(record.name, c.settings, (), c, 2 in shown)
            near, no_slack = good_steps.astype(float), np.zeros(steps.step_count)
            beside[suspect] = Fit(level, unknown, near, good_steps, no_slack)
    best = sorted(beside, key=lambda s: not s.is_shown)[:1]
    return {suspect: beside[suspect] for suspect in best}
