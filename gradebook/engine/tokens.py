"""From a row's number to its tokens: what a token is paid, what it is owed for what
follows, and what it is trained with.

Under `credit` row every token has its row's number. Under to_go and gae the number is
paid at the row's last unmasked token, and a sum from the end carries it to the others.
"""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import enough_weight, whitening_root
from gradebook.engine.segments import Segments


def token_reward(batch: Batch, advantage: Tensor) -> Tensor:
    """The row's number at its last unmasked token, less the price of the KL at
    every unmasked one. float [R, T]."""
    return paid(batch, advantage, batch.last_token, batch.mask)


def paid(batch: Batch, advantage: Tensor, at: Tensor, charged: Tensor) -> Tensor:
    """The row's number at its token `at`, int64 [R], -1 for none, less
    `kl_in_reward` times logp - ref_logp at the tokens `charged`, bool [R, T].
    A row without a number is paid 0. float [R, T]."""
    reward = torch.zeros(batch.mask.shape, dtype=advantage.dtype)
    rows = (at >= 0).nonzero().flatten()
    reward[rows, at[rows]] = advantage.nan_to_num(0)[rows]
    price = batch.settings.kl_in_reward
    if price and batch.logp is not None:
        reward = reward - price * torch.where(charged, batch.logp - batch.ref_logp, 0)
    return reward


def token_return(batch: Batch, advantage: Tensor, token_reward: Tensor) -> Tensor:
    """What each token is owed, by `settings.credit`. float [R, T]."""
    s = batch.settings
    if s.credit == "row":
        return advantage[:, None].expand(batch.mask.shape)
    steps = batch.mask if s.clock == "written" else batch.response
    return scanned(batch, token_reward, values(batch, steps), steps)


def values(batch: Batch, at: Tensor) -> Tensor:
    """What the critic says at the tokens `at`, bool [R, T], else 0;
    0 everywhere without a critic, or if `credit` is not gae.
    float [R, T]."""
    if batch.value is None or batch.settings.credit != "gae":
        return torch.zeros(batch.mask.shape, dtype=batch.reward.dtype)
    return torch.where(at, batch.value, 0)


def scanned(
    batch: Batch, reward: Tensor, value: Tensor, steps: Tensor, carries: bool = True
) -> Tensor:
    """From the last token to the first, at the tokens `steps`, bool [R, T]:
    reward + gamma * next value - value + gamma * lambda * the sum from
    the tokens after it.

    A token that is no step has 0. It passes on the sum from the tokens
    after it, or with `carries` false ends that sum. Lambda is 1 except
    under gae. float [R, T].
    """
    s = batch.settings
    fades = s.gamma * (s.lam if s.credit == "gae" else 1.0)
    owed = torch.zeros_like(reward)
    after, ahead = reward.new_zeros(len(reward)), value.new_zeros(len(reward))
    columns = [x.unbind(1)[::-1] for x in (owed, reward, value, steps)]
    for at_token, paid_here, value_here, is_step in zip(*columns):
        surprise = paid_here + s.gamma * ahead - value_here
        after = torch.where(is_step, surprise + fades * after, after * carries)
        ahead = torch.where(is_step, value_here, ahead * carries)
        at_token.copy_(after)
    return torch.where(steps, owed, 0)


def token_advantage(batch: Batch, token_return: Tensor, credited: Tensor) -> Tensor:
    """What each token is owed, 0 at masked tokens. Under to_go and gae
    it is whitened if `whiten_tokens` is set, and 0 on rows without
    credit. float [R, T]."""
    if batch.settings.credit == "row":
        return torch.where(batch.mask, token_return, 0)
    earns = batch.mask & (credited & (batch.kept_steps > 0))[:, None]
    if batch.settings.whiten_tokens:
        token_return = whitened(batch, token_return, earns)
    return torch.where(earns, token_return, 0)


def whitened(batch: Batch, values: Tensor, earns: Tensor) -> Tensor:
    """`(values - mean) / sqrt(variance + 1e-8)` over the tokens `earns`, bool
    [R, T], of the step, whatever `whiten_over` says. float [R, T]. Raises
    GradebookError for too few."""
    enough_weight(batch, earns.any(-1), batch.tokens)
    step = batch.step_index[:, None].expand(values.shape)
    sets, flat = Segments(step.flatten() + 1, earns.flatten()), values.flatten()
    left = (sets.n - batch.settings.whiten_ddof).clamp(min=1)
    deviation = whitening_root(batch, sets.squares(flat) / left)
    centred = flat - sets.at_rows(sets.mean(flat))
    return (centred / sets.at_rows(deviation)).reshape(values.shape)
