"""Suspects: bugs under the conventions that a trainer may have been configured with,
and whether the log proves a bug or only raises the question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import Fit, Numbers, Ruler
from gradebook.logs.judging.space import Runs
from gradebook.logs.logged_steps import LoggedSteps

STRIDES, PROMPTS = "strides", "prompts"
"""Names in a record: the sizes that a log's groups suggest; and the number of prompts
of a step, or the largest number in any step."""

SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"scale": "none"},
    {"baseline": "leave_one_out", "scale": "none"},
    {"baseline": "batch_mean", "scale": "none", "spread_about": "baseline"},
    {"baseline": "batch_mean", "scale": "batch_std", "spread_about": "baseline"},
    {"scale": "batch_std"},
)
"""Settings that are asked for most, as changes to GRPO's."""

RARE: tuple[dict[str, Any], ...] = (
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

DETAILS: tuple[tuple[int, float], ...] = (
    *((1, 1e-6), (0, 1e-6), (1, 1e-4), (0, 1e-9), (1, 1e-9), (1, 1e-8), (0, 1e-8)),
    *((1, 1e-5), (0, 1e-4), (0, 1e-5), (1, 1e-3), (1, 0.0), (0, 0.0)),
)
"""ddof and eps, the usual ones first."""

HOW_ROWS_COUNT = ("credited", "counted")
"""Stages that decide which rows count. A log never shows which rows should count."""


@dataclass(frozen=True)
class Suspect:
    """A bug with the settings of one run. A bug that rounds also has the `computation`
    that all other rows follow, and `is_shown` says whether its rows prove the bug."""

    bug: str
    settings: Settings
    guesses: tuple[tuple[str, Any], ...] = ()
    computation: Computation | None = None
    is_shown: bool = False

    @property
    def record(self) -> Bug:
        return bug(self.bug)

    @property
    def group_size(self) -> int | None:
        """The stride that was guessed; None if the bug has none."""
        return dict(self.guesses).get("group_size")

    @property
    def correct(self) -> "Candidate":
        """The correct computation under the same settings."""
        return self.computation or Suspect("", self.settings)

    @property
    def surety(self) -> int:
        """0 for a bug that its numbers show, 1 for a bug that rounds and has its
        evidence, 2 for a rounding that only float32 explains."""
        return 0 if self.record.evidence is None else 1 if self.computation else 2


Candidate = Computation | Suspect
"""A computation or a bug that may explain a log."""


def conventions(
    declaration: Declaration,
    lone: bool,
    shapes: Sequence[Mapping[str, Any]],
    details: Sequence[tuple[int, float]] = DETAILS[:1],
) -> list[Settings]:
    """Settings to try a bug under, with the declared ones fixed. `lone` says that the
    log has rows without siblings, so that their convention is tried too."""
    tried = [
        {
            "lone_row": lone_row,
            "ddof": ddof,
            "eps": eps,
            **shape,
            **declaration.settings,
        }
        for lone_row, shape in product(("raw", "zero")[: 1 + lone], shapes)
        for ddof, eps in (details if shape.get("scale") != "none" else details[:1])
    ]
    return list(dict.fromkeys(Settings(**changes) for changes in tried))


def settings_beside(
    declaration: Declaration,
    beside: Sequence[Computation],
    steps: LoggedSteps,
) -> list[Settings]:
    """Settings under which computations may be a bug: their own, with a scale or
    without one, and those that are asked for most."""
    usual = [(c.ddof, c.eps) for c in beside[:6] if c.divides and c.eps_at == "after"]
    details = [*dict.fromkeys(usual or DETAILS[:2])][:2]
    names = [
        *("baseline", "scale", "lone_row"),
        *("whiten_tokens", "whiten_over", "whiten_ddof", "whiten_eps"),
    ]
    shapes = [{name: c.settings[name] for name in names} for c in beside[:3]]
    if beside and {beside[0].baseline, beside[0].scale} != {"none"}:
        scale = "none" if beside[0].divides else "group_std"
        shapes.append({**shapes[0], "scale": scale})
    sizes = steps.groups.size  # strides leave a lone row where these are unequal
    lone = bool((sizes != sizes[0]).any() or sizes[0] == 1)
    return conventions(declaration, lone, (*shapes, *SHAPES), details)


def suspects(
    steps: LoggedSteps,
    table: Sequence[Settings],
    names: Sequence[str] = BUGS,
    group_size: int | None = None,
) -> Iterator[Suspect]:
    """Every bug that the log's columns allow, under each of the settings."""
    prompts, rows = np.bincount(steps.groups.step), steps.groups.size
    most = (None,) if (prompts == prompts[0]).all() else (None, int(prompts.max()))
    # The likeliest strides come first; None is the largest group of each step.
    largest, commonest = int(rows.max()), int(np.bincount(rows).argmax())
    strides = dict.fromkeys((largest, None, commonest, largest + 1))
    places: dict[Any, Sequence[int | None]] = {
        STRIDES: (group_size,) if group_size else tuple(strides),
        PROMPTS: most,
    }
    for name in names:
        record = bug(name)
        if not record.in_advantages or not can_show(record, steps.has):
            continue
        guesses: dict[str, Sequence[Any]] = {
            setting: places.get(values[0], values)
            for setting, values in record.guesses.items()
        }
        if not bool(steps.batch.eos.all()):
            guesses.setdefault("mask_no_eos", (False, True))
        for chosen in product(*guesses.values()):
            guess = dict(zip(guesses, chosen))
            for settings in table:
                yield Suspect(name, replace(settings, **guess), tuple(guess.items()))


def can_show(record: Bug, has: frozenset[str]) -> bool:
    one_of = (c if isinstance(c, tuple) else (c,) for c in record.columns)
    return all(has.intersection(names) for names in one_of)


def cuts_by_place(name: str) -> bool:
    """The bug cuts rows into groups by their position."""
    return any(STRIDES in values for values in bug(name).guesses.values())


def compute(steps: LoggedSteps, candidate: Candidate) -> Numbers:
    """A computation's numbers, or one plain run of the suspect's engine, of the
    correct one without a bug. NaN on steps that it cannot compute."""
    if isinstance(candidate, Computation):
        c = candidate
        return Runs(steps, c.view, c.ended, c.clip).compute(c)
    suspect = candidate
    engine = bug(suspect.bug).engine if suspect.bug else CORRECT
    engine = replace(engine, trained=lambda batch, score, counted, group: counted)
    try:
        traced = run(engine, steps.batch.under(suspect.settings))
    except GradebookError as error:
        numbers = np.full((4, steps.rows), np.nan)
        refused = [True] * steps.step_count if error.steps is None else error.steps
        computed = ~np.asarray(refused)
        if computed.any():
            part = compute(steps.of_steps(computed), suspect)
            rows = part.values, part.baseline, part.scale, part.group
            numbers[:, computed[steps.step_of]] = rows
        return Numbers(*numbers)
    columns = traced.advantage, traced.baseline, traced.scale
    values, baseline, scale = (column.double().numpy() for column in columns)
    return Numbers(values, baseline, scale, traced.group.numpy())


def fit(ruler: Ruler, candidate: Candidate) -> Fit:
    """How it lies with the log; steps that it cannot compute do not fit."""
    parts = map(ruler.of_steps, ruler.steps.parts())
    fits = [vars(part.fit(compute(part.steps, candidate))) for part in parts]
    return Fit(**{name: np.concatenate([f[name] for f in fits]) for name in fits[0]})


def advantages(steps: LoggedSteps, candidate: Candidate) -> np.ndarray:
    """Its advantage of each row, NaN if it cannot be computed. float64 [R]"""
    parts = map(steps.of_steps, steps.parts())
    return np.concatenate([compute(part, candidate).values for part in parts])


def verdict_of(suspect: Suspect, steps: LoggedSteps, declaration: Declaration) -> str:
    """The verdict for a bug that fits while no legitimate computation does: "suspect"
    if no declaration could explain the numbers, or if the actual one does not."""
    record = suspect.record
    if record.stage in HOW_ROWS_COUNT:
        proved = telling_columns(record)[0] in declaration.counts & declaration.trusted
    elif record.proof == "column":
        proved = declaration.trusted.issuperset(telling_columns(record))
    elif record.proof == "declaration":
        return "other" if declaration.decides else "asks"
    elif record.evidence is not None:
        proved = suspect.is_shown
    elif cuts_by_place(suspect.bug):
        proved = mixes_strides(suspect, steps)
    else:
        values = steps.advantage[np.isfinite(steps.advantage)]
        # So many different numbers, and no exact formula gives them.
        proved = len(np.unique(values.round(9))) >= 6
    return "suspect" if proved else "asks"


def telling_columns(record: Bug) -> tuple[str, ...]:
    """The columns that the bug depends on, the one that says how rows count first."""
    flat = [c if isinstance(c, str) else c[0] for c in record.columns]
    return tuple(c for c in flat if c != "prompt") or ("prompt",)


def cut_groups(steps: LoggedSteps, suspect: Suspect) -> np.ndarray:
    """The groups of the suspect's engine, each with a number of its own: -1 in none,
    NaN without an advantage. float64 [R]"""
    groups: list[np.ndarray] = []
    for part in map(steps.of_steps, steps.parts()):
        traced, before = compute(part, suspect), sum(map(len, groups))
        assert traced.group is not None
        group = np.where(traced.group >= 0, traced.group + before, -1)
        groups.append(np.where(np.isfinite(traced.values), group, np.nan))
    return np.concatenate(groups)


def mixes_strides(suspect: Suspect, steps: LoggedSteps) -> bool:
    """Whether the log proves that rows were grouped by position. Three conditions:
    The groups are unequal and each is one run of rows. The stride is the commonest or
    the largest group size. Some strides hold exactly one prompt while others mix
    several, or rows without a stride get reward / eps.

    One step with both kinds of stride is enough. If each step has one kind, it takes
    more than two steps, and the steps with mixed strides must be exactly the steps
    that lost rows or prompts."""
    settings, batch, cell = suspect.settings, steps.batch, cut_groups(steps, suspect)
    kept = ((batch.tokens > 0) & batch.scored).numpy() & np.isfinite(cell)
    if settings.mask_no_eos:
        kept &= batch.eos.numpy()
    prompt, cell = steps.prompt[kept], cell[kept].astype("int64")
    size = np.bincount(prompt)
    sizes = size[size > 0]
    runs = 1 + np.count_nonzero(np.diff(prompt))
    stride = suspect.group_size or sizes.max()
    usual = np.bincount(sizes).argmax(), sizes.max()
    if runs != len(sizes) or len(set(sizes)) < 2 or stride not in usual:
        return False
    has_cell = cell >= 0
    pairs = cell[has_cell] * len(size) + prompt[has_cell]
    pieces, shared = np.unique(pairs, return_counts=True)
    cell_of, prompt_of = np.divmod(pieces, len(size))
    several = np.bincount(cell_of)[cell_of] > 1
    whole = ~several & (shared == size[prompt_of]) & (shared >= stride)
    step = steps.groups.step
    mixed, pure = {*step[prompt_of[several]]}, {*step[prompt_of[whole]]}
    if not has_cell.all():
        return bool(mixed) or settings.scale != "none"
    if mixed & pure:
        return True
    full = stride * (settings.prompts_per_step or 0)
    rows = np.bincount(steps.step_of[kept])
    few = np.bincount(step[prompt], size[prompt] < stride) > 0
    short = {*np.flatnonzero(few | (rows < full))}
    both = bool(mixed) and bool(pure) and len(mixed) + len(pure) > 2
    return both and mixed <= short and not pure & short
