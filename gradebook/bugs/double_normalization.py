"""Double normalization: GEM PR 113, on its main branch by default."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import surviving, whitened
from gradebook.engine.segments import weighted_mean


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Standardized a second time, over the transitions of the step.

    float [R]. The trainer sees advantages whose size depends on the
    lengths of other episodes, and signal where every group is constant.
    """
    a = whitened(batch, standardized, credited)
    m = weighted_mean(batch.step_index, a, batch.kept_steps)
    v = weighted_mean(batch.step_index, a * a, batch.kept_steps) - m * m
    a = (a - m) / (v.clamp(min=0).sqrt() + 1e-9)
    return surviving(batch, a)
