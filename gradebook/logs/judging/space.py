"""The space: every computation of advantages that somebody uses on purpose, run on the
engine, and the rows of a log as it may see them.

Letters: R rows, S steps, G groups.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import codes
from gradebook.core.settings import Settings
from gradebook.core.tolerance import BASE, MOST_SCORES
from gradebook.core.vocabulary import BASELINES, SCALES, Baseline, Scale
from gradebook.engine import advantages
from gradebook.engine.pipeline import CORRECT
from gradebook.engine.segments import Segments, by_group
from gradebook.logs.judging.computation import (
    DRAW,
    ID_AND_TEXT,
    PROMPT,
    TEXT,
    Computation,
    Second,
    View,
)
from gradebook.logs.judging.fit import Numbers
from gradebook.logs.logged_steps import LoggedBatch, LoggedSteps

EPS_PLACES = (
    *((eps, "after") for eps in (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 1e-10, 0.0)),
    *((eps, "inside") for eps in (1e-8, 1e-6, 1e-5, 1e-4)),
    *((eps, "least") for eps in (1e-6, 1e-4, 1e-3)),
)
"""The eps that is added to a deviation, and its place; the usual pair first. Of the
releases that were measured (`trainers/measured.jsonl`), those of verl and eight other
trainers add 1e-6 after the root, of TRL and four others 1e-4, of AReaL 1e-5, of
OpenRLHF 1e-9; 1e-8 and 0 occur too, and OpenRLHF has 1e-4 as the least. 1e-3 and 1e-10
are one power of ten beyond these. Other places have the sizes that can be told there:
inside the root, 1e-8 is as much as 1e-4 after it if the deviation is 0."""

SECONDS = (
    *(Second("rows", 0), Second("rows", 1), Second("tokens", 1), Second("tokens", 0)),
    *(Second("transitions", 0), Second("rows", 1, eps_after=True)),
)
"""Second normalizations over the step, the usual ones first. By rows as in TRL and
ms-swift, by tokens as in verl and slime (ddof 1) and SkyRL (ddof 0)."""


@dataclass(frozen=True, eq=False)
class EngineRuns:
    """The correct engine on whole steps, as computations of one view see them.

    Stages that computations share are remembered: what rows count in a view, and the
    last baseline and spread. So the numbers are those of `pipeline.run`, but for 0 / 0,
    in a flat group with an eps of 0: they are 0 here, since a log with NaN there has no
    advantage to compare.
    """

    steps: LoggedSteps
    view: View = View()
    ended: bool = False
    clip: float | None = None
    _last: dict[str, tuple[Any, Tensor]] = field(default_factory=dict)
    _whitening: dict[Any, LoggedBatch] = field(default_factory=dict)

    @cached_property
    def batch(self) -> LoggedBatch:
        return viewed(self.steps, self.view).under(self._settings)

    @cached_property
    def _settings(self) -> Settings:
        """Those that decide which rows count."""
        return Settings(mask_no_eos=self.ended, reward_clip=self.clip)

    @cached_property
    def score(self) -> Tensor:
        """float64 [R]"""
        return CORRECT.score(self.batch)

    @cached_property
    def credited(self) -> Tensor:
        """bool [R] the row may earn an advantage."""
        return CORRECT.credited(self.batch)

    @cached_property
    def counted(self) -> Tensor:
        """bool [R] the row enters a statistic."""
        return CORRECT.counted(self.batch, self.credited)

    @cached_property
    def groups(self) -> Segments:
        return by_group(CORRECT.group(self.batch), self.counted)

    @property
    def has_lone_rows(self) -> bool:
        """Whether the value of a row without siblings matters."""
        return bool((self.groups.at_rows(self.groups.n) <= 1).any())

    def sees(self, c: Computation) -> bool:
        """The computation sees the rows as these runs do."""
        return (c.view, c.ended, c.clip) == (self.view, self.ended, self.clip)

    def compute(self, c: Computation) -> Numbers:
        """The computation's numbers. It must see the rows as these runs do."""
        assert self.sees(c)
        shape = c.baseline, c.scale, c.ddof, c.about, c.lone_row
        baseline = self._remembered("baseline", (c.baseline, c.lone_row), c)
        spread = self._remembered("spread", shape, c, baseline)
        scale = spread
        if c.adds_eps:
            scale = advantages.with_eps(spread, c.eps, c.eps_at)
        values = CORRECT.standardized(self.score, self.credited, baseline, scale)
        values = values.nan_to_num(0, torch.inf, -torch.inf)
        if c.second is not None:
            batch = self._whitening_batch(c)
            mean, deviation = advantages.whitening(batch, values, self.credited)
            values = torch.where(self.credited, (values - mean) / deviation, 0)
            scale = scale * deviation
        if not self.all_survive:
            values = advantages.surviving(self.batch, values)
        arrays = values.numpy(), baseline.numpy(), scale.numpy()
        return Numbers(*arrays, spread=spread.numpy() if c.adds_eps else None)

    @cached_property
    def all_survive(self) -> bool:
        """Every row kept a transition."""
        return bool((self.batch.kept_steps > 0).all())

    def _remembered(self, stage: str, shape: Any, c: Computation, *inputs: Any) -> Any:
        """The stage's last result if it has this shape, else a new one: the
        baseline, or the spread without eps. float64 [R]"""
        if stage not in self._last or self._last[stage][0] != shape:
            functions: Mapping[str, Callable[..., Tensor]] = {
                "baseline": advantages.BASELINES[c.baseline],
                "spread": advantages.SCALES[c.scale],
            }
            batch = self.batch.under(c.settings)
            values = functions[stage](batch, self.score, self.groups, *inputs)
            self._last[stage] = shape, values
        return self._last[stage][1]

    def _whitening_batch(self, c: Computation) -> LoggedBatch:
        """The batch under the settings of a second normalization."""
        assert c.second is not None
        key = c.second, c.eps if c.second.eps_after else 0.0
        if key not in self._whitening:
            self._whitening[key] = self.batch.under(c.settings)
        return self._whitening[key]


def viewed(steps: LoggedSteps, view: View) -> LoggedBatch:
    """The rows relabelled as a view sees them: other groups; rows that all count, each
    a rollout of its own; copies as pieces of the rollouts that they repeat, without
    tokens to weigh."""
    batch, changes = steps.batch, dict[str, Any]()
    if view == View():
        return batch
    if view.by != PROMPT:
        changes["prompt"] = torch.from_numpy(grouped(steps, view))
    if view.all_rows:
        every = torch.ones(steps.rows, dtype=torch.bool)
        changes |= {"scored": every, "mask": every[:, None], "eos": every}
        changes |= {"rollout": torch.arange(steps.rows), "lengths": batch.all_tokens}
    if view.no_copies:
        original = torch.from_numpy(originals(steps))
        is_copy = original != torch.arange(steps.rows)
        rollout = changes.get("rollout", batch.rollout)
        lengths = changes.get("lengths", batch.lengths)
        changes |= {"rollout": rollout[original]}
        changes |= {"lengths": torch.where(is_copy, 0, lengths)}
    return replace(batch, **changes)


def families(
    runs: EngineRuns, eps: float | None = None
) -> Iterator[Iterator[Computation]]:
    """Every baseline over every scale, once and normalized again: the computations
    with each eps in each place, the usual one first; `eps` also takes part."""
    choices = dict.fromkeys((*EPS_PLACES, (eps or 0.0, "after")))
    lone, has = runs.has_lone_rows, runs.steps.has
    seconds = [second for second in SECONDS if may_weigh(second, has)]
    firsts = [
        first
        for baseline, scale in product(BASELINES.values(), SCALES.values())
        if has.issuperset(baseline.needs)
        for first in _shapes(runs, baseline, scale, lone)
    ]
    for first, second in product(firsts, (None, *seconds)):
        if first.several and not replace(first, second=second).is_gdpo:
            continue
        yield (
            replace(first, eps=eps, eps_at=place, second=second)
            for eps, place in (choices if first.adds_eps else ((0.0, "after"),))
        )


LEAST_SPREADS = 2
"""An eps or a least deviation is solved from deviations of so many sizes at least: one
size agrees with itself, under any computation. Of 226 made logs with an odd eps (on
2026-11-29), 2 solved 127, 3 solved 108."""

SOLVED = 0.02
"""The eps that rows give agree within this share, and so do two digits of it. Of those
226 logs, a quarter as much lost 8, and half as much 4; five times as much found 3
others but lost 3 least deviations, with a third more candidates to try."""

MOST_SOLVED = 1.0
"""A larger eps is no eps: it is what the advantages are divided by. Rewards of 0 and 1
have no deviation above 0.71."""


def solved(
    computation: Computation, computed: Numbers, logged: np.ndarray
) -> Iterator[Computation]:
    """The computation with the eps, or the least deviation, on which the rows agree, to
    two digits. Yields nothing if they disagree. `computed` are its numbers with its own
    eps after the root. [R] each."""
    if computed.spread is None or computation.second is not None:
        return
    spread = computed.spread
    with np.errstate(all="ignore"):
        divisor = computed.values * (spread + computation.eps) / logged
    usable = np.isfinite(divisor) & (np.abs(logged) > MOST_SCORES) & (spread > 0)
    # Rows of small deviations are those that eps moves most.
    places = np.flatnonzero(usable & (divisor > spread))
    places = places[np.argsort(spread[places])]
    smallest = places[: max(8, len(places) // 4)]
    if eps := _agreed(divisor[smallest] - spread[smallest], spread[smallest]):
        yield replace(computation, eps=eps, eps_at="after")
    square = divisor[smallest] ** 2 - spread[smallest] ** 2
    if eps := _agreed(square, spread[smallest]):
        yield replace(computation, eps=eps, eps_at="inside")
    # A divisor that no deviation exceeds is a constant, and no floor.
    is_spread = usable & (np.abs(divisor - spread) <= BASE * spread)
    lifted = places[divisor[places] > (1 + SOLVED) * spread[places]]
    least = _agreed(divisor[lifted], spread[lifted])
    if least and len(np.unique(spread[is_spread].round(6))) >= LEAST_SPREADS:
        yield replace(computation, eps=least, eps_at="least")


def _agreed(values: np.ndarray, spread: np.ndarray) -> float | None:
    """The number, of two digits, that the values agree on; None if the deviations
    have too few sizes."""
    if len(np.unique(spread.round(6))) < LEAST_SPREADS:
        return None
    middle = float(np.median(values))
    near = np.abs(values - middle) <= SOLVED * np.abs(middle)
    two_digits = float(f"{middle:.2g}")
    agrees = near.mean() > 0.5 and abs(two_digits - middle) <= SOLVED * abs(middle)
    return two_digits if agrees and 0 < two_digits <= MOST_SOLVED else None


def _shapes(
    runs: EngineRuns, baseline: Baseline, scale: Scale, lone: bool
) -> Iterator[Computation]:
    """A baseline over a scale with each value of the settings that they read, but for
    eps."""
    reads_lone = lone and "lone_row" in baseline.reads
    centers = baseline.centers and "spread_about" in scale.reads
    for lone_row, about, ddof in product(
        ("zero", "raw") if reads_lone else ("",),
        ("mean", "baseline") if centers else ("mean",),
        (1, 0) if scale.is_std else (1,),
    ):
        yield Computation(
            baseline.name,
            scale.name,
            ddof=ddof,
            about=about,
            lone_row=lone_row,
            ended=runs.ended,
            clip=runs.clip,
            view=runs.view,
            several=runs.steps.several,
        )


def may_weigh(second: Second, has: frozenset[str]) -> bool:
    """Whether a log has the column by which a second normalization weights the rows."""
    columns = {
        "rows": has,
        "tokens": has & {"length"},
        "transitions": has & {"steps", "kept_steps"},
    }
    return bool(columns[second.over])


# Which rows are compared


def groupings(steps: LoggedSteps) -> list[View]:
    """The ways to group these rows, by prompt first: by draw, if a prompt was drawn
    twice, by text, and without copies."""
    drawn = np.bincount(grouped(steps, View(DRAW)))
    sizes = np.bincount(drawn).argmax(), np.gcd.reduce(drawn), drawn.min()
    draws = [View(DRAW, int(size)) for size in dict.fromkeys(sizes) if size > 1]
    views = [View(ID_AND_TEXT), View(DRAW), *draws]
    if (steps.groups.size == 1).all():
        # An id that names no row names prompts better than texts.
        views = [View(TEXT), *views]
    groups = {View(): steps.prompt}
    for view in views:
        of = grouped(steps, view)
        if not any(np.array_equal(of, other) for other in groups.values()):
            groups[view] = of
    copied = (originals(steps) != np.arange(steps.rows)).any()
    return [*groups, View(no_copies=True)] if copied else [*groups]


def grouped(steps: LoggedSteps, view: View) -> np.ndarray:
    """The rows' groups, numbered from 0 in order of appearance. int64 [R]"""
    prompt, text = steps.prompt, steps.batch.text.numpy()
    if view.by == TEXT:
        return _pairs(steps.step_of, text)
    if view.by == ID_AND_TEXT:
        return _pairs(prompt, text)
    if view.by == PROMPT:
        return prompt
    is_new = np.diff(prompt, prepend=-1) != 0
    run = np.cumsum(is_new) - 1
    if view.draw is None:
        return run
    place = np.arange(len(run)) - np.flatnonzero(is_new)[run]
    return _pairs(run, place // view.draw)


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers 0.. of the pairs, in order of appearance. int64 [R]"""
    return codes(first * (int(second.max(initial=0)) + 1) + second)


def originals(steps: LoggedSteps) -> np.ndarray:
    """The row that each row is a copy of, or itself: a step's end may repeat its
    first row, or its first rows in order. int64 [R]"""
    b = steps.batch
    columns = steps.prompt, steps.reward, b.all_tokens.numpy()
    cells = np.stack([*columns, steps.advantage], axis=1)
    original = np.arange(steps.rows)
    for start, rows in zip(steps.starts, np.split(cells, steps.starts[1:])):
        other = np.flatnonzero((rows != rows[0]).any(1))
        last = max(2, 1 + int(other.max(initial=0)))
        if last < len(rows):
            original[start + last : start + len(rows)] = start
            continue
        several = range(len(rows) // 2, 1, -1)
        n = next((n for n in several if (rows[-n:] == rows[:n]).all()), 0)
        original[start + len(rows) - n : start + len(rows)] = start + np.arange(n)
    return original
