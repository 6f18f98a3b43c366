"""The loss of a training step, and its gradient.

Per token: -rho * A + beta * k, with k = exp(ref - logp) - (ref - logp) - 1
(TRL GRPOTrainer). On policy rho = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens
from gradebook.engine.segments import by_group, by_step

FLAT = 1e-8
"""A spread of at most this is zero (torch.isclose, as TRL tests it)."""


def trained(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """The row's tokens enter the loss: it has some, and its group's scores
    are not all equal. bool [R]."""
    return has_tokens(batch) & ~flat(batch, score, counted, group)


def flat(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """The group's scores have no spread (ddof 1). bool [R].

    Of the whole step where the scale is batch_std. A lone row is flat; a
    row in no group is not.
    """
    whole_step = batch.settings.scale == "batch_std"
    groups = by_group(batch.step_index if whole_step else group, counted)
    residual = score - groups.at_rows(groups.mean(score))
    squares = groups.sum(residual * residual)
    spread = (squares / (groups.n - 1).clamp(min=1)).sqrt()
    is_flat = spread <= FLAT
    is_flat[..., 0] = False
    return groups.at_rows(is_flat)


class Loss(NamedTuple):
    """The two parts of the loss, each float [..., S], one per step."""

    policy: Tensor
    kl: Tensor


def loss(
    batch: Batch, advantage: Tensor, trained: Tensor, logp: Tensor
) -> Loss:
    """Policy part and KL part of each step's loss.

    `logp` float [..., R, T] is the policy being differentiated.
    """
    m = batch.mask & trained[..., None] & (batch.kept_steps > 0)[:, None]
    weight = token_weight(batch, m, logp.dtype)
    # Masked on the way in, since autograd turns 0 * NaN into NaN.
    logp = torch.where(m, logp, 0)
    a = torch.where(m, advantage[..., None], 0)
    rho = (logp - logp.detach()).exp()
    policy = -rho * a * weight
    beta = batch.settings.beta
    if beta == 0:
        return Loss(_per_step(batch, policy), _per_step(batch, logp * 0))
    near = torch.where(m, logp, batch.ref_logp)
    kl = beta * token_kl(batch, near) * weight
    return Loss(_per_step(batch, policy), _per_step(batch, kl))


def token_kl(batch: Batch, logp: Tensor) -> Tensor:
    """exp(ref - logp) - (ref - logp) - 1 at unmasked tokens, else 0.
    float [..., R, T]."""
    gap = torch.where(batch.mask, batch.ref_logp - logp, 0)
    return gap.exp() - gap - 1


def token_weight(batch: Batch, m: Tensor, dtype: torch.dtype) -> Tensor:
    """How much a token counts in the loss, by `settings.loss`, for the
    tokens `m` bool [..., R, T]. float [..., R, 1].

    grpo: the mean over all rows of the row's mean. bnpo: by the trained
    tokens. dr_grpo: by rows times `max_tokens`. dapo: by the unmasked
    tokens before any row was left out, and not by `accumulation`.
    """
    s = batch.settings
    every = torch.ones(batch.rows, dtype=torch.bool)
    steps = by_step(batch, every)
    rows = steps.at_rows(steps.n)
    length = m.sum(-1)
    if s.loss == "grpo":
        share = rows * length.clamp(min=1) * s.accumulation
    elif s.loss == "bnpo":
        share = steps.at_rows(steps.sum(length)).clamp(min=1)
        share = share * s.accumulation
    elif s.loss == "dr_grpo":
        longest = s.max_tokens or batch.mask.shape[-1]
        share = rows * longest * s.accumulation
    else:
        share = steps.at_rows(steps.sum(batch.tokens)).clamp(min=1)
    return (1 / share.to(dtype))[..., None]


def _per_step(batch: Batch, per_token: Tensor) -> Tensor:
    """Sum over the tokens of each step. float [..., S]."""
    per_row = per_token.sum(-1)
    shape = (*per_row.shape[:-1], batch.step_count)
    return per_row.new_zeros(shape).index_add(-1, batch.step_index, per_row)
