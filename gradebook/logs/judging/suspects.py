"""Suspects: bugs under the conventions that a trainer may have asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from torch import Tensor

from gradebook.cases.record import BUGS, Bug, bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, StepsError
from gradebook.core.settings import FLAGS, Settings
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.scales import SCALES
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.fit import NONE, Fit, Numbers, Ruler
from gradebook.logs.judging.reading import Reading

STRIDES = "strides"
"""Stands in a record for the sizes that a log's groups suggest."""

PROMPTS = "prompts"
"""Stands there for the prompts of a step: its own, and the most of any step."""

DIVIDED: tuple[dict[str, Any], ...] = (
    {},
    {"ddof": 0},
    {"baseline": "leave_one_out"},
    {"baseline": "batch_mean", "scale": "batch_std"},
    {"scale": "batch_std"},
    {"baseline": "leave_one_out", "scale": "others_std", "lone_row": "zero"},
    {"baseline": "second_best"},
)
UNDIVIDED: tuple[dict[str, Any], ...] = (
    {"scale": "none"},
    {"baseline": "leave_one_out", "scale": "none"},
    {"baseline": "length_weighted_mean", "scale": "none"},
    {"scale": "nonzero_share"},
    {"baseline": "batch_mean", "scale": "none"},
    {"baseline": "none", "scale": "none"},
)
WHITENED = ("group_mean", "leave_one_out", "none")
"""Baselines that somebody normalizes once more."""
DETAILS = (
    *((1, 1e-6), (0, 1e-6), (1, 1e-4), (0, 1e-9), (1, 1e-9), (1, 1e-8), (0, 1e-8)),
    *((1, 1e-5), (0, 1e-4), (0, 1e-5), (1, 1e-3), (1, 0.0), (0, 0.0)),
)
"""ddof and eps, the usual ones first."""


@dataclass(frozen=True)
class Suspect:
    """A bug under settings that it was run with."""

    bug: str
    settings: Settings
    guesses: tuple[tuple[str, Any], ...] = ()

    @property
    def record(self) -> Bug:
        """What is known of the bug."""
        return bug(self.bug)

    @property
    def rounds(self) -> bool:
        """The bug is a rounding error that numbers show by themselves."""
        return self.record.evidence is not None

    @property
    def group_size(self) -> int | None:
        """The stride that was guessed, where the bug has one."""
        size = dict(self.guesses).get("group_size")
        return size if isinstance(size, int) else None

    @property
    def correct(self) -> Suspect:
        """The correct engine under the same settings."""
        return replace(self, bug="")


def conventions(
    declared: Mapping[str, Any], lone: bool, whiten: bool
) -> tuple[Settings, ...]:
    """Settings that a bug is tried under, as far as they agree with what was
    declared, none where no engine computes that; `lone` where some row stands
    alone, `whiten` with a second normalization over tokens."""
    if declared.get("scale", "none") not in SCALES:
        return ()
    more: tuple[dict[str, Any], ...] = ({"whiten_tokens": False},)
    if whiten:
        more = ({"whiten_tokens": True}, {"whiten_tokens": True, "whiten_ddof": 0})
    shapes = [*({**s, "eps": 0.0} for s in UNDIVIDED)]
    shapes += [{"ddof": 1, "eps": 1e-6, **s} for s in DIVIDED]
    table: dict[Settings, None] = {}
    for lone_row, second, shape in product(("raw", "zero")[: 1 + lone], more, shapes):
        if whiten and shape.get("baseline", "group_mean") not in WHITENED:
            continue
        changes = {"lone_row": lone_row, **second, **shape}
        of_batch = "baseline" not in declared and shape.get("baseline") == "batch_mean"
        if of_batch or "reward_clip" in declared:
            changes["spread_about"] = "baseline"
        table[Settings(**{**changes, **declared})] = None
    return tuple(table)


def settings_to_try(
    declared: Mapping[str, Any], readings: Sequence[Reading], steps: LoggedSteps
) -> tuple[Settings, ...]:
    """The settings under which a condition may make a bug of the readings, none
    where no engine computes what was declared. What a lone row gets matters only
    where groups or strides leave one."""
    if declared.get("scale", "none") not in SCALES:
        return ()
    sizes = steps.groups.size
    whole = bool((sizes == sizes[0]).all()) and sizes[0] > 1
    usual = [(r.ddof, r.eps) for r in readings[:6] if r.divides and r.eps_at == "after"]
    few = [*dict.fromkeys(usual or DETAILS[:2])][:2]
    shapes: tuple[dict[str, Any], ...] = (
        {},
        {"scale": "none"},
        {"baseline": "leave_one_out", "scale": "none"},
        {"baseline": "batch_mean", "scale": "none"},
        {"baseline": "batch_mean", "scale": "batch_std"},
        {"scale": "batch_std"},
    )
    named: list[dict[str, Any]] = [
        {"baseline": r.baseline, "scale": r.scale, "lone_row": r.settings.lone_row}
        for r in readings[:3]
        if r.settings.baseline == r.baseline and r.settings.scale == r.scale
    ]
    table: dict[Settings, None] = {}
    for lone_row in ("raw",) if whole else ("raw", "zero"):
        for changes in (*named, *shapes):
            for ddof, eps in few if changes.get("scale") != "none" else few[:1]:
                details = {"lone_row": lone_row, "ddof": ddof, "eps": eps}
                table[Settings(**{**details, **changes, **declared})] = None
    for r in readings[:3]:
        if r.second.startswith("tokens"):
            table[replace(r.settings, **declared)] = None
    if readings and readings[0].baseline != "none":
        other = {"scale": "none" if readings[0].divides else "group_std"}
        table[replace(readings[0].settings, **{**other, **declared})] = None
    return tuple(table)


def suspects(
    steps: LoggedSteps,
    table: tuple[Settings, ...],
    names: tuple[str, ...] = BUGS,
    group_size: int | None = None,
) -> Iterator[Suspect]:
    """Every bug that the log's columns allow, under each of the settings."""
    sizes = (group_size,) if group_size else strides(steps.groups.size)
    prompts = np.bincount(steps.groups.step)
    most = (None,) if (prompts == prompts[0]).all() else (None, int(prompts.max()))
    suggested = {STRIDES: sizes, PROMPTS: most}
    masks = (False, True) if not bool(steps.batch.eos.all()) else (False,)
    for name in names:
        record = bug(name)
        if not record.in_advantages or not can_show(record, steps.has):
            continue
        guesses: dict[str, tuple[Any, ...]] = {
            setting: suggested[values[0]]
            if values[0] in suggested
            else tuple(bool(v) if setting in FLAGS else v for v in values)
            for setting, values in record.guesses.items()
        }
        if "mask_no_eos" not in guesses and len(masks) > 1:
            guesses["mask_no_eos"] = masks
        for chosen in product(*guesses.values()):
            guess: tuple[tuple[str, Any], ...] = tuple(zip(guesses, chosen))
            for settings in table:
                yield Suspect(name, replace(settings, **dict(guess)), guess)


def can_show(record: Bug, has: frozenset[str]) -> bool:
    """The log has the columns that the bug needs."""
    one_of = (c if isinstance(c, tuple) else (c,) for c in record.columns)
    return all(has.intersection(names) for names in one_of)


def strides(rows: np.ndarray) -> tuple[int | None, ...]:
    """Configured group sizes that groups of so many `rows`, int64 [G],
    suggest, the likeliest first; None is the largest group of each step.

    >>> strides(np.array([4, 3, 3]))
    (4, None, 3, 5)
    """
    largest, commonest = int(rows.max()), int(np.bincount(rows).argmax())
    return tuple(dict.fromkeys((largest, None, commonest, largest + 1)))


def cuts_by_place(name: str) -> bool:
    """The bug cuts rows into groups by their position."""
    return any(STRIDES in values for values in bug(name).guesses.values())


@dataclass(frozen=True, eq=False)
class Trace(Numbers):
    """What an engine gives on logged steps; group int64 [R]."""

    group: np.ndarray


def trace(steps: LoggedSteps, suspect: Suspect) -> Trace:
    """One plain run of the suspect's engine, of the correct one without a
    bug. Raises StepsError where steps cannot be computed."""
    engine = bug(suspect.bug).engine if suspect.bug else CORRECT
    engine = replace(engine, trained=_counted)
    traced = run(engine, steps.batch.under(suspect.settings))
    return Trace(
        traced.advantage.double().numpy(),
        traced.baseline.double().numpy(),
        traced.scale.double().numpy(),
        traced.group.numpy(),
    )


def fit(ruler: Ruler, suspect: Suspect) -> Fit:
    """How the suspect lies with the log; steps that it cannot compute do not
    fit."""
    steps = ruler.steps
    try:
        return ruler.fit(trace(steps, suspect))
    except StepsError as error:
        at = ~np.asarray(error.steps)
    except GradebookError:
        at = np.zeros(steps.step_count, dtype=bool)
    level = np.full(steps.step_count, NONE)
    residual = np.full(steps.step_count, np.inf)
    rows, near = np.zeros(steps.rows, dtype=bool), np.zeros(steps.step_count)
    if at.any() and not at.all():
        part = fit(ruler.on(steps.of_steps(at)), suspect)
        level[at], residual[at], near[at] = part.level, part.residual, part.near
        rows[at[steps.step_of]] = part.rows
    return Fit(level, residual, rows, near)


def _counted(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """Counted rows, in place of `trained`: advantages do not ask it."""
    return counted
