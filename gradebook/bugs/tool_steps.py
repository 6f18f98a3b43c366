"""Tool steps: miles PR 1827, verl PR 2337, both fixed."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import tokens


def token_return(batch: Batch, advantage: Tensor, token_reward: Tensor) -> Tensor:
    """What each token is owed; under `credit` gae every token of the response
    is a step, and the row's number is paid at the last one. float [R, T].

    The trainer sees a call blamed for what the critic says of the tool's
    words.
    """
    if batch.settings.credit != "gae":
        return tokens.token_return(batch, advantage, token_reward)
    steps = batch.response
    reward = tokens.paid(batch, advantage, steps.sum(-1) - 1, steps)
    return tokens.scanned(batch, reward, tokens.values(batch, steps), steps)
