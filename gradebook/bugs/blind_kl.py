"""Blind KL: NeMo-RL PR 2506, fixed in v0.7.0."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import kl_estimate


def kl(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Estimate of the KL to the reference, as if the policy had not chosen
    the token. float [R, T].

    With k1 the trainer sees a gradient that is the same at every token,
    whatever the reference says.
    """
    return kl_estimate(batch, learns, logp)
