"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import gcd

import numpy as np

from gradebook.core.errors import refuse
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import correct_ones
from gradebook.logs.candidates.conventions import Convention, conventions
from gradebook.logs.candidates.evaluation import layout_of
from gradebook.logs.candidates.logged_steps import to_logged
from gradebook.logs.candidates.reading import (
    Reading,
    codes_of,
    normalized_rewards,
    place_groups,
    steps_of,
)
from gradebook.logs.candidates.trials import Trials
from gradebook.logs.candidates.weights import (
    TRL_EPS,
    centered_in,
    digits_of,
    independent,
    solved,
)
from gradebook.logs.read.canonical import functions_of, unscored
from gradebook.logs.read.columns import Columns

SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""

LONGEST, STRIDED_ROWS = 16, 256
"""Where nothing else fits: strides up to here, over so many rows."""

VARIANTS = ((False, False), (True, False), (False, True))
"""Whether each function's rewards are normalized before they are summed,
and whether a row without any reward counts as 0 (TRL before v1.6.0)."""

TRL_ESTIMATORS = (
    "grpo",
    "grpo_batch_std",
    "dr_grpo",
    "rloo",
    "leave_one_out/batch_std",
)
"""The estimators that TRL has."""

STRIDED = "fixed strides with these weights give the logged advantages"
GIVEN = "as given"
SOLVED = "the logged advantages determine them"
ASSUMED = "TRL's default; the log does not determine them"
NORMALIZED = (
    "each function's rewards are normalized in their group before they are"
    " summed (normalize_then_sum); the weights are known up to a factor"
)


def read_as_trl(
    table: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
) -> Reading:
    """Group size and weights of a canonical table, as given or as the
    rows show.

    Raises GradebookError when the number of weights is wrong.
    """
    layout = layout_of(table) if columns.by_place else None
    if layout is None:
        return _read(table, columns, weights, group_size)
    found = _read(layout.training(table), columns, weights, group_size)
    return replace(found, layout=layout)


def _read(
    table: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None,
    group_size: int | None,
) -> Reading:
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        raise refuse(
            f"{len(names)} numbers, for " + ", ".join(names),
            len(weights),
            "weights",
        )
    single = weights is not None or len(names) == 1
    if not columns.by_place and (single or "prompt" not in table):
        given = tuple(float(w) for w in weights or (1.0,) * len(names))
        return Reading(given, group_size)
    sample = _sample(table)
    if not len(sample):
        return Reading((1.0,) * len(names), group_size)
    sizes = [group_size] if group_size else _sizes(sample, columns)
    return _best(sample, columns, weights, sizes)


def _sample(table: pd.DataFrame, most: int = SAMPLE_ROWS) -> pd.DataFrame:
    """The first whole steps, of about `most` rows."""
    if len(table) <= most or "step" not in table:
        return table
    step = table["step"].to_numpy()
    last = step[most]
    whole = table.iloc[:most][step[:most] != last]
    return whole if len(whole) else table[step == last]


def runs(table: pd.DataFrame) -> np.ndarray:
    """int64: how many rows with one prompt follow each other in a step."""
    prompt = pd.factorize(table["prompt"])[0]
    new = np.diff(prompt, prepend=-2) != 0
    if "step" in table:
        step = pd.factorize(table["step"])[0]
        new |= np.diff(step, prepend=-2) != 0
    heads = np.flatnonzero(new)
    return np.diff(np.append(heads, len(table)))


def _sizes(sample: pd.DataFrame, columns: Columns) -> list[int | None]:
    """Group sizes that divide every run of equal prompts, largest first;
    None at last: equal prompts are a group, of whatever size."""
    if not columns.by_place:
        return [None]
    common = reduce(gcd, runs(sample).tolist())
    found = [n for n in range(common, 1, -1) if common % n == 0]
    return [*found, None]


def _best(
    sample: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None,
    sizes: Sequence[int | None],
) -> Reading:
    """The reading under which most steps fit a correct computation, the
    likeliest one where none does."""
    given = None if weights is None else tuple(map(float, weights))
    default = given or tuple(1.0 for _ in columns.rewards)
    out = unscored(sample)
    steps = len(np.unique(steps_of(sample)))
    best: tuple[float, ...] = ()
    found = default, ASSUMED if given is None else GIVEN, sizes[0], False
    if "advantage" not in sample or out.all():
        return _reading(columns, sample, *found)
    for size, (normalized, zeros) in product(sizes, VARIANTS):
        rare = normalized or zeros
        if rare and best[0] >= steps or zeros and not out.any():
            continue
        seen = _Seen.of(sample, size, normalized, zeros)
        for each, why in _tried(seen, given):
            merit = _merit(seen, each, why)
            if not best or merit > best and merit[0]:
                best, found = merit, (each, why, size, normalized)
            if merit >= (steps, 1.0, 0.0):
                return _reading(columns, sample, *found)
    if given is None and best[0] < steps:
        for each in _strided(_sample(sample, STRIDED_ROWS)):
            return _reading(columns, sample, each, STRIDED, sizes[0], False)
    return _reading(columns, sample, *found)


def _strided(sample: pd.DataFrame) -> Iterator[tuple[float, ...]]:
    """Weights under which fixed strides of some size, whatever the groups,
    give the advantages of all their rows."""
    largest = int(runs(sample).max()) if "prompt" in sample else 0
    step = steps_of(sample)
    rows = sample.groupby(step).cumcount().to_numpy()
    count = np.bincount(step)[step]
    for size in range(2, min(2 * largest, LONGEST) + 1):
        part = sample[rows < count // size * size]
        if not len(part) or unscored(part).any():
            continue
        seen = _Seen.of(part, size, False, False)
        steps = len(np.unique(seen.step))
        for each, why in _tried(seen, None):
            if _merit(seen, each, why)[0] >= steps:
                yield each


@dataclass(frozen=True, eq=False)
class _Seen:
    """A sample's rows that have a say, as one reading has them.

    rewards    float64 [R, functions], 0 where empty
    advantage  float64 [R]
    step       int64 [R]
    group      int64 [R], one for each (step, group)
    """

    rewards: np.ndarray
    advantage: np.ndarray
    step: np.ndarray
    group: np.ndarray

    @classmethod
    def of(
        cls,
        sample: pd.DataFrame,
        size: int | None,
        normalized: bool,
        zeros: bool,
    ) -> _Seen:
        """The sample with groups of `size` rows, None for one group a
        prompt; `zeros`: a row without any reward has the reward 0."""
        if size is None:
            prompt = pd.factorize(sample["prompt"])[0]
        else:
            prompt = place_groups(sample, size)
        step = steps_of(sample)
        group = codes_of(step, prompt)
        rewards = sample[functions_of(sample)].to_numpy()
        if normalized:
            rewards = normalized_rewards(rewards, group)
        in_ = ~unscored(sample) | zeros
        return cls(
            np.nan_to_num(rewards[in_], posinf=0, neginf=0),
            sample["advantage"].to_numpy()[in_],
            pd.factorize(step[in_])[0],
            pd.factorize(group[in_])[0],
        )


def _tried(
    seen: _Seen, given: tuple[float, ...] | None
) -> Iterator[tuple[tuple[float, ...], str]]:
    """Weights to try, and where they come from, likely ones first."""
    if given is not None:
        yield given, GIVEN
        return
    default, found = tuple(1.0 for _ in seen.rewards.T), []
    if np.isfinite(seen.advantage).all():
        found = solved(seen.rewards, seen.advantage, seen.step, seen.group)
    yield default, SOLVED if default in found else ASSUMED
    yield from ((weights, SOLVED) for weights in found if weights != default)


def _merit(seen: _Seen, weights: tuple[float, ...], why: str) -> tuple[float, ...]:
    """How well a reward explains the advantages: steps that one correct
    convention fits, TRL's own preferred, then the residual, then how
    short the weights are. Solved weights make any advantages raw rewards
    (of weight 1 / eps, say), so that does not count."""
    table = pd.DataFrame(
        {
            "step": seen.step,
            "prompt": seen.group,
            "reward": seen.rewards @ np.array(weights),
            "advantage": seen.advantage,
        }
    )
    trials = Trials(to_logged(table))
    every = np.ones(trials.steps.step_count, dtype=bool)
    trials.try_on(every, correct_ones(conventions(), trials.seen))
    return max(
        (
            float(fit.loose.sum()),
            float(_is_own(candidate.convention)),
            -round(float(np.where(fit.loose, fit.residual, 0).max()), 6),
            -digits_of(weights),
        )
        for candidate, fit in trials.fits.items()
        if why != SOLVED or candidate.settings.baseline != "none"
    )


def _is_own(convention: Convention) -> bool:
    """TRL computes so."""
    s = convention.settings
    own = convention.estimator in TRL_ESTIMATORS and s.ddof == 1
    return own and (s.scale == "none" or s.eps == TRL_EPS)


def _reading(
    columns: Columns,
    sample: pd.DataFrame,
    weights: tuple[float, ...],
    why: str,
    size: int | None,
    normalized: bool,
) -> Reading:
    """The reading, with what a reader should know about it."""
    notes = []
    if len(weights) > 1 or why == SOLVED and weights != (1.0,):
        terms = " + ".join(f"{w:g} {n}" for w, n in zip(weights, columns.rewards))
        notes.append(f"reward = {terms} ({why})".replace("+ -", "- "))
    if why == SOLVED:
        notes += _unsolved(columns, sample, size)
    if size:
        notes.append(f"groups are {size} rows each, by position")
        notes += _longer(sample, size)
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    missing = int(sample[functions_of(sample)].isna().to_numpy().sum())
    out = int(unscored(sample).sum())
    if out:
        notes.append(
            f"{out} of the first {len(sample)} rows have no reward at all:"
            " they enter no statistic and have advantage 0"
        )
    elif missing:
        notes.append(f"{missing} of the first rows' rewards are empty and add nothing")
    if normalized:
        notes.append(NORMALIZED)
    return Reading(weights, size, tuple(notes), normalized)


def _longer(sample: pd.DataFrame, size: int) -> list[str]:
    """A note where equal prompts always stand in longer runs."""
    if "prompt" not in sample:
        return []
    found = runs(sample)
    common = reduce(gcd, found.tolist())
    several = len(found) >= 2 * len(np.unique(steps_of(sample)))
    if common % size or common == size or not several:
        return []
    return [
        f"equal prompts stand in runs of {common}: if a prompt has {common}"
        " rows, say so (group size), and fixed strides are looked for"
    ]


def _unsolved(columns: Columns, sample: pd.DataFrame, size: int | None) -> list[str]:
    """A note on functions whose weight the advantages cannot show."""
    if "advantage" not in sample:
        return []
    seen = _Seen.of(sample, size, False, False)
    live = independent(centered_in(seen.rewards, seen.group))
    rest = [n for n, alive in zip(columns.rewards, live) if not alive]
    if not rest or len(rest) == len(live):
        return []
    return [
        ", ".join(rest)
        + (" tells" if len(rest) == 1 else " tell")
        + " no rows of a group apart that the others do not;"
        " the weight may be another"
    ]
