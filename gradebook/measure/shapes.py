"""Rewards in the shapes that trainers take."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradebook.trainers.child import Rewards, flat


class TrainerRows:
    """A step's rewards in the shapes that trainers take.

    groups     rewards by prompt: a number, None, or a list, one for each function
    size       the configured group size: that of the largest group
    functions  rewards [R, functions], NaN if one is missing
    lengths    response tokens of each row, 1 to 4; all four without it
    """

    def __init__(
        self,
        groups: Rewards,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
        lengths: Sequence[int] | None = None,
    ) -> None:
        self.groups, self.size = groups, max(map(len, groups))
        self.prompt = [number for number, group in enumerate(groups) for _ in group]
        rows = [r if isinstance(r, (list, tuple)) else [r] for r in flat(groups)]
        each = [[math.nan if v is None else float(v) for v in row] for row in rows]
        self.functions = torch.tensor(each, dtype=dtype)
        self.weights = torch.tensor(weights or [1.0] * len(each[0]))
        self.lengths = torch.tensor(lengths or [4] * len(self.prompt))

    @property
    def rewards(self) -> torch.Tensor:
        """Rewards [R] of the one function."""
        if self.functions.shape[1] > 1:
            raise TypeError("one reward function")
        return self.functions[:, 0]

    def lists(self) -> list[list[float]]:
        """Rewards by prompt, NaN if one is missing."""
        return self.by_prompt(self.rewards.double().tolist())

    def by_prompt(self, rows: Sequence[Any]) -> list[list[Any]]:
        values = iter(rows)
        return [[next(values) for _ in group] for group in self.groups]

    def tokens(self) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Rewards on the last token of each response [R, 4], its mask, prompts."""
        scores = torch.zeros(len(self.prompt), 4, dtype=self.functions.dtype)
        scores[torch.arange(len(scores)), self.lengths - 1] = self.rewards
        mask = (torch.arange(4) < self.lengths[:, None]).long()
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
