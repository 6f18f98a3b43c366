"""Zero-std KL: TRL PR 5640, closed; whether it is a bug is disputed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens


def trained(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """The row's tokens enter the loss: it has some. bool [R].

    The trainer sees groups without any signal pulled to the reference.
    """
    return has_tokens(batch)
