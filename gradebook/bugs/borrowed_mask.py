"""Borrowed mask: SkyRL issue 1492, PR 1507, fixed in v0.2.0."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import tokens


def token_advantage(batch: Batch, token_return: Tensor, credited: Tensor) -> Tensor:
    """What each token is owed, 0 at places at which the last row of its
    rollout is masked. float [R, T].

    The trainer sees earlier turns trained only at places at which the
    last turn has a token.
    """
    advantage = tokens.token_advantage(batch, token_return, credited)
    rollout, rows = batch.rollout_index, torch.arange(batch.rows)
    last = torch.zeros_like(rows).scatter_reduce(0, rollout, rows, "amax")
    return torch.where(batch.mask[last[rollout]], advantage, 0)
