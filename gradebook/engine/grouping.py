"""What a row scores, which rows count, which are compared, and which are trained."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import FLAT, by_group, is_first


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in that order, less the penalty for
    the row's unmasked tokens. float [R]."""
    if batch.settings.overlong_limit is None:
        return shaped(batch)
    return shaped(batch) - overlong(batch, batch.tokens)


def shaped(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in that order. float [R]."""
    s = batch.settings
    shaped = (batch.reward + s.reward_bias) * s.reward_scaling
    if s.reward_clip is None:
        return shaped
    return shaped.clamp(-s.reward_clip, s.reward_clip)


def overlong(batch: Batch, tokens: Tensor) -> Tensor:
    """The penalty for a row of so many tokens, int64 [R]: 0 up to the limit
    less the buffer, then evenly up to `overlong_penalty` at the limit (DAPO);
    0 without a limit. float [R]."""
    s = batch.settings
    if s.overlong_limit is None:
        return torch.zeros_like(batch.reward)
    over = tokens - (s.overlong_limit - s.overlong_buffer)
    share = over.clamp(0, s.overlong_buffer).to(batch.reward.dtype) / s.overlong_buffer
    return share * s.overlong_penalty


def present(batch: Batch) -> Tensor:
    """The row is in its step: its group has at least `min_group_size` rows,
    and in an evaluation it is the first of its prompt. bool [R]."""
    enough = batch.prompt_rows >= batch.settings.min_group_size
    if batch.settings.evaluation:
        return enough & is_first(batch.prompt_index, enough)
    return enough


def has_tokens(batch: Batch) -> Tensor:
    """The row has at least one unmasked token. bool [R]."""
    return batch.has_tokens


def may_end(batch: Batch) -> Tensor:
    """The row ended with EOS, or rows without EOS are not masked.
    bool [R]."""
    return batch.eos | (not batch.settings.mask_no_eos)


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage. bool [R]."""
    if batch.settings.filter_flat:
        return may_earn(batch) & varies(batch, shaped(batch))
    return may_earn(batch)


def may_earn(batch: Batch) -> Tensor:
    """The row has tokens, may end and is scored. bool [R]."""
    return has_tokens(batch) & may_end(batch) & batch.scored


def varies(batch: Batch, values: Tensor) -> Tensor:
    """The scored rows of the row's prompt do not all have one value, float [R].
    bool [R]."""
    groups = by_group(batch.prompt_index, batch.scored)
    return groups.at_rows(groups.max(values) + groups.max(-values)) > FLAT


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it is the first credited row of its
    rollout, which counts once. bool [R]."""
    return is_first(batch.rollout_index, credited)


CONDITIONS = ("tokens", "end", "rollout")
"""What a faulty `counted` stage can leave out."""


@lru_cache
def counted_without(dropped: frozenset[str]) -> Callable[..., Tensor]:
    """The stage `counted` without some of the CONDITIONS."""

    def counted(batch: Batch, credited: Tensor) -> Tensor:
        """The row meets every condition that is not dropped. bool [R]."""
        counts = batch.scored
        if "tokens" not in dropped:
            counts = counts & has_tokens(batch)
        if "end" not in dropped:
            counts = counts & may_end(batch)
        if "rollout" in dropped:
            return counts
        return is_first(batch.rollout_index, counts)

    return counted


def group(batch: Batch) -> Tensor:
    """The row's prompt, numbered as prompts appear. int64 [R].

    The same prompt in two training steps makes two groups.
    """
    return batch.prompt_index


def trained(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """The row's tokens enter the loss: it has some, and its group's scores
    are not all equal. bool [R]."""
    return has_tokens(batch) & ~flat(batch, score, counted, group)


def flat(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """The group's scores have no spread (ddof 1), and `skip_flat` leaves
    such groups out. bool [R].

    Under batch_std, the spread is that of the whole step. A lone row is
    flat if `lone_row` is zero (TRL). If it is raw, the row is not flat:
    its advantage is its own score (SkyRL). A row in no group is not
    flat.
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
