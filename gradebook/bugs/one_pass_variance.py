"""One-pass variance: NeMo-RL PR 4158, fixed on main."""

from __future__ import annotations

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.scales import SCALES
from gradebook.engine.segments import by_group, others


def scale(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """The others' deviation as the root of E[x^2] - E[x]^2 in float32,
    which divides wherever it is above 0. float [R].

    The trainer sees advantages in the thousands on rows whose siblings all
    have one reward: rounding left them a deviation other than 0.
    """
    s, groups = batch.settings, by_group(group, counted)
    if s.scale != "others_std":
        return SCALES[s.scale](batch, score, groups, baseline)
    rest = others(batch, groups)
    k, x = rest.n.clamp(min=2).float(), score.float()
    mean = rest.sum(x.double()).float() / k
    square = rest.sum((x * x).double()).float() / k
    variance = (square - mean * mean) * k / (k - s.ddof)
    spread = variance.sqrt().nan_to_num(0)
    divides = (rest.n >= 2) & (spread > 0)
    return torch.where(divides, spread + s.eps, 1).to(score.dtype)
