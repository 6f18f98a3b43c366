"""The batches that a probe calls a function on.

Each batch distinguishes some computations that give equal numbers on all the others.
Every reward is a float: `torch.tensor` of whole numbers has no mean.
Random rewards are float32 numbers, the same in either precision; sums of those near 100
are rounded.
"""

from collections.abc import Mapping
from itertools import cycle

from gradebook.analysis.laws import Step, grouped
from gradebook.trainers.child import Lengths, Rewards

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


def lengths_of(rewards: Rewards) -> Lengths:
    """The lengths of a batch's rows, by place."""
    lengths = cycle(LENGTHS)
    return [[next(lengths) for _ in group] for group in rewards]


def lengths_in(step: Step) -> Lengths:
    """The lengths of a changed step's rows: a row keeps its own."""
    return [
        [LENGTHS[row["row"] % len(LENGTHS)] for row in rows]
        for rows in grouped(step, "prompt")
    ]
