"""The batches that a probe calls a function on.

Each batch distinguishes some computations that give equal numbers on all the others.
Every reward is a float: `torch.tensor` of whole numbers has no mean.
Random rewards are float32 numbers, the same in either precision; sums of those near 100
are rounded.
"""

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import NamedTuple

from gradebook.analysis.laws import Step, grouped
from gradebook.trainers.child import EOS, LENGTH, Given, Rewards

BATCHES: Mapping[str, Rewards] = {
    "equal groups": [
        [1.25, -0.5, 0.75, 2.0],
        [0.0, -1.125, 0.375, 0.25],
        [1.5, 3.0, -0.25, 0.875],
        [-2.0, 0.625, 1.75, 0.125],
    ],
    "groups of eight": [
        [3.5, 4.25, 3.375, 0.25, 3.0, 3.75, 7.5, 2.625],
        [3.125, 4.0, 2.5, -0.125, 3.25, 1.0, 2.125, 0.5],
        [2.0, 1.375, 2.25, 3.875, 2.375, 1.0, 3.75, 2.875],
    ],
    "0/1 rewards": [
        [1.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 1.0],
        [1.0, 1.0, 1.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
    ],
    "near 100": [
        [100.64999389648438, 100.49699401855469, 101.01199340820312, 100.25],
        [100.52099609375, 100.63900756835938, 100.75, 101.24699401855469],
        [100.03700256347656, 101.51300048828125, 100.125, 100.37600708007812],
    ],
    "near 0.001": [
        [0.0005, 0.0011, 0.0002, 0.0008],
        [0.0012, 0.0003, 0.0007, 0.0001],
        [0.0009, 0.0004, 0.0014, 0.0006],
    ],
    "near 0.000001": [
        [5e-7, 1.1e-6, 2e-7, 8e-7],
        [1.2e-6, 3e-7, 7e-7, 1e-7],
        [9e-7, 4e-7, 1.4e-6, 6e-7],
    ],
    "near 0.03": [
        [0.01, 0.05, 0.03, 0.09],
        [0.02, 0.11, 0.04, 0.07],
        [0.1, 0.0, 0.06, 0.02],
    ],
    "one of twelve": [
        [1.0] + [0.0] * 11,
        [0.0] * 5 + [1.0] + [0.0] * 6,
        [1.0] * 11 + [0.0],
    ],
    "below 0": [[-1.5, -0.25, -0.75, -2.0], [-0.5, -1.0, -0.125, -0.875]],
    "a flat group": [[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]],
    "a flat group of 0.7": [[0.7] * 12, [0.1, 0.2, 0.3, 0.4] * 3],
    "a flat group of 100.1": [[100.1] * 8, [1.0, 2.0, 3.0, 4.0] * 2],
    "flat groups alone": [[0.7] * 12, [0.7] * 12],
    "a lost row": [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]],
    "two lost rows": [
        [1.0, 0.0, 0.0, 1.0],
        [0.5, 2.0],
        [2.0, 0.25],
        [1.0, 1.0, 1.0, 0.0],
    ],
    "lone rows": [[0.5], [0.25], [0.875]],
    "a lone row": [[1.0, 0.0, 0.0, 1.0], [0.5], [0.0, 1.0, 1.0, 1.0]],
    "one prompt": [[1.25, -0.5, 0.75, 2.0, 0.125, -1.0]],
    "a prompt drawn twice": [
        [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 1.0, 0.0],
    ],
    "a missing reward": [[-1.0, -1.0, -1.0, None], [0.0, -1.0, 0.0, -1.0]],
    "a missing group": [[None, None], [1.0, 0.0]],
}

LAW_BATCHES = (
    "0/1 rewards",
    "near 100",
    "below 0",
    "a flat group",
    "a flat group of 0.7",
    "a flat group of 100.1",
    "a lost row",
    "a missing reward",
)
"""The batches that the laws change."""


LENGTHS = (3, 8, 5, 2, 7, 4, 6)
"""The tokens of a batch's rows, over and over. They are seven, which divides no group
size of a batch."""

LONGEST = max(LENGTHS)


class Marked(NamedTuple):
    """A batch with rows that may be left out of the statistics, by the one column that
    marks them; `rows` has the numbers of these rows."""

    rewards: Rewards
    column: str
    rows: Collection[int]

    def columns(self, names: Collection[str]) -> Given:
        """The named columns: a marked row has no token, or it has the most and no
        end."""
        return marked(self.rewards, names, self.column, self.rows)


_MIXED: Rewards = [
    [0.5, -1.25, 2.0, 0.75],
    [1.0, 0.25, -0.5, 3.0],
    [0.0, 1.5, -2.0, 0.125],
    [2.5, 0.0, 1.25, -0.75],
]
_BINARY: Rewards = [[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]

MARKED: Mapping[str, Marked] = {
    "rows without a token": Marked(_MIXED, LENGTH, (2, 5)),
    "rows of 0 or 1, two without a token": Marked(_BINARY, LENGTH, (0, 6)),
    # Without them 12 rows are left, which divide by the group size, and 10.
    "unfinished rows": Marked(_MIXED, EOS, (0, 7, 13, 14)),
    "unfinished rows of 0 or 1": Marked(_BINARY, EOS, (3, 9)),
}
"""Batches for functions that take the column."""


def columns_of(rewards: Rewards, names: Collection[str]) -> Given:
    """The named columns of a batch's rows, by place: all have tokens and an end."""
    return marked(rewards, names, "", ())


def marked(
    rewards: Rewards, names: Collection[str], column: str, rows: Collection[int]
) -> Given:
    """The named columns by place, with rows that `column` marks."""
    lengths, places = cycle(LENGTHS), [len(group) for group in rewards]
    tokens = [next(lengths) for _ in range(sum(places))]
    ends = [True] * len(tokens)
    for row in rows:
        tokens[row] = 0 if column == LENGTH else LONGEST
        ends[row] = column != EOS
    of_rows = {LENGTH: iter(tokens), EOS: iter(ends)}
    return {name: [[next(of_rows[name]) for _ in g] for g in rewards] for name in names}


def columns_in(step: Step, names: Collection[str]) -> Given:
    """The named columns of a changed step's rows: a row keeps its own."""
    groups = grouped(step, "prompt")
    of_row = {LENGTH: lambda row: LENGTHS[row["row"] % len(LENGTHS)], EOS: lambda _: 1}
    return {
        name: [[of_row[name](row) for row in rows] for rows in groups] for name in names
    }
