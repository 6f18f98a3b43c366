"""The loss of a training step, and its gradient.

Per token: -rho * A + beta * k, with k = exp(ref - logp) - (ref - logp) - 1
(TRL GRPOTrainer). On policy rho = 1.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import FLAT
from gradebook.engine.grouping import has_tokens
from gradebook.engine.segments import by_group, by_step


def trained(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """The row's tokens enter the loss: it has some, and its group's scores
    are not all equal. bool [R]."""
    return has_tokens(batch) & ~flat(batch, score, counted, group)


def flat(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """The group's scores have no spread (ddof 1), and `skip_flat` leaves
    such groups out. bool [R].

    Of the whole step where the scale is batch_std. A lone row is flat where
    `lone_row` is zero (TRL), and not where it is raw: its advantage is its
    own score (SkyRL). A row in no group is not flat.
    """
    s = batch.settings
    if s.skip_flat == "never" or (s.skip_flat == "training" and s.evaluation):
        return torch.zeros(batch.rows, dtype=torch.bool)
    whole_step = s.scale == "batch_std"
    groups = by_group(batch.step_index if whole_step else group, counted)
    spread = (groups.squares(score) / (groups.n - 1).clamp(min=1)).sqrt()
    is_flat = spread <= FLAT
    if s.lone_row == "raw":
        is_flat = is_flat & (groups.n != 1)
    is_flat[0] = False
    return groups.at_rows(is_flat)


class Loss(NamedTuple):
    """The two parts of the loss, each float [S], one per step."""

    policy: Tensor
    kl: Tensor


def loss(batch: Batch, advantage: Tensor, trained: Tensor, logp: Tensor) -> Loss:
    """Policy part and KL part of each step's loss.

    `logp` float [R, T] is the policy being differentiated.
    """
    learns = learning_tokens(batch, trained)
    weight = token_weight(batch, learns, batch.step_index)
    return weighted_loss(batch, advantage, learns, weight, logp)


def learning_tokens(batch: Batch, trained: Tensor) -> Tensor:
    """The token enters the loss: it is unmasked, its row is trained and
    kept a transition. bool [R, T]."""
    rows = trained & (batch.kept_steps > 0)
    return batch.mask & rows[:, None]


def token_weight(batch: Batch, learns: Tensor, of: Tensor) -> Tensor:
    """How much a token counts in the loss, by `settings.loss`. Rows that
    share the number `of`, int64 [R], share one loss. float64 [R].

    `learns` bool [R, T] are the tokens that enter the loss.
    grpo: the mean over all rows of the row's mean. bnpo: by the tokens
    that learn. dr_grpo: by rows times `max_tokens`. dapo: by the unmasked
    tokens before any row was left out, and not by `accumulation`.
    """
    s = batch.settings
    sets = by_group(of, torch.ones(batch.rows, dtype=torch.bool))
    if s.loss == "dapo":
        share = sets.at_rows(sets.sum(batch.tokens)).clamp(min=1)
    elif s.loss == "bnpo":
        share = sets.at_rows(sets.sum(learns.sum(-1))).clamp(min=1)
        share = share * s.accumulation
    else:
        share = sets.at_rows(sets.n) * s.accumulation
        if s.loss == "grpo":
            share = share * learns.sum(-1).clamp(min=1)
        else:
            share = share * (s.max_tokens or batch.mask.shape[-1])
    return 1 / share.double()


def weighted_loss(
    batch: Batch, advantage: Tensor, learns: Tensor, weight: Tensor, logp: Tensor
) -> Loss:
    """Each step's sum over the tokens `learns`, bool [R, T], of the loss per
    token times the row's `weight`, float [R]."""
    weight = weight.to(logp.dtype)[:, None]
    # Masked on the way in, since autograd turns 0 * NaN into NaN.
    logp = torch.where(learns, logp, 0)
    a = torch.where(learns, advantage[:, None], 0)
    steps = by_step(batch, torch.ones(batch.rows, dtype=torch.bool))
    rho = (logp - logp.detach()).exp()
    policy = steps.sum((-rho * a * weight).sum(-1))[1:]
    beta = batch.settings.beta
    if beta == 0:
        return Loss(policy, torch.zeros_like(policy))
    gap = torch.where(learns, batch.ref_logp - logp, 0)
    kl = beta * (gap.exp() - gap - 1) * weight
    return Loss(policy, steps.sum(kl.sum(-1))[1:])
