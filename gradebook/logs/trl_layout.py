"""TRL's logs: how many rows share a prompt, which rows are of evaluation, and the
reward weights.

TRL cuts groups by position, `num_generations` rows each, and writes every reward
function before weighting. Whatever a trainer does with them, a group's
advantages rise linearly with its summed rewards. Sizes and weights are tried until
this holds for all groups. Evaluation rows follow a step's training rows in TRL's
fixed-size buffer and push out the oldest ones. Letters: R rows, F reward functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from gradebook.core.errors import refuse
from gradebook.core.formatting import counted
from gradebook.core.lazy_pandas import pd
from gradebook.logs.logged_steps import LoggedSteps, Several, to_logged
from gradebook.logs.read.log_columns import Columns
from gradebook.logs.weights import NEAR, Weights, centered, least_squares, solved

SAMPLE_ROWS = 4096
"""Number of rows, in whole steps, that the search uses: its time does not grow with the
log. They are 500 groups of eight, and weights are solved if half of them agree."""
CLOSE = 1e-5
"""As `weights.NEAR`: the closer bound separates one eps from another."""
LEAST_OFF = 1e-7
"""No distance from a line below it says that one layout is better than another:
float32 numbers near 1 are 1.2e-7 apart."""
EPS = (1e-4, 1e-6, 1e-8)
"""The eps that GDPO adds to a function's deviation: TRL's first, then verl's, and one
that other estimators have."""
GIVEN = "as given"
SOLVED = "the logged advantages determine them"
ASSUMED = "TRL's default; the log does not determine them: give them as weights"
"""How the weights were found."""


@dataclass(frozen=True)
class TrlLayout:
    """How a log's rows are grouped and its rewards are summed.

    weights       one for each reward function
    group_size    rows per prompt if groups are cut by position, else None
    training      bool [R] the row is not of evaluation; None if none is
    normalized    the eps with which each function's rewards are normalized
                  in their group before they are summed (GDPO), or None
    """

    weights: tuple[float, ...]
    group_size: int | None
    training: np.ndarray | None = None
    normalized: float | None = None
    why: str = GIVEN
    notes: tuple[str, ...] = ()


def logged(table: pd.DataFrame, columns: Columns, layout: TrlLayout) -> LoggedSteps:
    """A canonical table under a layout, without rows of evaluation, its groups cut
    by position if TRL does so or the log names no prompt. A function that gave no
    reward (NaN) adds nothing, as in TRL. Raises GradebookError for a log of neither
    prompts nor a group size."""
    if layout.training is not None:
        table = table[layout.training]
    if columns.by_place or "prompt" not in table:
        table = _by_place(table, layout.group_size)
    rewards, out = _rewards(table, layout.normalized), unscored(table)
    total = np.nan_to_num(rewards.to_numpy()) @ np.array(layout.weights)
    table = table.drop(columns=rewards.columns).assign(reward=total)
    if out.any():
        table["scored"] = np.where(out, 0.0, table.get("scored", 1.0))
    if layout.normalized is None:
        return to_logged(table)
    several = Several(layout.weights, layout.normalized)
    return replace(to_logged(table), several=several)


def layout_of(
    table: pd.DataFrame,
    columns: Columns,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
) -> TrlLayout:
    """Group size and weights of a canonical table, as given or those whose summed
    rewards explain the most advantages, the likeliest if several do as well.
    Raises GradebookError when the number of weights is wrong."""
    names = columns.rewards
    if weights is not None and len(weights) != len(names):
        expected = f"{counted(len(names), 'number')}, for " + ", ".join(names)
        raise refuse(expected, len(weights), "weights")
    settled = weights is not None or len(names) == 1
    group_size = group_size if columns.by_place or "prompt" not in table else None
    layout = TrlLayout(
        weights=tuple(map(float, [1] * len(names) if weights is None else weights)),
        group_size=group_size,
        training=_training(table) if columns.by_place else None,
        why=GIVEN if settled else ASSUMED,
    )
    if len(names) == 1 and not columns.by_place:
        return layout
    sample = _sample(table, layout.training)
    common, sizes = _common_run(sample), [group_size]
    if not group_size and columns.by_place:
        # At last None: equal prompts are a group, of whatever size.
        sizes = [*_divisors(common), None]
        layout = replace(layout, group_size=sizes[0])
    best, share = _best(sample, layout, sizes)
    if _is_shown(best, share, settled):
        layout = best
    notes = _notes(layout, names, sample, common, columns.by_place)
    return replace(layout, notes=tuple(notes))


def _is_shown(best: TrlLayout, share: float, settled: bool) -> bool:
    """Whether the layout that explains this share of the rows is taken. Solved weights
    need half of them, since no other weights explain so many groups; other weights that
    a log has to show, and a normalization of each function, need all."""
    if best.why == SOLVED:
        return share >= 0.5
    if best.normalized:
        return share == 1
    # Equal weights, and others, explain most groups of two.
    return settled or (share == 1 and best.group_size != 2)


def _common_run(sample: pd.DataFrame) -> int:
    """What divides the number of rows in each run of rows with one prompt; 0 for a
    log without prompts."""
    if "prompt" not in sample:
        return 0
    heads = np.flatnonzero(np.diff(_groups(sample), prepend=-1))
    return int(np.gcd.reduce(np.diff([*heads, len(sample)])))


def _sample(table: pd.DataFrame, training: np.ndarray | None) -> pd.DataFrame:
    """The first whole steps of about SAMPLE_ROWS rows, without rows of evaluation."""
    rows = table if training is None else table[training]
    if len(rows) <= SAMPLE_ROWS:
        return rows
    step = pd.factorize(rows["step"])[0]
    return rows[step <= step[SAMPLE_ROWS]]


def _best(
    sample: pd.DataFrame, layout: TrlLayout, sizes: Sequence[int | None]
) -> tuple[TrlLayout, float]:
    """Of the layouts with these group sizes, with and without a normalization of each
    function, the one that explains the most rows, and their share; the layout itself
    and 0 if the sample has nothing to compare."""
    advantage = np.array(sample.get("advantage", [np.nan] * len(sample)))
    counts = ~unscored(sample) & np.isfinite(advantage)
    if not counts.any() or ("prompt" not in sample and not layout.group_size):
        return layout, 0.0
    ways = [None] if len(layout.weights) == 1 else [None, *EPS]
    tries: list[Tried] = []
    for size, eps in product(sizes, ways):
        layout_tried = replace(layout, group_size=size, normalized=eps)
        tries += _tried(sample, counts, layout_tried)
    # Any two rows are on a line, so pairs count only if they explain everything, and
    # if their advantages are opposite, as each of TRL's computations makes them.
    opposite = 2 in sizes and _pairs_are_opposite(sample[counts])
    shown = [
        each
        for each in tries
        if each.layout.group_size != 2 or (each.near == 1 and opposite)
    ]
    best = _likeliest(shown or tries, sizes[0])
    return best.layout, best.near


def _likeliest(tries: Sequence[Tried], whole_group: int | None) -> Tried:
    """The layout that explains the most rows. If it does not explain all, one without
    a normalization of each function: what no weights explain is none."""

    def merit(each: Tried) -> tuple[float, bool, bool, float, float]:
        # Parts of a group are on its line, too: the whole group is the better reason.
        whole = each.near == 1 and each.layout.group_size == whole_group
        # If advantages are rounded, no eps of the functions comes close to all rows,
        # and chance decides to how many. The right one leaves the least over.
        off = each.off if each.layout.normalized else 0.0
        return each.near, whole, each.close == 1, -off, each.close

    best = max(tries, key=merit)
    if best.near == 1:
        return best
    sums = [each for each in tries if not each.layout.normalized]
    return max(sums, key=merit)


def _pairs_are_opposite(sample: pd.DataFrame) -> bool:
    """In each pair of rows by position, the two advantages add up to 0."""
    advantage = sample["advantage"].to_numpy()
    group = _groups(_by_place(sample, 2))
    room = NEAR * (1 + np.bincount(group, np.abs(advantage)))
    return bool((np.abs(np.bincount(group, advantage)) <= room).all())


def _notes(
    layout: TrlLayout,
    names: Sequence[str],
    sample: pd.DataFrame,
    common: int,
    by_place: bool,
) -> list[str]:
    """The assumptions about the log, in sentences."""
    size, notes = layout.group_size, []
    if layout.training is not None:
        apart = counted(int((~layout.training).sum()), "row belongs", "rows belong")
        notes.append(
            f"{apart} to an evaluation among the training rows, or to a group that it"
            " cut short; they are set apart and not judged."
        )
    if len(names) > 1:
        pairs = zip(layout.weights, names)
        terms = " + ".join(f"{weight:g} {name}" for weight, name in pairs)
        notes.append(f"reward = {terms} ({layout.why})".replace("+ -", "- "))
    if size:
        notes.append(f"groups are {size} rows each, by position")
        if common > size and not common % size:
            notes.append(
                f"equal prompts come in runs of {common}: if each prompt has {common}"
                f" rows, set the group size to {common}, and grouping by fixed stride"
                " is tested too"
            )
    elif by_place:
        notes.append("groups are neighbouring rows with the same prompt")
    without = unscored(sample)
    if without.any():
        notes.append(
            f"no reward at all: {int(without.sum())} of the {len(sample)} rows that"
            " were looked at; such rows enter no statistic and have advantage 0"
        )
    if layout.normalized:
        notes.append(
            "each function's rewards are normalized in their group before they are"
            " summed (normalize_then_sum); the weights are known up to a factor"
        )
    return notes


class Tried(NamedTuple):
    """A layout that was tried: the shares of the rows that it explains, nearly and
    closely, and how far all are off its lines, in halves of a distance."""

    near: float
    close: float
    off: float
    layout: TrlLayout


def _tried(
    sample: pd.DataFrame, counts: np.ndarray, layout: TrlLayout
) -> Iterator[Tried]:
    """The layout, or it with weights to try, likely ones first, on the rows `counts`,
    bool [R]."""
    sample = _by_place(sample, layout.group_size)
    rewards = _rewards(sample, layout.normalized).to_numpy()[counts]
    rewards = np.nan_to_num(rewards, posinf=0, neginf=0)
    group, advantage = _groups(sample[counts]), sample["advantage"].to_numpy()[counts]
    step = pd.factorize(sample["step"][counts])[0]
    tries = [layout]
    if layout.why == ASSUMED:
        likely = [
            (_upright(solved(rewards, advantage, group, step)), SOLVED),
            (_upright(least_squares(rewards, advantage, group)), SOLVED),
            (layout.weights, "equal weights agree with the logged advantages"),
        ]
        for alone in np.eye(rewards.shape[1]).tolist():
            why = "this function alone explains the logged advantages"
            likely.append((tuple(alone), why))
        tries = [replace(layout, weights=w, why=why) for w, why in likely if w]
    for each in tries:
        total = rewards @ each.weights
        falls = centered(total, group) @ centered(advantage, group) < 0
        values = -advantage if falls and each.why == SOLVED else advantage
        near, close = (explained(total, values, group, n) for n in (NEAR, CLOSE))
        off = float(np.sqrt(np.mean(_off_lines(total, values, group)[0] ** 2)))
        yield Tried(near, close, round(math.log2(max(off, LEAST_OFF)), 1), each)


def _upright(weights: Weights | None) -> Weights | None:
    """The weights; their opposites if none is above 0, since a trainer that rewards
    nothing is less likely than advantages with the opposite sign."""
    if weights is None or max(weights) > 0:
        return weights
    return tuple(-weight for weight in weights)


def explained(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray, near: float = NEAR
) -> float:
    """The share of rows in groups whose advantages rise linearly with
    the rewards, float64 [R] each."""
    away, rises = _off_lines(rewards, advantage, group)
    good = (np.bincount(group, away > near) == 0) & rises
    return float(good[group].mean())


def _off_lines(
    rewards: np.ndarray, advantage: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far each row is from the line through its group, for advantages of size 1,
    float64 [R], and whether the line does not fall, bool [G]."""
    away, line = centered(rewards, group), centered(advantage, group)
    square = np.bincount(group, away**2)
    flat = square <= 1e-18
    rise = np.bincount(group, away * line) / np.where(flat, 1, square)
    off = np.abs(line - away * rise[group]) / (1 + np.abs(advantage))
    return off, flat | (rise >= 0)


def _rewards(table: pd.DataFrame, eps: float | None = None) -> pd.DataFrame:
    """The functions' rewards, [R, F]; with an eps less their group's mean and over
    its standard deviation (ddof 1) + eps: NaN if empty, 0 for the only one of a
    group."""
    rewards = table.filter(like="reward ")
    if not eps:
        return rewards
    groups = rewards.groupby(_groups(table))
    values = (rewards - groups.transform("mean")) / (groups.transform("std") + eps)
    return values.fillna(0).where(rewards.notna())


def unscored(table: pd.DataFrame) -> np.ndarray:
    """bool [R]: no function gave the row a reward."""
    return _rewards(table).isna().all(axis=1).to_numpy()


def _by_place(table: pd.DataFrame, size: int | None) -> pd.DataFrame:
    """The table with groups of `size` rows of a step, if any, as prompts."""
    if not size:
        return table
    place = table.groupby("step", sort=False, dropna=False).cumcount()
    return table.assign(prompt=place // size)


def _groups(table: pd.DataFrame) -> np.ndarray:
    """int64 [R], one number for each prompt of a step."""
    return table.groupby(["step", "prompt"], sort=False).ngroup().to_numpy()


def _divisors(rows: int) -> list[int]:
    """The divisors of a number of rows, from the number itself down to 2."""
    return [size for size in range(rows, 1, -1) if rows % size == 0]


def _training(table: pd.DataFrame) -> np.ndarray | None:
    """bool [R]: the row is of a whole group of training. At least half of the steps
    are whole groups of one prompt. In the others, which have as many rows, evaluation
    cut the first group short, by as many in each, and comes at the end. None if
    all steps are whole groups, or no size fits."""
    heads = np.flatnonzero(np.diff(pd.factorize(table["step"])[0], prepend=-1))
    steps = np.split(pd.factorize(table["prompt"])[0], heads[1:])
    rows = max(map(len, steps))
    for size in _divisors(rows):
        whole = [_whole(prompts, size) for prompts in steps]
        odd = [n for n, rows in enumerate(whole) if not rows.all()]
        if not odd:
            return None
        if 2 * len(odd) > len(steps) or min(len(steps[n]) for n in odd) < rows:
            continue
        cuts = [[_whole(steps[n], size, cut) for n in odd] for cut in range(size)]
        cut = max(cuts, key=lambda cut: sum(map(np.sum, cut)))
        if all(map(np.any, cut)):
            for n, training in zip(odd, cut):
                whole[n] = training
            return np.concatenate(whole)
    return None


def _whole(prompts: np.ndarray, size: int, cut: int = 0) -> np.ndarray:
    """bool [R]: the rows of a step, behind the `cut` first, that are of whole groups
    of one prompt, until the first group that is not."""
    rows = np.zeros(len(prompts), dtype=bool)
    stop = len(prompts) - (len(prompts) - cut) % size
    groups = prompts[cut:stop].reshape(-1, size)
    whole = np.logical_and.accumulate((groups == groups[:, :1]).all(axis=1))
    rows[cut:stop] = whole.repeat(size)
    return rows
