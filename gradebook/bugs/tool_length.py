"""Tool length: OpenRLHF issue 1243, open."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import overlong, shaped


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, less the penalty for the tokens
    from the row's first unmasked one to its last. float [R].

    The trainer sees right answers punished for what a tool said.
    """
    places = torch.arange(batch.mask.shape[-1])
    first = torch.where(batch.mask, places, len(places)).amin(-1)
    span = (batch.last_token - first + 1).clamp(min=0)
    return shaped(batch) - overlong(batch, span)
