"""Tool wall: verl issue 7278, PR 7300, fixed in v0.9.0."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import tokens


def token_return(batch: Batch, advantage: Tensor, token_reward: Tensor) -> Tensor:
    """What each token is owed; under `credit` to_go a masked token ends what
    came after it. float [R, T].

    The trainer sees the tokens before a tool call pushed down like those
    of a wrong answer.
    """
    if batch.settings.credit != "to_go":
        return tokens.token_return(batch, advantage, token_reward)
    value = tokens.values(batch, batch.mask)
    return tokens.scanned(batch, token_reward, value, batch.mask, carries=False)
