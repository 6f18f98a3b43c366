"""Partial groups: AReaL issue 1419, fixed by PR 1454 (bbc10f0e9)."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch


def group(batch: Batch) -> Tensor:
    """Every `group_size` rows in batch order, whatever their prompt; rows
    past the last full stride are in no group (-1). int64 [R].

    The trainer sees rollouts scored against another prompt's rewards, and
    a tail of advantages near reward / eps.
    """
    size, step = batch.group_size, batch.step_index
    stride = batch.place // size[step]
    full = stride < (batch.rows_per_step // size)[step]
    return torch.where(full, batch.within_step(stride), -1)
