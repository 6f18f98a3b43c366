"""TRL's logs: how many rows share a prompt, and the reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every
reward function before weighting. Both are worked out from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import gcd

import numpy as np

from gradebook.core.errors import refuse
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.evaluation import layout_of
from gradebook.logs.candidates.reading import (
    Reading,
    codes_of,
    place_groups,
    steps_of,
)
from gradebook.logs.candidates.weights import (
    centered_in,
    explained,
    independent,
    normalized_rewards,
    solved,
)
from gradebook.logs.read.canonical import functions_of, unscored
from gradebook.logs.read.columns import Columns

SAMPLE_ROWS = 4096
"""So many rows, in whole steps, are looked at."""
MOST = 0.9
"""Weights have to explain this share of the rows."""
GIVEN = "as given"
ALONE = "this function alone explains the logged advantages"
SOLVED = "the logged advantages determine them"
UP_TO = "up to a factor, which the log does not determine: give them as weights"
EQUAL = "equal weights agree with the logged advantages"
ASSUMED = "TRL's default; the log does not determine them: give them as weights"
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
    if layout is not None:
        table = layout.training(table)
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        expected = f"{len(names)} numbers, for " + ", ".join(names)
        raise refuse(expected, len(weights), "weights")
    reading = Reading(
        tuple(map(float, weights)) if weights else (1.0,) * len(names),
        group_size,
        layout=layout,
    )
    plain = weights is not None or len(names) == 1 or "prompt" not in table
    sample = _sample(table)
    if not len(sample) or (plain and not columns.by_place):
        return reading
    return _best(sample, columns, reading, weights is not None)


def _sample(table: pd.DataFrame) -> pd.DataFrame:
    """The first whole steps, of about SAMPLE_ROWS rows."""
    if len(table) <= SAMPLE_ROWS or "step" not in table:
        return table
    step = table["step"].to_numpy()
    last = step[SAMPLE_ROWS]
    whole = table.iloc[:SAMPLE_ROWS][step[:SAMPLE_ROWS] != last]
    return whole if len(whole) else table[step == last]


def _best(
    sample: pd.DataFrame, columns: Columns, reading: Reading, given: bool
) -> Reading:
    """The reading whose summed rewards explain the most advantages, the
    likeliest one where several do as well."""
    sizes = [reading.group_size] if reading.group_size else _sizes(sample, columns)
    if "advantage" not in sample:
        why = GIVEN if given else ASSUMED
        reading = replace(reading, group_size=sizes[0])
        return _with_notes(sample, columns, reading, why)
    tries = [
        (
            share,
            why,
            replace(reading, weights=w, group_size=size, normalized=normalized),
        )
        for size in sizes
        for normalized in (False, True)[: len(columns.rewards)]
        for share, why, w in _tried(sample, size, normalized, reading.weights, given)
    ]
    share, why, best = max(tries, key=lambda one: one[0])
    if why == EQUAL and best.group_size == 2:
        why = ASSUMED  # any weights explain the signs in a group of two
    if share < MOST and not given:
        why = ASSUMED
        best = replace(reading, group_size=best.group_size if share else sizes[0])
    return _with_notes(sample, columns, best, why)


def _tried(
    sample: pd.DataFrame,
    size: int | None,
    normalized: bool,
    default: tuple[float, ...],
    given: bool,
) -> Iterator[tuple[float, str, tuple[float, ...]]]:
    """Weights to try, likely ones first: how large a share of the rows they
    explain, and where they come from."""
    step, group, rewards = _grouped(sample, size)
    if normalized:
        rewards = normalized_rewards(rewards, group)
    advantage = sample["advantage"].to_numpy()
    counts = ~unscored(sample) & np.isfinite(advantage)
    if not counts.any():
        yield 0.0, ASSUMED, default
        return
    rewards = np.nan_to_num(rewards[counts], posinf=0, neginf=0)
    step, group = (pd.factorize(codes[counts])[0] for codes in (step, group))
    several = len(default) > 1 and not given
    tries = {GIVEN if given or not several else EQUAL: [default]}
    if several:
        exact, sure = solved(rewards, advantage[counts], step, group)
        alone = [tuple(row) for row in np.eye(len(default)).tolist()]
        tries = {SOLVED: [exact] if exact and sure else [], **tries, ALONE: alone}
        tries[UP_TO] = [exact] if exact and not sure else []
    for why, each in tries.items():
        for weights in each:
            yield explained(rewards @ weights, advantage[counts], group), why, weights


def _grouped(
    sample: pd.DataFrame, size: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step and group of each row, int64 [R], and its rewards [R, F]; groups
    of `size` rows, or of one prompt each."""
    step = steps_of(sample)
    prompt = (
        pd.factorize(sample["prompt"])[0]
        if size is None
        else place_groups(sample, size)
    )
    return step, codes_of(step, prompt), sample[functions_of(sample)].to_numpy()


def _runs(table: pd.DataFrame) -> np.ndarray:
    """int64: how many rows with one prompt follow each other in a step."""
    labels = codes_of(steps_of(table), pd.factorize(table["prompt"])[0])
    heads = np.flatnonzero(np.diff(labels, prepend=-1))
    return np.diff(np.append(heads, len(table)))


def _sizes(sample: pd.DataFrame, columns: Columns) -> list[int | None]:
    """Group sizes that divide every run of equal prompts, largest first;
    None at last: equal prompts are a group, of whatever size."""
    if not columns.by_place:
        return [None]
    common = reduce(gcd, _runs(sample).tolist())
    return [*(n for n in range(common, 1, -1) if common % n == 0), None]


def _with_notes(
    sample: pd.DataFrame, columns: Columns, reading: Reading, why: str
) -> Reading:
    """The reading, with what a reader should know about it."""
    notes, size, several = [], reading.group_size, len(columns.rewards) > 1
    if several:
        sums = zip(reading.weights, columns.rewards)
        terms = " + ".join(f"{weight:g} {name}" for weight, name in sums)
        notes.append(f"reward = {terms} ({why})".replace("+ -", "- "))
    if why == SOLVED:
        _, group, rewards = _grouped(sample, size)
        live = independent(centered_in(np.nan_to_num(rewards), group))
        rest = [name for name, varies in zip(columns.rewards, live) if not varies]
        if rest:
            tells = " tells" if len(rest) == 1 else " tell"
            notes.append(
                ", ".join(rest) + tells + " no rows of a group apart that the others"
                " do not; the weight may be another"
            )
    if size:
        notes.append(f"groups are {size} rows each, by position")
        common = reduce(gcd, _runs(sample).tolist()) if "prompt" in sample else size
        if common > size and not common % size:
            notes.append(
                f"equal prompts stand in runs of {common}: if a prompt has {common}"
                " rows, say so (group size), and fixed strides are looked for"
            )
    elif columns.by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    empty = int(sample[functions_of(sample)].isna().to_numpy().sum())
    out = int(unscored(sample).sum())
    if out:
        notes.append(
            f"{out} of the first {len(sample)} rows have no reward at all:"
            " they enter no statistic and have advantage 0"
        )
    elif empty:
        notes.append(f"{empty} of the first rows' rewards are empty and add nothing")
    if reading.normalized:
        notes.append(NORMALIZED)
    asks = several and why in (ASSUMED, UP_TO)
    return replace(reading, notes=tuple(notes), asks_weights=asks)
