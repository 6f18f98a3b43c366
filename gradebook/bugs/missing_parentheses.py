"""Missing parentheses: prime-rl PR 390, fixed within a day."""

import torch
from torch import Tensor


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`score - baseline / scale` on credited rows, else 0. float [R].

    The trainer sees successes with a negative advantage once more than
    about half of a prompt's rollouts succeed.
    """
    return torch.where(credited, score - baseline / scale, 0)
