"""Tool length: OpenRLHF issue 1243, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import overlong, shaped


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, less the penalty for the tokens
    from the row's first unmasked one to its last. float [R].

    The trainer sees right answers punished for what a tool said.
    """
    first = (batch.mask.cumsum(-1) == 0).sum(-1)
    span = (batch.last_token - first + 1).clamp(min=0)
    return shaped(batch) - overlong(batch, span)
