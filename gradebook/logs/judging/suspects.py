"""Suspects: bugs under the conventions that a trainer may have asked for, and
whether what a log shows proves one, or only asks about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from torch import Tensor

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, StepsError
from gradebook.core.settings import FLAGS, Settings
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.judging.fit import NONE, Fit, Numbers, Ruler
from gradebook.logs.judging.reading import Asked, Reading
from gradebook.logs.logged_steps import LoggedSteps

STRIDES = "strides"
"""Stands in a record for the sizes that a log's groups suggest."""

PROMPTS = "prompts"
"""Stands there for the prompts of a step: its own, and the most of any step."""

Changes = Mapping[str, Any]

SHAPES: tuple[Changes, ...] = (
    {},
    {"scale": "none"},
    {"baseline": "leave_one_out", "scale": "none"},
    {"baseline": "batch_mean", "scale": "none", "spread_about": "baseline"},
    {"baseline": "batch_mean", "scale": "batch_std", "spread_about": "baseline"},
    {"scale": "batch_std"},
)
"""Settings that are asked for most, as changes to GRPO's."""

RARE: tuple[Changes, ...] = (
    {"ddof": 0},
    {"baseline": "leave_one_out"},
    {"baseline": "leave_one_out", "scale": "others_std", "lone_row": "zero"},
    {"baseline": "second_best"},
    {"baseline": "length_weighted_mean", "scale": "none"},
    {"scale": "nonzero_share"},
    {"baseline": "none", "scale": "none"},
)
WHITENED = tuple(
    {**shape, "whiten_tokens": True, "whiten_ddof": ddof}
    for shape in (*SHAPES, *RARE)
    for ddof in (1, 0)
    if shape.get("baseline", "group_mean") in ("group_mean", "leave_one_out", "none")
)
"""The same, normalized once more over tokens."""

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
        return dict(self.guesses).get("group_size")

    @property
    def correct(self) -> Suspect:
        """The correct engine under the same settings."""
        return replace(self, bug="")


def conventions(
    asked: Asked,
    lone: bool,
    shapes: Sequence[Changes],
    details: Sequence[tuple[int, float]] = DETAILS[:1],
) -> tuple[Settings, ...]:
    """Settings that a bug is tried under, as far as they agree with what was
    declared, none where no engine computes that; `lone` where what a lone row gets
    may matter."""
    if not asked.by_engine:
        return ()
    table: dict[Settings, None] = {}
    for lone_row, shape in product(("raw", "zero")[: 1 + lone], shapes):
        for ddof, eps in details if shape.get("scale") != "none" else details[:1]:
            usual = {"lone_row": lone_row, "ddof": ddof, "eps": eps}
            table[Settings(**{**usual, **shape, **asked.declared})] = None
    return tuple(table)


def settings_beside(
    asked: Asked, readings: Sequence[Reading], steps: LoggedSteps
) -> tuple[Settings, ...]:
    """The settings under which a condition may make a bug of the readings."""
    usual = [(r.ddof, r.eps) for r in readings[:6] if r.divides and r.eps_at == "after"]
    details = [*dict.fromkeys(usual or DETAILS[:2])][:2]
    named: list[Changes] = [
        {"baseline": r.baseline, "scale": r.scale, "lone_row": r.settings.lone_row}
        for r in readings[:3]
        if (r.settings.baseline, r.settings.scale) == (r.baseline, r.scale)
    ]
    sizes = steps.groups.size  # strides leave a lone row where these are unequal
    lone = bool((sizes != sizes[0]).any() or sizes[0] == 1)
    table = conventions(asked, lone, (*named, *SHAPES), details)
    more = [r.settings for r in readings[:3] if r.over == "tokens"]
    if readings and readings[0].baseline != "none":
        scale = "none" if readings[0].divides else "group_std"
        more.append(replace(readings[0].settings, scale=scale))
    others = [replace(s, **asked.declared) for s in more if table]
    return tuple(dict.fromkeys((*table, *others)))


def suspects(
    steps: LoggedSteps,
    table: Sequence[Settings],
    names: Sequence[str] = BUGS,
    group_size: int | None = None,
) -> Iterator[Suspect]:
    """Every bug that the log's columns allow, under each of the settings."""
    sizes = (group_size,) if group_size else strides(steps.groups.size)
    prompts = np.bincount(steps.groups.step)
    most = (None,) if (prompts == prompts[0]).all() else (None, int(prompts.max()))
    masks = (False,) if bool(steps.batch.eos.all()) else (False, True)
    for name in names:
        record = bug(name)
        if not record.in_advantages or not can_show(record, steps.has):
            continue
        guesses: dict[str, Sequence[Any]] = {}
        for setting, values in record.guesses.items():
            flags = [bool(v) for v in values] if setting in FLAGS else values
            guesses[setting] = {STRIDES: sizes, PROMPTS: most}.get(values[0], flags)
        if len(masks) > 1:
            guesses.setdefault("mask_no_eos", masks)
        for chosen in product(*guesses.values()):
            guess = dict(zip(guesses, chosen))
            for settings in table:
                yield Suspect(name, replace(settings, **guess), tuple(guess.items()))


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


def trace(steps: LoggedSteps, suspect: Suspect) -> Numbers:
    """One plain run of the suspect's engine, of the correct one without a
    bug. Raises StepsError where steps cannot be computed."""
    engine = bug(suspect.bug).engine if suspect.bug else CORRECT
    engine = replace(engine, trained=_counted)
    traced = run(engine, steps.batch.under(suspect.settings))
    return Numbers(
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
        computed = ~np.asarray(error.steps)
    except GradebookError:
        computed = np.zeros(steps.step_count, dtype=bool)
    level = np.full(steps.step_count, NONE)
    residual = np.full(steps.step_count, np.inf)
    rows, near = np.zeros(steps.rows, dtype=bool), np.zeros(steps.step_count)
    if computed.any() and not computed.all():
        part = fit(ruler.of_steps(computed), suspect)
        level[computed], residual[computed] = part.level, part.residual
        near[computed] = part.near
        rows[computed[steps.step_of]] = part.rows
    return Fit(level, residual, rows, near)


def _counted(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """Counted rows, in place of `trained`: advantages do not ask it."""
    return counted


DIFFERENT = 6
"""So many different advantages prove a formula that no exact one gives."""

HOW_ROWS_COUNT = ("credited", "counted")
"""Stages that decide which rows count: what was intended is never in a log."""

ROWS = 200_000
"""So many rows are looked at for a proof."""


def proved(suspect: Suspect, steps: LoggedSteps, asked: Asked) -> bool:
    """No declaration could excuse these numbers, or what was declared does
    not."""
    record = suspect.record
    if record.stage in HOW_ROWS_COUNT:
        column = main_column(record)
        declared = column in asked.counts
        return declared and column in asked.trusted
    if record.proof == "column":
        return all(c in asked.trusted for c in telling_columns(record))
    if record.proof == "declaration":
        return False
    if cuts_by_place(suspect.bug):
        return mixes_strides(suspect, steps)
    if record.evidence is not None:
        return False  # see `search.find_lost_digits`
    values = steps.advantage[np.isfinite(steps.advantage)]
    return len(np.unique(values.round(9))) >= DIFFERENT


def verdict_of(suspect: Suspect, steps: LoggedSteps, asked: Asked) -> str:
    """What a bug is called that fits where no reading does."""
    if proved(suspect, steps, asked):
        return "suspect"
    intent = suspect.record.stage in HOW_ROWS_COUNT
    if asked.is_declared and suspect.record.proof == "declaration" and not intent:
        return "other"
    return "asks"


def telling_columns(record: Bug) -> tuple[str, ...]:
    """Columns of a log whose meaning the bug rests on."""
    flat = [c if isinstance(c, str) else c[0] for c in record.columns]
    return tuple(c for c in flat if c != "prompt") or ("prompt",)


def main_column(record: Bug) -> str:
    """The column that says how rows count."""
    return telling_columns(record)[0]


def mixes_strides(suspect: Suspect, steps: LoggedSteps) -> bool:
    """The rows were cut by their position: groups are unequal and stand in
    contiguous runs, the stride is the commonest or largest group size, and
    some strides hold exactly one prompt while others mix several, or rows
    without a stride get reward / eps. One step that has both kinds is enough. Where
    each step has one kind, it takes more than two steps, and mixed are exactly those
    in which a prompt has fewer rows than the stride, or that have fewer prompts than
    others."""
    rows = steps.batch.step_rows.numpy()
    steps = steps.of_steps(np.cumsum(rows) <= max(ROWS, rows[0]))
    cells = trace(steps, suspect).group
    assert cells is not None
    prompt = steps.batch.prompt_index.numpy()
    kept = (steps.batch.tokens > 0).numpy() & steps.batch.scored.numpy()
    if suspect.settings.mask_no_eos:
        kept &= steps.batch.eos.numpy()
    step, prompt, cells = steps.step_of[kept], prompt[kept], cells[kept]
    size = np.bincount(prompt)
    runs = 1 + int(((np.diff(prompt) != 0) | (np.diff(step) != 0)).sum())
    sizes = size[size > 0]
    stride = suspect.group_size or int(size.max())
    usual = (int(np.bincount(sizes).argmax()), int(size.max()))
    if runs != len(sizes) or len(set(sizes)) < 2 or stride not in usual:
        return False
    cut = cells >= 0
    tail = not bool(cut.all())
    step, prompt, cells = step[cut], prompt[cut], cells[cut]
    _, first, shared = np.unique(
        cells * len(size) + prompt, return_index=True, return_counts=True
    )
    several = np.bincount(cells[first])[cells[first]] > 1
    whole = ~several & (shared == size[prompt[first]]) & (shared >= stride)
    mixed, pure = np.unique(step[first][several]), np.unique(step[first][whole])
    if tail:
        return bool(len(mixed)) or suspect.settings.scale != "none"
    if not len(mixed) or not len(pure):
        return False
    if np.intersect1d(mixed, pure).size:
        return True
    full = stride * (suspect.settings.prompts_per_step or 0)
    short = np.bincount(step, size[prompt] < stride, steps.step_count) > 0
    short |= np.bincount(step, minlength=steps.step_count) < full
    by_size = short[mixed].all() and not short[pure].any()
    return len(mixed) + len(pure) > 2 and bool(by_size)
