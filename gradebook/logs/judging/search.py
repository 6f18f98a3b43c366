"""Search: which readings and which suspects fit which steps.

Everything is tried on a sample of whole steps; what fits some of them is
computed for all. Steps that nothing fits are sampled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradebook.core.settings import Settings
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging import suspects as bugs
from gradebook.logs.judging.fit import NONE, REWARDS, WRITTEN, Fit, Ruler
from gradebook.logs.judging.space import (
    Computed,
    Reading,
    Rows,
    Sums,
    Wanted,
    anything,
    readings,
    rows_that_count,
    whitened,
)
from gradebook.logs.judging.suspects import Suspect

SAMPLE = 1_024
"""About so many rows are searched at once, in whole steps."""

ROUNDS = 4
"""So often the steps that nothing fits are searched again."""

KEPT = 24
"""So many candidates that fit the sample are computed for a large log."""

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them."""

Tick = Callable[[], object]


@dataclass(frozen=True)
class Asked:
    """What a person, a recorder or the page said about the run.

    wanted      the reading agrees with what was declared
    declared    settings that were declared, ready for the engine
    counts      columns that were declared to decide which rows count
    trusted     columns whose meaning is known
    group_size  rows per prompt
    """

    wanted: Wanted = anything
    declared: Mapping[str, Any] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    group_size: int | None = None

    @property
    def is_declared(self) -> bool:
        """Something that decides advantages was declared."""
        return self.wanted is not anything


@dataclass(eq=False)
class Found:
    """How readings and suspects lie with the steps."""

    ruler: Ruler
    asked_for: bool = False
    readings: dict[Reading, Fit] = field(default_factory=dict)
    suspects: dict[Suspect, Fit] = field(default_factory=dict)
    nearest: tuple[Reading, float] | None = None

    @property
    def steps(self) -> LoggedSteps:
        """The rows."""
        return self.ruler.steps

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


def views(steps: LoggedSteps, asked: Asked) -> Iterator[Rows]:
    """The rows as readings may see them: which rows count, how they are
    grouped, how rewards were clipped; the usual ways first."""
    counting = rows_that_count(steps, asked.declared)
    for rows in counting:
        yield Rows(steps, rows, clip=asked.declared.get("reward_clip"))
    for grouping, group in groupings(steps):
        for rows in counting:
            yield Rows(steps, rows, grouping, group)
    part = without_copies(steps)
    if part is not None:
        for rows in counting:
            yield Rows(part, rows, "without copies")
    largest = float(np.abs(steps.batch.reward.numpy()).max(initial=0))
    for clip in CLIPS:
        if largest > clip and asked.declared.get("reward_clip") is None:
            for rows in counting:
                yield Rows(steps, rows, clip=clip)


def groupings(steps: LoggedSteps) -> Iterator[tuple[str, np.ndarray]]:
    """Other groups than rows that share step and prompt: draws, where a
    prompt was drawn twice, and texts. int64 [R]"""
    b = steps.batch
    prompt, text = b.prompt_index.numpy(), b.text.numpy()
    seen = {prompt.tobytes()}
    by_row = bool((steps.groups.size == 1).all())
    for name, labels in (
        *((("text", _codes(steps.step_of, text)),) if by_row else ()),
        ("id and text", _codes(prompt, text)),
        *_draws(steps, prompt),
    ):
        if labels.tobytes() not in seen:
            seen.add(labels.tobytes())
            yield name, labels


def _codes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers 0.. of the pairs, in order of appearance. int64 [R]"""
    pair = np.unique(np.stack([first, second]), axis=1, return_inverse=True)[1]
    _, at, code = np.unique(pair, return_index=True, return_inverse=True)
    order = np.empty(len(at), dtype="int64")
    order[np.argsort(at)] = np.arange(len(at))
    return order[code].astype("int64")


def _draws(steps: LoggedSteps, prompt: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Runs of one prompt; and these cut at the commonest and the smallest
    size of a run."""
    new = np.diff(prompt, prepend=-1) != 0
    new[steps.starts] = True
    run = np.cumsum(new) - 1
    yield "runs", run
    length = np.bincount(run)
    place = np.arange(len(run)) - np.flatnonzero(new)[run]
    sizes = np.bincount(length).argmax(), np.gcd.reduce(length), length.min()
    for size in dict.fromkeys(int(n) for n in sizes):
        if size > 1:
            yield f"draws of {size}", _codes(run, place // size)


def without_copies(steps: LoggedSteps) -> LoggedSteps | None:
    """The steps without rows at their end that repeat a row of theirs with
    its reward and advantage; none where there are no such."""
    b = steps.batch
    keys = np.stack(
        [
            b.prompt_index.numpy().astype(float),
            b.reward.numpy().astype(float),
            steps.advantage,
        ]
    )
    keep = np.ones(steps.rows, dtype=bool)
    ends = np.append(steps.starts[1:], steps.rows)
    for first, end in zip(steps.starts, ends):
        rows = keys[:, first:end]
        last = end - first
        while last > 2 and (rows[:, last - 1] == rows[:, 0]).all():
            last -= 1
        wide = 1
        if last == end - first:  # or several rows, in their order
            for many in range(2, last // 2 + 1):
                if (rows[:, -many:] == rows[:, :many]).all():
                    wide, last = many, end - first - many
        if end - first - last >= wide and last < end - first:
            keep[first + last : end] = False
    return None if keep.all() else steps.of_rows(keep)


def search(
    ruler: Ruler,
    asked: Asked,
    tick: Tick = lambda: None,
    only: Callable[[Reading], bool] = anything,
) -> Found:
    """The readings that fit some step, with their fit on every step. Usual
    views come first; others are looked at where steps are left."""
    steps = ruler.steps
    found = Found(ruler, asked.is_declared)
    left = ~quiet(steps)
    for _ in range(ROUNDS):
        if not left.any():
            break
        part = _part(ruler, some_steps(steps, left))
        before = left.sum()
        for reading in _fitting(part, asked, found, tick, only):
            if reading not in found.readings:
                tick()
                found.readings[reading] = fit(ruler, reading, asked)
        left &= found.level() > WRITTEN
        if left.sum() == before or part.steps.step_count == before:
            break
    return found


def _fitting(
    ruler: Ruler, asked: Asked, found: Found, tick: Tick, only: Callable
) -> list[Reading]:
    """Readings that fit some of these steps, best first."""
    fits: dict[Reading, Fit] = {}
    left = ~quiet(ruler.steps)
    for rows in views(ruler.steps, asked):
        tick()
        if fits and not left.any() and rows.grouping + str(rows.clip) != "promptNone":
            break
        own = replace_steps(ruler, rows.steps)
        firsts = []
        usual = rows.grouping == "prompt" and rows.clip == asked.declared.get(
            "reward_clip"
        )
        for each in readings(rows, only if usual else is_usual):
            if not usual and not only(each.reading):
                continue
            near = own.fit(each.values, each.baseline, each.scale)
            _note(found, each.reading, near, fits)
            firsts.append(each)
        if usual and (best_level(fits, len(left)) > WRITTEN)[left].any():
            for each in firsts:
                if not _is_alike(own.steps, each.values):
                    continue
                for second in whitened(rows, each, only):
                    near = own.fit(second.values, second.baseline, second.scale)
                    _note(found, second.reading, near, fits)
        left = left & (best_level(fits, len(left)) > WRITTEN)
    usable = ~quiet(ruler.steps)

    def merit(reading: Reading) -> tuple:
        level = fits[reading].level[usable]
        good = int((level <= WRITTEN).sum())
        return -good, int(level.max(initial=0)), not asked.wanted(reading)

    best = sorted(fits, key=merit)
    if ruler.steps.rows == found.steps.rows:
        return best
    kept = {r.estimator: r for r in reversed(best)}  # one of each name, and more
    return list(dict.fromkeys((*best[:KEPT], *kept.values())))


def is_usual(r: Reading) -> bool:
    """eps stands where most trainers have it, and is one of theirs."""
    return (
        r.eps in (0.0, 1e-9, 1e-8, 1e-6, 1e-4) and r.eps_at == "after" and not r.second
    )


def _note(found: Found, reading: Reading, near: Fit, fits: dict[Reading, Fit]) -> None:
    if (near.level <= REWARDS).any():
        fits[reading] = near
    share = float(near.rows.mean())
    if found.nearest is None or share > found.nearest[1]:
        found.nearest = reading, share


def best_level(fits: Mapping[Any, Fit], steps: int) -> np.ndarray:
    """int [S] the best level of some candidates."""
    levels = [fit.level for fit in fits.values()]
    return np.min(levels, axis=0) if levels else np.full(steps, NONE)


def _is_alike(steps: LoggedSteps, values: np.ndarray) -> bool:
    """On some step the log is these values, moved and stretched."""
    one, other = values, steps.advantage
    use = np.isfinite(one) & np.isfinite(other) & (other != 0)
    sums = Sums(steps.step_of, use)
    one, other = np.where(use, one, 0), np.where(use, other, 0)
    one, other = one - sums.mean(one), other - sums.mean(other)
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.sqrt(sums.sum(one * one) * sums.sum(other * other))
        like = np.abs(sums.sum(one * other)) / both
    return bool((like[sums.n > 2] > 0.999).any())


def _part(ruler: Ruler, at: np.ndarray) -> Ruler:
    if at.all():
        return ruler
    ignored = ruler.ignored
    if ignored is not None:
        ignored = ignored[at[ruler.steps.step_of]]
    return replace(ruler, steps=ruler.steps.of_steps(at), ignored=ignored)


def replace_steps(ruler: Ruler, steps: LoggedSteps) -> Ruler:
    """The ruler on other rows of the same steps."""
    if steps is ruler.steps:
        return ruler
    return replace(ruler, steps=steps, ignored=None)


def rows_of(steps: LoggedSteps, reading: Reading) -> Rows:
    """The rows as the reading sees them."""
    if reading.grouping == "without copies":
        steps = without_copies(steps) or steps
        return Rows(steps, reading.rows, reading.grouping, clip=reading.clip)
    group = None
    if reading.grouping != "prompt":
        same = [g for n, g in groupings(steps) if n == reading.grouping]
        group = same[0] if same else None
    return Rows(steps, reading.rows, reading.grouping, group, reading.clip)


def compute(steps: LoggedSteps, reading: Reading) -> Computed:
    """A reading's advantages on logged steps."""
    return rows_of(steps, reading).compute(reading)


def fit(ruler: Ruler, reading: Reading, asked: Asked) -> Fit:
    """How a reading lies with the log."""
    rows = rows_of(ruler.steps, reading)
    each = rows.compute(reading)
    return replace_steps(ruler, rows.steps).fit(each.values, each.baseline, each.scale)


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
    found: Found,
    asked: Asked,
    at: np.ndarray,
    table: tuple[Settings, ...] | None = None,
    tick: Tick = lambda: None,
) -> None:
    """Adds the suspects that fit some of the steps `at`, bool [S], with their
    fit on every step. `table`: the settings to try; all without one."""
    if not at.any():
        return
    ruler = found.ruler
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
        if suspect not in found.suspects:
            tick()
            whole = fits[suspect] if part is ruler else bugs.fit(ruler, suspect)
            found.suspects[suspect] = whole


def _try_all(steps: LoggedSteps, asked: Asked, run: Callable[[Suspect], Fit]) -> None:
    """Runs each bug under few settings; where these come near, under all
    others like them, until some fit every step."""
    declared = dict(asked.declared)
    lone = bool((steps.groups.size <= 1).any())
    done: set[str] = set()
    for more in ({"whiten_tokens": False}, {}) if "length" in steps.has else ({},):
        some = {**more, **declared} if more or "length" not in steps.has else declared
        if "length" not in steps.has:
            some = {"whiten_tokens": False, **declared}
        shapes = tuple(bugs.conventions(some, ((1, 1e-6),)))
        if not lone and "lone_row" not in declared:
            shapes = tuple(s for s in shapes if s.lone_row == "raw")
        like: dict[tuple, Suspect] = {}
        for each in bugs.suspects(steps, shapes, group_size=asked.group_size):
            if each.bug in done:
                continue
            near = run(each)
            if near.good.all():
                done.add(each.bug)
            elif near.near > 0.6 and each.settings.scale.endswith("_std"):
                shape = replace(each.settings, ddof=1, eps=0.0)
                like.setdefault((each.bug, shape), each)
        for each in () if done else like.values():
            for ddof, eps in (*bugs.USUAL, *bugs.MORE):
                changes: dict[str, Any] = {"ddof": ddof, "eps": eps}
                free = {k: v for k, v in changes.items() if k not in declared}
                if each.bug in done or not free and eps != bugs.USUAL[0][1]:
                    continue
                own = replace(each, settings=replace(each.settings, **free))
                if run(own).good.all():
                    done.add(each.bug)
        if done:
            return


def fits_space(steps: LoggedSteps) -> np.ndarray:
    """bool [S] some computation of the space gives the step's advantages."""
    return search(Ruler(steps), Asked()).level() <= WRITTEN


def wanted(steps: LoggedSteps, asked: Asked) -> Iterator[Computed]:
    """The readings that agree with what was declared, computed, by prompt as
    the log has it. Where rows count in several ways, the plainest is first."""
    for rows in views(steps, asked):
        if rows.grouping != "prompt" or asked.counts and rows.rows == "all":
            continue
        if asked.declared.get("whiten_tokens"):
            for each in readings(rows):
                yield from whitened(rows, each, asked.wanted)
        else:
            yield from readings(rows, asked.wanted)
