"""Curves: logs of one line a step, which hold no rows, and what they tell.

What a key means was read in its writer's repository; tests/logs/formats/README.md
names the files and commits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradebook.core.formatting import counted, short
from gradebook.core.lazy_pandas import pd
from gradebook.core.tolerance import EXACT
from gradebook.logs.read.log_columns import NAMES

KEYS = re.compile(
    r"(?:.*[/_])?(?:loss|grad_norm|learning_rate|lr|kl|entropy|reward_std|epoch"
    r"|frac_reward_zero_std|clip_ratio|mean|max|min|std|frac_mixed|frac_all_good"
    r"|frac_all_bad|num_tokens|throughput|step_time)(?:[/_](?:mean|max|min|std))?",
    re.IGNORECASE,
)
"""Keys of curves, under any prefix: a number for a whole step."""
LEAST = 2
"""So many such keys make a log one of curves: one may be a column of a table."""
ROWS = frozenset({"completion", "completions", "response", "output"}).union(
    NAMES["prompt"], NAMES["advantage"]
)
"""Names that only rows have."""

LARGEST_GROUP = 64
"""Groups up to this size are looked for behind a largest advantage."""
CLOSE = 3e-6
"""How near a logged number is to the one that explains it, over its size. The numbers
of two groups are 4e-5 apart or more, but for groups of 30 (ddof 0) and 31 (ddof 1) rows
with some eps; if both explain a number, neither is named."""
EPS = (0.0, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class Writer:
    """A trainer that logs curves.

    keys   patterns of keys that only this trainer has
    rows   how to have it log rows
    """

    trainer: str
    keys: str
    rows: str


WRITERS = (
    Writer(
        "TRL",
        r"frac_reward_zero_std|rewards/.*/(?:mean|std)|completions/.*",
        "set log_completions=True and check the folder `completions` in the output"
        " folder",
    ),
    Writer(
        "verl",
        r"critic/(?:score|rewards|advantages|returns)/.*|actor/.*",
        "set trainer.rollout_data_dir, which logs rewards without advantages, or record"
        " both with gradebook.Recorder",
    ),
    Writer(
        "tinker-cookbook",
        r"(?:.*/)?by_group/.*",
        "check the files `train_rollout_summaries.jsonl`, which hold rewards without"
        " advantages, or record both with gradebook.Recorder",
    ),
)
OTHERS = "log one row for each rollout with its prompt, reward and advantage, for"
OTHERS += " example with gradebook.Recorder"


def as_curves(names: Sequence[str]) -> bool:
    """A log with these columns holds curves over steps, and no rows."""
    if {name.lower() for name in names} & ROWS:
        return False
    return sum(KEYS.fullmatch(name) is not None for name in names) >= LEAST


@dataclass(frozen=True)
class Curves:
    """Curves of a run: who wrote them, how many steps they have, what they tell, and
    how to log rows."""

    trainer: str
    steps: int
    tell: tuple[str, ...]
    rows: str


def curves_of(table: pd.DataFrame) -> Curves:
    """What curves tell; each sentence only if its keys are there. `table` has a column
    for each key and a row for each line."""
    writers = (w for w in WRITERS if any(re.fullmatch(w.keys, n) for n in table))
    writer = next(writers, Writer("", "", OTHERS))
    numbers = table.apply(pd.to_numeric, errors="coerce")
    tell = (*_equal(numbers), *_largest(numbers), *_deviations(numbers))
    return Curves(writer.trainer, len(table), tell, writer.rows)


EQUAL: Mapping[str, tuple[str, ...]] = {
    "frac_reward_zero_std": ("frac_reward_zero_std",),
    "by_group/frac_all_good and frac_all_bad": (
        "by_group/frac_all_good",
        "by_group/frac_all_bad",
    ),
}
"""Words for keys -> the keys whose sum is the share of prompts with equal rewards."""


def _equal(numbers: pd.DataFrame) -> list[str]:
    """The share of prompts whose rewards are all equal."""
    tell = []
    for words, keys in EQUAL.items():
        columns = [
            next((n for n in numbers if n == key or n.endswith("/" + key)), None)
            for key in keys
        ]
        if None in columns:
            continue
        share = numbers[columns].sum(axis=1, min_count=len(columns)).dropna()
        if not len(share):
            continue
        low, high = share.min(), share.max()
        if high - low < 5e-4:
            text = f"{low:.0%} of the prompts have equal rewards at every step"
        else:
            third = max(1, len(share) // 3)
            first, last = share[:third].mean(), share[-third:].mean()
            text = (
                f"{first:.0%} of the prompts have equal rewards in the first third of"
                f" the steps and {last:.0%} in the last"
            )
        tell.append(f"{text} ({words}): they teach nothing.")
    return tell


def _largest(numbers: pd.DataFrame) -> list[str]:
    """What a largest advantage says of the group's size and of ddof."""
    tell = []
    for name in numbers:
        if re.fullmatch(r"(?:.*/)?advantages?[/_]max", name):
            largest = numbers[name].max()
            if explained := _one_success(float(largest)):
                tell.append(
                    f"The largest {name} is {largest:.6g}, which is {explained}."
                )
    return tell


def _one_success(largest: float) -> str:
    """The group in which one success among equal failures has this advantage, in
    words; "" if none has, or several have, or an undivided one could be it."""
    groups = set[tuple[int, int]]()
    for size in range(3, LARGEST_GROUP + 1):
        mean = 1 / size
        for ddof in (0, 1):
            deviation = np.sqrt(mean * (1 - mean) * size / (size - ddof))
            for eps in EPS:
                value = (1 - mean) / (deviation + eps)
                if abs(value - largest) <= CLOSE * largest:
                    groups.add((size, ddof))
    if len(groups) != 1 or _is_undivided(largest):
        return ""
    ((size, ddof),) = groups
    root = f"{size - 1}/√{size}" if ddof else f"√{size - 1}"
    return (
        f"{root}: one success in a group of {size}, over a deviation with ddof {ddof}"
    )


def _is_undivided(largest: float) -> bool:
    """Rewards of 1 and -1 give it without a division: in groups of 4 one success has
    1.5, which is also 3/√4."""
    sizes = np.arange(3, LARGEST_GROUP + 1)
    return bool((np.abs(2 - 2 / sizes - largest) <= CLOSE * largest).any())


def _deviations(numbers: pd.DataFrame) -> list[str]:
    """Two deviations of the same rewards, one with ddof 0 and one with ddof 1."""
    names = [n for n in numbers if re.fullmatch(r"(?:.*/)?(?:.*_)?std", n)]
    for smaller in names:
        for larger in names:
            pair = numbers[[smaller, larger]].dropna()
            pair = pair[(pair > EXACT).all(axis=1)]
            if smaller == larger or not len(pair):
                continue
            ratio = (pair[smaller] / pair[larger]) ** 2  # (n - 1) / n
            mean = float(ratio.mean())
            size = round(1 / (1 - mean)) if mean < 1 else 0
            if not 2 <= size <= 4096 or abs(ratio - (1 - 1 / size)).max() > 2e-3 / size:
                continue
            small, large = (short(pair[n].iloc[0], 3) for n in (smaller, larger))
            return [
                f"{smaller} is {small} beside {large} of {larger}: the same"
                f" deviation over {counted(size, 'row')} with ddof 0 and with ddof 1."
            ]
    return []
