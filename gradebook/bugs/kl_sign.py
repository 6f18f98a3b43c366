"""KL sign: verl PR 179, fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import loss


def kl(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Minus the estimate of the KL to the reference. float [R, T].

    The trainer sees a policy that runs from its reference, the faster the
    farther it is.
    """
    return -loss.kl(batch, learns, logp)
