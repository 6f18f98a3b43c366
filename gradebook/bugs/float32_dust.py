"""Float32 dust: verl PR 4598, open."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import grouping


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in float32. float32 [R].

    The trainer sees advantages that are not 0 in a group whose rewards are
    all equal: the float32 mean is not exactly the reward.
    """
    return grouping.score(batch).float()
