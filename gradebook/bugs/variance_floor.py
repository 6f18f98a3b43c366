"""Variance floor: verl PR 6348, fixed in v0.8.0."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import divisor
from gradebook.engine.segments import by_group


def scale(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor, baseline: Tensor
) -> Tensor:
    """The group's variance in one float32 pass, raised to eps before the
    root; eps is added again after it. float [R].

    The trainer sees small advantages in groups whose deviation is below
    the root of eps, a thousand times eps.
    """
    s, groups = batch.settings, by_group(group, counted)
    if s.scale != "group_std":
        return divisor(s.scale, batch, score, groups, baseline)
    x = score.float()
    n, total = groups.n.clamp(min=1), groups.sum(x)
    above = groups.sum(x * x) - total * total / n
    variance = above / (n - s.ddof).clamp(min=1)
    deviation = variance.clamp(min=s.eps).sqrt()
    if s.ddof == 1:
        deviation = torch.where(groups.n == 1, 1, deviation)
    return groups.at_rows(deviation).to(score.dtype) + s.eps
