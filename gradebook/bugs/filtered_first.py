"""Filtered first: open-instruct PR 1794, open."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.grouping import credited


def group(batch: Batch) -> Tensor:
    """The remaining rows, cut into blocks of `group_size` whatever their
    prompt; dropped rows are in no group (-1). int64 [R].

    The trainer sees rollouts compared with another prompt's rollouts.
    Raises GradebookError if the remaining rows do not divide by the
    group size; the trainer stops there, too.
    """
    left, size = credited(batch), batch.group_size
    step = batch.step_index
    rows = torch.bincount(step[left], minlength=batch.step_count)
    uneven = rows % size != 0
    if bool(uneven.any()):
        first = int(uneven.int().argmax())
        where = f"step {int(batch.step[step == first][0])}: {int(rows[first])} rows"
        message = f"{where} do not divide by the group size {int(size[first])}"
        raise GradebookError(message, steps=uneven)
    stride = torch.zeros_like(step)
    stride[left] = batch.select(left).place // size[step[left]]
    return torch.where(left, batch.within_step(stride), -1)
