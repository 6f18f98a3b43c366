"""Micro-batch means: OpenRLHF PR 1249, SkyRL PR 1296, both fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import Loss, learning_tokens, token_weight, weighted_loss


def loss(batch: Batch, advantage: Tensor, trained: Tensor, logp: Tensor) -> Loss:
    """The mean over the step's micro-batches of each one's loss, policy
    part and KL part.

    The trainer sees a loss that depends on the size of a micro-batch, and
    long rows weigh less than short ones in another pass.
    """
    learns = learning_tokens(batch, trained)
    size = batch.micro_batch
    passes = (batch.step_rows + size - 1) // size
    of = batch.within_step(batch.place // size[batch.step_index])
    weight = token_weight(batch, learns, of) / passes[batch.step_index]
    return weighted_loss(batch, advantage, learns, weight, logp)
