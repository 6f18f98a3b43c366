"""Rejected tokens: slime PR 657, verl PR 3915, both fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import learning_tokens


def learns(batch: Batch, trained: Tensor) -> Tensor:
    """The token is unmasked, and its row is trained and kept a transition: a
    rejected token has weight 0 and still counts. bool [R, T].

    The trainer sees steps that shrink as more tokens are rejected.
    """
    return learning_tokens(batch, trained)
