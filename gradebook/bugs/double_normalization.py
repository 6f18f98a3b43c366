"""Double normalization: GEM PR 113, open; on if critic_type2 normalizes, too."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import surviving, whitened
from gradebook.engine.segments import weighted_mean


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Standardized a second time, over the step, each row with the
    weight that `second_over` says: its transitions.

    float [R]. The trainer sees advantages whose size depends on the
    lengths of other episodes, signal where every group is constant, and
    NaN if rounding leaves a variance below 0: the trainer works in
    float32 and has no floor for the variance.
    """
    a = whitened(batch, standardized, credited)
    over = batch.settings.second_over
    if over == "none":
        return surviving(batch, a)
    each = torch.ones_like(batch.steps)
    weight = each if over == "rows" else getattr(batch, over)
    x = a.float()
    m = weighted_mean(batch.step_index, x, weight)
    v = weighted_mean(batch.step_index, x * x, weight) - m * m
    a = ((x - m) / (v.sqrt() + 1e-9)).to(a.dtype)
    return surviving(batch, a)
