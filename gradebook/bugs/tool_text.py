"""Tool text: slime PR 1372, fixed in v0.2.2; miles PR 1383, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.tokens import paid


def token_reward(batch: Batch, advantage: Tensor) -> Tensor:
    """The row's number at its last unmasked token, less the price of the KL at
    every token of the response. float [R, T].

    The trainer sees a call fined for each word that its tool wrote.
    """
    return paid(batch, advantage, batch.last_token, batch.response)
