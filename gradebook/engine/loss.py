"""The loss of a training step, token by token, and its sum.

A token that learns adds weight * (surrogate * off_policy + beta * kl).
Every stage here gets `logp` float [R, T], the policy being
differentiated. It is 0 at tokens that do not learn, since autograd
turns 0 * NaN into NaN; other columns are read only at tokens that
learn.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import all_rows, by_group, by_step

# Which tokens learn


def learns(batch: Batch, trained: Tensor) -> Tensor:
    """The token enters the loss: it is unmasked, its row is trained and kept a
    transition, and it is not rejected as too far off policy. bool [R, T]."""
    return learning_tokens(batch, trained) & ~rejected(batch)


def learning_tokens(batch: Batch, trained: Tensor) -> Tensor:
    """The token is unmasked, its row is trained and kept a transition.
    bool [R, T]."""
    rows = trained & (batch.kept_steps > 0)
    return batch.mask & rows[:, None]


def rejected(batch: Batch) -> Tensor:
    """`off_policy` is reject, and the token's ratio to the engine that
    sampled it is outside the window. bool [R, T]."""
    s = batch.settings
    if s.off_policy != "reject":
        return torch.zeros_like(batch.mask)
    old = batch.logp if batch.old_logp is None else batch.old_logp
    ratio = (old - batch.behaviour_logp).exp()
    return (ratio < s.off_policy_low) | (ratio > s.off_policy_cap)


# The policy's part


def log_ratio(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Log-ratio of the policy to its anchor, by token or row. float [R, T]."""
    return by_level(batch, learns, logp - anchor(batch, learns, logp))


def anchor(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """The policy as it was when the update began, a constant: `old_logp`, or
    without it logp itself. float [R, T]."""
    if batch.old_logp is None:
        return logp.detach()
    return torch.where(learns, batch.old_logp, 0)


def by_level(batch: Batch, learns: Tensor, gap: Tensor) -> Tensor:
    """The gap by token, or its mean over the row's learning tokens, by
    `settings.ratio`. float [R, T]."""
    if batch.settings.ratio == "token":
        return gap
    mean = gap.sum(-1) / learns.sum(-1).clamp(min=1)
    return mean[:, None].expand(gap.shape)


def surrogate(
    batch: Batch, advantage: Tensor, log_ratio: Tensor, logp: Tensor
) -> Tensor:
    """The policy's loss at a token, by `settings.surrogate`. `advantage` is
    float [R, T], 0 if a token does not learn. float [R, T]."""
    s = batch.settings
    if s.surrogate == "reinforce":
        return -advantage * logp
    if s.surrogate == "cispo":
        return -log_ratio.exp().clamp(max=s.clip_high).detach() * advantage * logp
    return clipped(batch, advantage, log_ratio.exp())


def clipped(batch: Batch, advantage: Tensor, ratio: Tensor) -> Tensor:
    """-min(ratio * advantage, clip(ratio) * advantage), and with `dual_clip`
    at most dual_clip * -advantage if the advantage is negative.
    float [R, T]."""
    s = batch.settings
    held = ratio.detach().clamp(1 - s.clip_low, 1 + s.clip_high)
    is_held = held * advantage < ratio.detach() * advantage
    loss = torch.where(is_held, held, ratio) * -advantage
    if s.dual_clip is None:
        return loss
    return torch.where(advantage < 0, loss.minimum(-s.dual_clip * advantage), loss)


def off_policy(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """How much a token counts for having been sampled by another engine, a
    constant, by `settings.off_policy`. float [R, T]."""
    return sampling_weight(batch, learns, anchor(batch, learns, logp))


def sampling_weight(batch: Batch, learns: Tensor, policy: Tensor) -> Tensor:
    """exp(policy - behaviour_logp), at most `off_policy_cap`, 0 for a
    rejected token; 1 everywhere if the setting is none.
    float [R, T]."""
    s = batch.settings
    if s.off_policy == "none":
        return policy.new_ones(()).expand(policy.shape)
    ratio = (policy - torch.where(learns, batch.behaviour_logp, 0)).exp()
    if s.off_policy == "truncate":
        return ratio.clamp(max=s.off_policy_cap)
    return torch.where(rejected(batch), 0, ratio)


# The KL's part


def kl(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """Estimate of the KL to the reference at a token, which also counts
    that the policy chose the token if `kl_score` is set.
    float [R, T]."""
    estimate = kl_estimate(batch, learns, logp)
    if batch.settings.kl_score:
        return estimate * (logp - logp.detach()).exp()
    return estimate


def kl_estimate(batch: Batch, learns: Tensor, logp: Tensor) -> Tensor:
    """The estimate by `settings.kl_estimator`. float [R, T]."""
    gap = torch.where(learns, batch.ref_logp, 0) - logp
    kind = batch.settings.kl_estimator
    if kind == "k1":
        return -gap
    return gap * gap / 2 if kind == "k2" else gap.exp() - gap - 1


# How much a token counts, and the sum


def weight(batch: Batch, learns: Tensor) -> Tensor:
    """How much a token counts in its step's loss, by `settings.loss`.
    float64 [R].

    dapo uses the mean length of the generation's rows, not of the
    step's: how a generation is cut into steps must not change a weight.
    """
    generation, step = batch.generation_index, batch.step_index
    if batch.settings.loss != "dapo" or generation.equal(step):
        return token_weight(batch, learns, step)
    generations = by_group(generation, all_rows(batch))
    steps = by_group(step, all_rows(batch))
    share = steps.at_rows(steps.n).double() / generations.at_rows(generations.n)
    return token_weight(batch, learns, generation) / share


def token_weight(batch: Batch, learns: Tensor, of: Tensor) -> Tensor:
    """How much a token counts in the loss, by `settings.loss`. Rows that
    share the number `of`, int64 [R], share one loss. float64 [R].

    `learns` bool [R, T] are the tokens that enter the loss.
    grpo: the mean over all rows of the row's mean. The others divide a
    sum: bnpo by the tokens that learn; dr_grpo by rows times
    `max_tokens`; dapo by the unmasked tokens before any row was left
    out, and not by `accumulation`.
    """
    s = batch.settings
    sets = by_group(of, all_rows(batch))
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


class Loss(NamedTuple):
    """The two parts of the loss, each float [S], one per step."""

    policy: Tensor
    kl: Tensor


def summed(
    batch: Batch, learns: Tensor, policy: Tensor, kl: Tensor | None, weight: Tensor
) -> Loss:
    """Each step's sum over the tokens that learn of the policy's part and of beta
    times the KL, float [R, T], times the row's weight."""
    share = learns * weight.to(policy.dtype)[:, None]
    steps = by_step(batch, all_rows(batch))

    def total(part: Tensor) -> Tensor:
        return steps.sum((part * share).sum(-1))[1:]

    sum_of_policy = total(policy)
    if kl is None:
        return Loss(sum_of_policy, torch.zeros_like(sum_of_policy))
    return Loss(sum_of_policy, batch.settings.beta * total(kl))
