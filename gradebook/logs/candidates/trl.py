"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.evaluation import Layout, layout_of
from gradebook.logs.candidates.fit import ALIKE
from gradebook.logs.candidates.sampled import (
    SOLVED,
    Sampled,
    codes_of,
    digits_of,
    merit_of,
    normalized_rewards,
    steps_of,
)
from gradebook.logs.candidates.weights import centered_in, independent, solved
from gradebook.logs.read.canonical import summed, unscored
from gradebook.logs.read.columns import Columns

SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""

LONGEST, FEW, STRIDED_ROWS = 16, 6, 256
"""Where nothing else fits: strides up to here, with so many weights each,
over so many rows."""

VARIANTS = ((False, False), (True, False), (False, True))
"""Whether each function's rewards are normalized before they are summed,
and whether a row without any reward counts as 0 (TRL before v1.6.0)."""

STRIDED = "fixed strides with these weights give the logged advantages"
GIVEN = "as given"
NORMALIZED = (
    "each function's rewards are normalized in their group before they are"
    " summed (normalize_then_sum); the weights are known up to a factor"
)
ASSUMED = "TRL's default; the log does not determine them"


@dataclass(frozen=True)
class Reading:
    """How a log's rows are grouped and its rewards are summed.

    weights     one for each reward function
    group_size  rows per prompt where groups are cut by position, else None
    notes       what a reader should know about both
    normalized  each function's rewards are normalized in their group
                before they are summed
    layout      where rows of evaluation stand, None without any
    """

    weights: tuple[float, ...]
    group_size: int | None
    notes: tuple[str, ...] = ()
    normalized: bool = False
    layout: Layout | None = None


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
        raise GradebookError(
            key="weights",
            expected=f"{len(names)} numbers, for " + ", ".join(names),
            found=str(len(weights)),
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


def rewarded(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """The canonical table, its groups cut, with one reward."""
    if reading.normalized:
        table = table.copy()
        step = steps_of(table)
        names = [f"reward {at}" for at in range(len(reading.weights))]
        group = codes_of(step, pd.factorize(table["prompt"])[0])
        table[names] = normalized_rewards(table[names].to_numpy(), group)
    return summed(table, reading.weights)


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
    out = unscored(sample)
    given = None if weights is None else tuple(map(float, weights))
    if "advantage" not in sample or out.all():
        default = given or tuple(1.0 for _ in columns.rewards)
        why = ASSUMED if weights is None else GIVEN
        return Reading(
            default, sizes[0], _notes(columns, default, why, sizes[0], sample)
        )
    if given is None and len(columns.rewards) == 1:
        plain = merit_of(Sampled.of(sample, sizes[0], False), (1.0,), ASSUMED)
        if plain[1] and _explains(plain, sample):
            notes = _notes(columns, (1.0,), ASSUMED, sizes[0], sample)
            return Reading((1.0,), sizes[0], notes)
    best: tuple[tuple[float, ...], Reading] | None = None
    for size in sizes:
        for normalized, zeros in VARIANTS:
            rare = normalized or zeros
            if rare and best and _explains(best[0], sample):
                continue
            if zeros and not out.any():
                continue
            seen = Sampled.of(sample, size, normalized, zeros)
            for each, why in _tried(seen, given):
                notes = _notes(columns, each, why, size, sample)
                if normalized:
                    notes = (*notes, NORMALIZED)
                enough = best is not None and _explains(best[0], sample)
                if best is not None and enough:
                    _, own, near, digits = best[0]
                    if near >= -ALIKE and own and digits >= -digits_of(each):
                        continue  # no shorter weights than those that explain
                merit = merit_of(seen, each, why, enough)
                if best is None or merit > best[0] and merit[0]:
                    best = merit, Reading(each, size, notes, normalized)
    assert best is not None
    if given is None and not _explains(best[0], sample):
        for each in _strided(_sample(sample, STRIDED_ROWS)):
            notes = _notes(columns, each, STRIDED, sizes[0], sample)
            return Reading(each, sizes[0], notes)
    return best[1]


def _strided(sample: pd.DataFrame) -> Iterator[tuple[float, ...]]:
    """Weights under which fixed strides of some size, whatever the groups,
    give the advantages of all their rows."""
    largest = int(runs(sample).max()) if "prompt" in sample else 0
    rows = sample.groupby(steps_of(sample)).cumcount().to_numpy()
    count = np.bincount(steps_of(sample))[steps_of(sample)]
    for size in range(2, min(2 * largest, LONGEST) + 1):
        part = sample[rows < count // size * size]
        if not len(part) or unscored(part).any():
            continue
        seen = Sampled.of(part, size, False)
        for each, why in _tried(seen, None)[:FEW]:
            merit = merit_of(seen, each, why)
            if _explains(merit, part):
                yield each


def _explains(merit: tuple[float, ...], sample: pd.DataFrame) -> bool:
    """Every step fits."""
    steps = sample["step"].nunique() if "step" in sample else 1
    return merit[0] >= steps


def _tried(
    seen: Sampled, given: tuple[float, ...] | None
) -> list[tuple[tuple[float, ...], str]]:
    """Weights to try, and where they come from, likely ones first."""
    if given is not None:
        return [(given, GIVEN)]
    default = tuple(1.0 for _ in seen.rewards.T)
    if not np.isfinite(seen.advantage).all():
        return [(default, ASSUMED)]
    found = solved(seen.rewards, seen.advantage, seen.step, seen.group)
    why = SOLVED if default in found else ASSUMED
    return [(default, why), *((w, SOLVED) for w in found if w != default)]


def _notes(
    columns: Columns,
    weights: tuple[float, ...],
    why: str,
    size: int | None,
    sample: pd.DataFrame,
) -> tuple[str, ...]:
    notes = []
    if len(weights) > 1 or why == SOLVED and weights != (1.0,):
        terms = " + ".join(
            f"{w:g} {n}" for w, n in zip(weights, columns.rewards)
        )
        notes.append(f"reward = {terms} ({why})".replace("+ -", "- "))
    if why == SOLVED:
        notes += _unsolved(columns, sample, size)
    if size:
        notes.append(f"groups are {size} rows each, by position")
        notes += _longer(sample, size)
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    names = [f"reward {at}" for at in range(len(weights))]
    missing = int(sample[names].isna().to_numpy().sum())
    out = int(unscored(sample).sum())
    if out:
        notes.append(
            f"{out} of the first {len(sample)} rows have no reward at all:"
            " they enter no statistic and have advantage 0"
        )
    elif missing:
        notes.append(
            f"{missing} of the first rows' rewards are empty and add nothing"
        )
    return tuple(notes)


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


def _unsolved(
    columns: Columns, sample: pd.DataFrame, size: int | None
) -> list[str]:
    """A note on functions whose weight the advantages cannot show."""
    if "advantage" not in sample:
        return []
    seen = Sampled.of(sample, size, False)
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
