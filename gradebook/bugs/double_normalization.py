"""Double normalization: GEM PR 113, on its main branch by default."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import surviving, whitened
from gradebook.engine.segments import weighted_mean


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Standardized a second time, over the transitions of the step, or
    what `second_over` says.

    float [R]. The trainer sees advantages whose size depends on the
    lengths of other episodes, and signal where every group is constant.
    """
    a = whitened(batch, standardized, credited)
    over = batch.settings.second_over
    if over == "none":
        return surviving(batch, a)
    each = torch.ones_like(batch.steps)
    weight = each if over == "rows" else getattr(batch, over)
    m = weighted_mean(batch.step_index, a, weight)
    v = weighted_mean(batch.step_index, a * a, weight) - m * m
    a = (a - m) / (v.clamp(min=0).sqrt() + 1e-9)
    return surviving(batch, a)
