"""Live weight: verl PR 4105, fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import anchor, sampling_weight


def off_policy(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """How much a token counts for having been sampled by another engine,
    differentiated too if there is no `old_logp`. float [R, T].

    The trainer sees praised tokens less likely than 1 / e become rarer.
    """
    policy = logp if batch.old_logp is None else anchor(batch, learns, logp)
    return sampling_weight(batch, learns, policy)
