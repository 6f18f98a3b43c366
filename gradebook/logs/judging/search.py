"""Search: which readings and which suspects fit which steps.

Everything is tried on a sample of whole steps; what fits some of them is
computed for all. Steps that nothing fits are sampled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product

import numpy as np

from gradebook.core.settings import Settings
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import NONE, REWARDS, WRITTEN, Fit, Ruler
from gradebook.logs.judging.reading import Reading, plainness
from gradebook.logs.judging.space import (
    Computed,
    again,
    anything,
    families,
)
from gradebook.logs.judging.suspects import Suspect, settings_to_try, trace
from gradebook.logs.judging.views import fit, views

SAMPLE = 1_024
"""About so many rows are searched at once, in whole steps."""

ROUNDS = 4
"""So often the steps that nothing fits are searched again."""

KEPT = 16
"""So many candidates that fit the sample are computed for a large log."""

NEAR_ROWS = 0.6
"""Where so large a share of a step's rows is near a bug, every ddof and eps is
tried."""

LARGE = 0.5
"""A step that was normalized over its rows has a larger advantage than this."""

Tick = Callable[[], object]


@dataclass(eq=False)
class Candidates:
    """How readings and suspects lie with the steps."""

    ruler: Ruler
    asked: Asked
    readings: dict[Reading, Fit] = field(default_factory=dict)
    suspects: dict[Suspect, Fit] = field(default_factory=dict)
    beside: dict[Settings, Fit] = field(default_factory=dict)
    nearest: tuple[Reading, float] | None = None

    @property
    def steps(self) -> LoggedSteps:
        """The rows."""
        return self.ruler.steps

    def correct(self, suspect: Suspect) -> Fit:
        """How the correct engine lies with the log under a suspect's
        settings."""
        if suspect.settings not in self.beside:
            self.beside[suspect.settings] = bugs.fit(self.ruler, suspect.correct)
        return self.beside[suspect.settings]

    def level(self) -> np.ndarray:
        """int [S] the best level of any reading."""
        levels = [fit.level for fit in self.readings.values()]
        worst = np.full(self.steps.step_count, NONE)
        return np.min([worst, *levels], axis=0)


def some_steps(steps: LoggedSteps, among: np.ndarray, rows: int = SAMPLE) -> np.ndarray:
    """Whole steps among `among`, bool [S], of about so many rows: spread
    evenly, with the first that lost rows. bool [S]"""
    size = steps.batch.step_rows.numpy()
    places = np.flatnonzero(among)
    if size[places].sum() <= 2 * rows:
        return among
    count = max(int(rows / max(size[places].mean(), 1)), 1)
    chosen = places[np.linspace(0, len(places) - 1, count).astype(int)]
    b = steps.batch
    flagged = steps.total(~(b.eos & b.scored & (b.tokens > 0)).numpy()) > 0
    odd = places[(size != np.bincount(size).argmax())[places]][:1]
    out = np.zeros(len(size), dtype=bool)
    out[chosen] = out[odd] = True
    out[places[flagged[places]][:1]] = True
    return out


def fit_all(candidates: Candidates, at: np.ndarray, level: int) -> list[Reading]:
    """Readings that fit all the steps `at`, int64 or bool, at the best level that
    any does, up to this one."""
    worst = {r: fit.level[at].max(initial=0) for r, fit in candidates.readings.items()}
    for most in range(level + 1):
        named = [r for r, worst_level in worst.items() if worst_level <= most]
        if named:
            return sorted(named, key=plainness)
    return []


def one_change(
    candidates: Candidates, at: np.ndarray, steps: int
) -> tuple[tuple[int, int, Reading], ...]:
    """Two readings, one up to some step and one from there on; () where one
    change in the run does not explain it."""
    if len(at) < 2:
        return ()
    good = {r: f.level[at] <= WRITTEN for r, f in candidates.readings.items()}
    runs_on = {r: int(np.argmin(np.append(g, False))) for r, g in good.items()}
    first = min(good, key=lambda r: (-runs_on[r], plainness(r)), default=None)
    if first is None or not 0 < runs_on[first] < len(at):
        return ()
    cut = runs_on[first]
    rest = [r for r, g in good.items() if g[cut:].all()]
    if not rest:
        return ()
    change = int(at[cut])
    second = min(rest, key=plainness)
    return ((0, change - 1, first), (change, steps - 1, second))


def search(
    ruler: Ruler,
    asked: Asked,
    tick: Tick = lambda: None,
    only: Callable[[Reading], bool] = anything,
) -> Candidates:
    """The readings that fit some step, with their fit on every step. Usual
    views come first; others are looked at where steps are left."""
    steps = ruler.steps
    candidates = Candidates(ruler, asked)
    left = ~quiet(steps)
    for _ in range(ROUNDS):
        if not left.any():
            break
        part = _part(ruler, some_steps(steps, left))
        before = left.sum()
        for reading in _fitting(part, asked, candidates, tick, only):
            if reading not in candidates.readings:
                tick()
                candidates.readings[reading] = fit(ruler, reading)
        left &= candidates.level() > WRITTEN
        if left.sum() == before or part.steps.step_count == before:
            break
    return candidates


def _fitting(
    ruler: Ruler, asked: Asked, candidates: Candidates, tick: Tick, only: Callable
) -> list[Reading]:
    """Readings that fit some of these steps, best first."""
    fits: dict[Reading, Fit] = {}
    usable = ~quiet(ruler.steps)
    left = usable
    # Where all advantages are small, anything small comes near.
    sizes = np.nan_to_num(np.abs(ruler.steps.advantage))
    large = usable & (ruler.steps.worst(sizes) > LARGE)
    for rows in views(ruler.steps, asked):
        tick()
        usual = rows.grouping == "prompt" and rows.clip == asked.reward_clip
        if not usual and not left.any():
            break
        part = ruler.on(rows.steps)

        def note(each: Computed, is_usual: bool, part: Ruler = part) -> Fit:
            near = part.fit(each)
            fits_some = bool((near.level <= REWARDS).any())
            if fits_some:
                fits[each.reading] = near
            share = float(near.rows.mean())
            if fits_some or is_usual:
                nearest = candidates.nearest
                if nearest is None or share > nearest[1]:
                    candidates.nearest = each.reading, share
            return near

        for first, *others in families(rows, only):
            note(first, True)
            for each in others:
                note(each, False)
            for second in rows.seconds:
                if (note(again(first, rows, second), False).near[large] == 1).any():
                    for each in others:
                        note(again(each, rows, second), False)
        for near in fits.values():
            left = left & ~near.good

    def merit(reading: Reading) -> tuple:
        level = fits[reading].level[usable]
        good = int((level <= WRITTEN).sum())
        return -good, int(level.max(initial=0)), not asked.wanted(reading)

    best = sorted(fits, key=lambda r: (*merit(r), *plainness(r)))
    if ruler.steps.rows == candidates.steps.rows:
        return best
    kept = {r.estimator: r for r in reversed(best)}  # one of each name, and more
    return list(dict.fromkeys((*best[:KEPT], *kept.values())))


def _part(ruler: Ruler, at: np.ndarray) -> Ruler:
    if at.all():
        return ruler
    ignored = ruler.ignored
    if ignored is not None:
        ignored = ignored[at[ruler.steps.step_of]]
    return replace(ruler, steps=ruler.steps.of_steps(at), ignored=ignored)


def quiet(steps: LoggedSteps) -> np.ndarray:
    """bool [S]: the rewards of every prompt are equal, and all advantages
    are 0: whatever was computed, this step tells nothing."""
    logged = np.nan_to_num(np.abs(steps.advantage), nan=1.0)
    groups = steps.groups
    reward = steps.batch.reward.numpy()
    first = reward[groups.first][steps.batch.prompt_index.numpy()]
    flat = steps.worst(np.abs(reward - first) - 1e-6 * np.abs(reward)) <= 0
    return (steps.worst(logged) <= 1e-5) & flat


def search_bugs(
    candidates: Candidates,
    asked: Asked,
    at: np.ndarray,
    table: tuple[Settings, ...] | None = None,
    tick: Tick = lambda: None,
) -> None:
    """Adds the suspects that fit some of the steps `at`, bool [S], with their
    fit on every step. `table`: the settings to try; all without one."""
    if not at.any():
        return
    ruler = candidates.ruler
    part = _part(ruler, some_steps(ruler.steps, at, SAMPLE // 2))
    fits: dict[Suspect, Fit] = {}

    def run(suspect: Suspect) -> Fit:
        tick()
        near = bugs.fit(part, suspect)
        if near.good.any():
            fits[suspect] = near
        return near

    if table is not None:
        for each in bugs.suspects(part.steps, table, group_size=asked.group_size):
            run(each)
    else:
        _try_all(part.steps, asked, run)

    def merit(suspect: Suspect) -> tuple:
        return -int(fits[suspect].good.sum()), int(fits[suspect].level.max())

    chosen: dict[tuple[str, bool], Suspect] = {}
    for each in sorted(fits, key=merit):  # one that differs from correct, one not
        if (each.bug, False) in chosen and (each.bug, True) in chosen:
            continue
        correct = bugs.fit(part, each.correct)
        same = bool((correct.level <= fits[each].level).all())
        chosen.setdefault((each.bug, same), each)
    for suspect in list(chosen.values())[:KEPT]:
        if suspect not in candidates.suspects:
            tick()
            whole = fits[suspect] if part is ruler else bugs.fit(ruler, suspect)
            candidates.suspects[suspect] = whole


def _try_all(steps: LoggedSteps, asked: Asked, run: Callable[[Suspect], Fit]) -> None:
    """Runs each bug under few settings; where these come near, under all
    others like them, until some fit every step."""
    declared, done = asked.declared, set[str]()
    lone = bool((steps.groups.size <= 1).any())
    for whiten in (False, True) if "length" in steps.has else (False,):
        table = bugs.conventions(declared, lone, whiten)
        like: dict[tuple, Suspect] = {}
        for each in bugs.suspects(steps, table, group_size=asked.group_size):
            if each.bug in done:
                continue
            near = run(each)
            if near.good.all():
                done.add(each.bug)
            elif near.near.mean() > NEAR_ROWS and each.settings.scale.endswith("_std"):
                shape = replace(each.settings, ddof=1, eps=0.0)
                like.setdefault((each.bug, shape), each)
        for each, (ddof, eps) in product(() if done else like.values(), bugs.DETAILS):
            details = replace(each.settings, **{"ddof": ddof, "eps": eps, **declared})
            if each.bug not in done and run(replace(each, settings=details)).good.all():
                done.add(each.bug)
        if done:
            return


def due(steps: LoggedSteps, asked: Asked, readings: Sequence[Reading]) -> np.ndarray:
    """float64 [R]: what was declared, by the engine where it can compute that;
    `readings` fit the log and give an eps that was not declared."""
    for settings in settings_to_try(asked.declared, readings, steps)[:1]:
        return trace(steps, Suspect("", settings)).values
    return next(wanted(steps, asked)).values


def wanted(steps: LoggedSteps, asked: Asked) -> Iterator[Computed]:
    """The readings that agree with what was declared, computed, by prompt as
    the log has it. Where rows count in several ways, the plainest is first."""
    whitens = bool(asked.declared.get("whiten_tokens"))
    for rows in views(steps, asked):
        if rows.grouping != "prompt" or asked.counts and rows.rows == "all":
            continue
        for first in chain.from_iterable(families(rows)):
            seconds = rows.seconds if whitens else ()
            each = [again(first, rows, second) for second in seconds] or [first]
            yield from (c for c in each if asked.wanted(c.reading))
