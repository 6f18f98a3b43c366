"""Moving anchor: open-instruct PR 755, fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import by_level


def log_ratio(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Log-ratio of the policy to itself: its anchor is taken again at each
    mini-batch. float [R, T].

    The trainer sees a ratio of 1 and nothing that is ever clipped.
    """
    return by_level(batch, learns, logp - logp.detach())
