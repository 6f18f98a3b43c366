"""bf16 rewards: OpenRLHF PR 1334, fixed in 0.11.2."""

import torch
from torch import Tensor


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`(score - baseline) / scale` with every result rounded to bfloat16.
    float [R].

    The trainer sees advantages that do not add up to 0, because the
    baseline has only 8 significant bits.
    """
    away = (score - baseline.bfloat16()).bfloat16()
    divided = away / scale.bfloat16()
    return torch.where(credited, divided.to(score.dtype), 0)
