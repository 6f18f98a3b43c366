"""Whole batch: slime issues 1414 and 2230, open."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch


def group(batch: Batch) -> Tensor:
    """Every `group_size` rows in batch order if the step has exactly
    `prompts_per_step` times as many rows; else all rows of the step.
    int64 [R].

    The trainer sees whole prompts above or below 0 on steps that lost a
    row.
    """
    full = batch.rows_per_step == batch.group_size * batch.prompts_per_step
    stride = batch.place // batch.group_size[batch.step_index]
    return batch.within_step(torch.where(full[batch.step_index], stride, 0))
