"""Micro-batch means: OpenRLHF PR 1249, SkyRL PR 1296, both fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import token_weight


def weight(batch: Batch, learns: Tensor) -> Tensor:
    """The mean, over the step's micro-batches, of each micro-batch's
    mean. float64 [R].

    The trainer sees a loss that depends on the size of a micro-batch,
    and each token of a long pass count less than one of a short pass.
    """
    size = batch.micro_batch
    passes = (batch.rows_per_step + size - 1) // size
    of = batch.within_step(batch.place // size[batch.step_index])
    return token_weight(batch, learns, of) / passes[batch.step_index]
