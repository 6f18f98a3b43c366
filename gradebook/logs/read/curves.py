"""Curves: logs of one line a step, which hold no rows, and what they tell.

What a key means was read in its writer's repository; tests/logs/formats/README.md
names the files and commits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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

GROUPS = (*range(2, 17), *range(20, 65, 4))
"""Sizes of groups that are looked for behind a largest advantage: all up to 16 and
multiples of 4 up to 64."""
CLOSE = 3e-6
"""How near a logged number is to the one that explains it, over its size: float32 moves
it by less."""
UNDIVIDED = 2.0**-22
"""The same for a reward less its group's mean, which nothing divides: the mean and the
difference, each rounded to float32, on both of its terms."""
LEAST_DECIMALS, MOST_DECIMALS = 4, 6
"""Numbers whose longest has so many decimals may have been rounded to them. One of
fewer is taken as it is written: of 300 numbers drawn from 1 to 4, FEW groups or fewer
explained 0.3 % as floats, 4 % with four decimals and 17 % with three (2026-11-28)."""
FEW = 3
"""So many explanations are told apart; more say nothing of a group."""
EPS = (0.0, 1e-8, 1e-6, 1e-4)
NEGLIGIBLE = 5e-4
"""A smaller share of prompts is 0 %, and shares that differ by less are one."""
SIZE = r"(?:.*[/._])?(?:num_generations|group_size|n_samples_per_prompt|rollout[/._]n)"
"""Keys of the configured group size."""


@dataclass(frozen=True)
class Writer:
    """A trainer that logs curves.

    keys   patterns of keys that only this trainer has: `frac_reward_zero_std` is
           TRL's too, but scripts without TRL log it, and ROLL has keys of `actor/`
    rows   how to have it log rows
    """

    trainer: str
    keys: str
    rows: str


WRITERS = (
    Writer(
        "TRL",
        r"rewards/.*/(?:mean|std)|completions/.*",
        "set log_completions=True and check the folder `completions` in the output"
        " folder",
    ),
    Writer(
        "verl",
        r"critic/(?:score|rewards|advantages|returns)/.*",
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
        share = _of_training(numbers, keys)
        if not len(share):
            continue
        low, high = share.min(), share.max()
        at_steps = f"At each of the {counted(len(share), 'step')} that log it"
        if high < NEGLIGIBLE:
            tell.append(f"{at_steps}, no prompt has equal rewards ({words}).")
            continue
        if high - low < NEGLIGIBLE:
            text = f"{at_steps}, {_percent(low)} of the prompts have equal rewards"
        else:
            third = max(1, len(share) // 3)
            first, last = share[:third].mean(), share[-third:].mean()
            text = (
                f"{_percent(first)} of the prompts have equal rewards in the first"
                f" third of the steps and {_percent(last)} in the last"
            )
        tell.append(f"{text} ({words}): they teach nothing.")
    return tell


def _percent(share: float) -> str:
    return f"{share:.1%}" if 0 < share < 0.01 else f"{share:.0%}"


EVALUATION = re.compile(r"(?:.*[/_])?(?:test|eval|val|validation)(?:[/_].*)?")
"""The beginning of keys that are no part of the training."""


def _of_training(numbers: pd.DataFrame, keys: Sequence[str]) -> pd.Series:
    """The sum of the training's curves with these keys, by step, all of one prefix: of
    several prefixes that of all environments, else the one that most steps have."""
    prefixes = {n.removesuffix(keys[0]) for n in numbers if n.endswith(keys[0])}
    curves = {}
    for prefix in sorted(prefixes):
        columns = [prefix + key for key in keys]
        is_whole = not prefix or prefix.endswith("/")
        if is_whole and {*columns} <= {*numbers} and not EVALUATION.fullmatch(prefix):
            total = numbers[columns].sum(axis=1, min_count=len(columns))
            curves[prefix] = total.dropna()
    of_all = {prefix: c for prefix, c in curves.items() if "all/" in prefix}
    return max((of_all or curves).values(), key=len, default=pd.Series(dtype=float))


def _largest(numbers: pd.DataFrame) -> list[str]:
    """What a largest advantage says of the group's size and of ddof."""
    tell, size = [], _group_size(numbers)
    for name in numbers:
        if not re.fullmatch(r"(?:.*/)?advantages?[/_]max", name):
            continue
        values = numbers[name].dropna()
        largest = float(values.max()) if len(values) else 0.0
        rounded_by = _rounded_by(values.tolist())
        explained = _successes(largest, max(CLOSE * largest, rounded_by), size)
        is_undivided = _is_undivided(largest, max(UNDIVIDED * largest, rounded_by))
        told = _successes_told(explained, largest, is_undivided)
        if told:
            tell.append(f"The largest {name} is {largest:.6g}{told}.")
    return tell


def _group_size(numbers: pd.DataFrame) -> int | None:
    """The group size that a key of the log gives; None without one, or if it varies."""
    given = {
        float(value)
        for name in numbers
        if re.fullmatch(SIZE, name)
        for value in numbers[name].dropna()
    }
    whole = len(given) == 1 and min(given) >= 2 and min(given).is_integer()
    return int(min(given)) if whole else None


def _rounded_by(values: Sequence[float]) -> float:
    """Half of the last decimal, if the numbers may have been rounded to it; else 0."""
    decimals = max((len(repr(v).partition(".")[2]) for v in values), default=0)
    if LEAST_DECIMALS <= decimals <= MOST_DECIMALS:
        return 0.500001 * 10.0**-decimals
    return 0.0


@dataclass(frozen=True, order=True)
class Successes:
    """A group of `size` rows in which `count` have the higher of two rewards, over a
    deviation with this ddof. With ddof 0 only the share counts: it is in lowest terms,
    unless the group's size is known."""

    size: int
    count: int
    ddof: int
    is_known: bool = False

    @property
    def square(self) -> Fraction:
        """The square of a success's advantage, without eps."""
        odds = Fraction(self.size - self.count, self.count)
        return odds * Fraction(self.size - self.ddof, self.size)

    def advantage(self, eps: float) -> float:
        """A success's advantage, if the rewards are 0 and 1."""
        away = 1 - self.count / self.size
        return away / (away / float(self.square) ** 0.5 + eps)

    @property
    def words(self) -> str:
        """As `3/√4: one success in a group of 4, over a deviation with ddof 1`."""
        square = self.square
        root = f"√{square}" if square.denominator == 1 else f"√({square})"
        if self.ddof and self.count == 1:
            root = f"{self.size - 1}/√{self.size}"
        successes = f"{self.count} successes" if self.count > 1 else "one success"
        where = f"{successes} in a group of {self.size}"
        if not self.ddof and not self.is_known:
            where += " or the same share of a larger one"
        return f"{root}: {where}, over a deviation with ddof {self.ddof}"


def _successes(largest: float, within: float, size: int | None) -> list[Successes]:
    """The groups in which a success has this advantage: of the usual sizes, or of the
    known one."""
    found = set[Successes]()
    for rows in (size,) if size else GROUPS:
        for count in range(1, rows):
            for ddof in (0, 1):
                group = Successes(rows, count, ddof, size is not None)
                values = map(group.advantage, EPS)
                if not any(abs(value - largest) <= within for value in values):
                    continue
                if ddof == 0 and size is None:
                    share = Fraction(count, rows)
                    group = Successes(share.denominator, share.numerator, ddof)
                found.add(group)
    return sorted(found)


def _successes_told(
    found: Sequence[Successes], largest: float, is_undivided: bool
) -> str:
    """The groups that explain a largest advantage, as the end of a sentence; "" without
    one, and if undivided rewards of 0 and 1 explain it. The largest advantage is that
    of the prompt with the smallest share of successes."""
    if not found or (is_undivided and largest <= 1):
        return ""
    if len(found) > FEW:
        return (
            f", which {len(found)} different groups explain: it tells neither the"
            " group's size nor ddof"
        )
    told = ", which is " + "; or ".join(group.words for group in found)
    if any(group.count > 1 for group in found):
        told += ". That is the prompt with the smallest share of successes"
    if is_undivided:
        told += ". Rewards of 1 and −1 that no deviation divides can give it, too"
    return told


def _is_undivided(largest: float, within: float) -> bool:
    """Rewards of 1 and -1, or of 0 and 1, give it without a division: in groups of 4
    one success has 1.5, which is also 3/√4."""
    parts = largest * np.arange(1, max(GROUPS))
    near = np.abs(parts - parts.round()) <= within * np.arange(1, max(GROUPS))
    return bool(largest <= 2 and near.any())


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
