"""Padding value: ROLL PR 447, open; verl PR 50, fixed."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import tokens


def token_return(batch: Batch, advantage: Tensor, token_reward: Tensor) -> Tensor:
    """What each token is owed; under `credit` gae padding is a step too, with
    what the critic says of it. float [R, T].

    The trainer sees short answers judged by the critic's words on padding.
    """
    if batch.settings.credit != "gae":
        return tokens.token_return(batch, advantage, token_reward)
    steps = torch.ones_like(batch.mask)
    return tokens.scanned(batch, token_reward, tokens.values(batch, steps), steps)
