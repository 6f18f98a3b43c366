"""The batches that a probe calls a function on, and rewards in the shapes that
trainers take.

Each batch tells some computations apart that all others confuse. Random rewards are
float32 numbers, the same in either precision; sums of those near 100 are rounded.
"""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradebook.trainers.child import Rewards, flat

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
    "0/1 rewards": [[1, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0]],
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
    "a flat group": [[1, 1, 1, 1], [0, 1, 0, 1]],
    "a flat group of 0.7": [[0.7] * 12, [0.1, 0.2, 0.3, 0.4] * 3],
    "a flat group of 100.1": [[100.1] * 8, [1, 2, 3, 4] * 2],
    "flat groups alone": [[0.7] * 12, [0.7] * 12],
    "a lost row": [[1, 0, 0, 1], [0, 0, 1], [1, 1, 1, 0]],
    "two lost rows": [[1, 0, 0, 1], [0.5, 2], [2, 0.25], [1, 1, 1, 0]],
    "lone rows": [[0.5], [0.25], [0.875]],
    "a lone row": [[1, 0, 0, 1], [0.5], [0, 1, 1, 1]],
    "one prompt": [[1.25, -0.5, 0.75, 2.0, 0.125, -1.0]],
    "a prompt drawn twice": [[1, 0, 0, 1, 0, 1, 1, 1], [0, 0, 1, 0]],
    "a missing reward": [[-1, -1, -1, None], [0, -1, 0, -1]],
    "a missing group": [[None, None], [1, 0]],
}

LAW_BATCHES = (
    "0/1 rewards",
    "near 100",
    "a flat group",
    "a flat group of 0.7",
    "a flat group of 100.1",
    "a lost row",
    "a missing reward",
)
"""The batches that the laws change."""


class Rows:
    """A step's rewards in the shapes that trainers take.

    groups     rewards by prompt: a number, None, or a list, one for each function
    size       the configured group size: that of the largest group
    functions  rewards [R, functions], NaN where one is missing
    """

    def __init__(
        self,
        groups: Rewards,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.groups, self.size = groups, max(map(len, groups))
        self.prompt = [number for number, group in enumerate(groups) for _ in group]
        rows = [r if isinstance(r, (list, tuple)) else [r] for r in flat(groups)]
        each = [[math.nan if v is None else float(v) for v in row] for row in rows]
        self.functions = torch.tensor(each, dtype=dtype)
        self.weights = torch.tensor(weights or [1.0] * len(each[0]))

    @property
    def rewards(self) -> torch.Tensor:
        """Rewards [R] of the one function."""
        if self.functions.shape[1] > 1:
            raise TypeError("one reward function")
        return self.functions[:, 0]

    def lists(self) -> list[list[float]]:
        """Rewards by prompt, NaN where one is missing."""
        return self.by_prompt(self.rewards.double().tolist())

    def by_prompt(self, rows: Sequence[Any]) -> list[list[Any]]:
        values = iter(rows)
        return [[next(values) for _ in group] for group in self.groups]

    def tokens(self) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Rewards on the last of four tokens [R, 4], a full mask, prompts."""
        scores = torch.zeros(len(self.prompt), 4, dtype=self.functions.dtype)
        scores[:, -1] = self.rewards
        mask = torch.ones(scores.shape, dtype=torch.int64)
        return scores, mask, np.array(self.prompt)

    def samples(self) -> list[list[SimpleNamespace]]:
        """Each row as an object, by prompt, with what trainers keep of a rollout."""

        def sample(reward: float) -> SimpleNamespace:
            row = SimpleNamespace(reward=reward, action_mask=torch.ones(4), tools=None)
            row.get_reward_value = lambda args: reward
            row.messages_and_choices, row.exchanges = [], []
            row.additional_histories = []
            return row

        return [[sample(reward) for reward in group] for group in self.lists()]
