"""Wrong window: TRL issue 5619, PR 6024, fixed in v1.10.0."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import token_weight


def weight(batch: Batch, learns: Tensor) -> Tensor:
    """How much a token counts: a step divides by the tokens of its whole
    generation. float64 [R].

    The trainer sees gradients that shrink with the number of steps that
    one generation feeds.
    """
    return token_weight(batch, learns, batch.generation_index)
