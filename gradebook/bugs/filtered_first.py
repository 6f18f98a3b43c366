"""Filtered first: open-instruct PR 1794, open."""

from __future__ import annotations

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import credited, divisible


def group(batch: Batch) -> Tensor:
    """The remaining rows, cut into blocks of `group_size` whatever their
    prompt; dropped rows are in no group (-1). int64 [R].

    The trainer sees rollouts compared with another prompt's rollouts.
    Raises GradebookError, as the trainer stops, where the rows that are
    left do not divide by the group size.
    """
    left = credited(batch)
    divisible(batch, left)
    stride = batch.place_among(left) // batch.group_size[batch.step_index]
    group = batch.within_step(torch.where(left, stride, -1))
    return torch.where(left, group, -1)
