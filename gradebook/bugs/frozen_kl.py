"""Frozen KL: SkyRL PR 1353, open-instruct PR 531, both fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import loss


def kl(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Estimate of the KL to the reference, computed without a gradient.
    float [R, T].

    The trainer sees a KL in the loss and in the log that moves no token.
    """
    return loss.kl(batch, learns, logp).detach()
