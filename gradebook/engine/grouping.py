"""What a row scores, which rows count, and which rows are compared."""

from collections.abc import Callable
from functools import lru_cache

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import is_first


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in that order. float [R]."""
    s = batch.settings
    shaped = (batch.reward + s.reward_bias) * s.reward_scaling
    if s.reward_clip is None:
        return shaped
    return shaped.clamp(-s.reward_clip, s.reward_clip)


def present(batch: Batch) -> Tensor:
    """The row is in its step: its group has at least `min_group_size` rows,
    and in an evaluation it is the first of its prompt. bool [R]."""
    enough = batch.prompt_rows >= batch.settings.min_group_size
    if batch.settings.evaluation:
        return enough & is_first(batch.prompt_index, enough)
    return enough


def has_tokens(batch: Batch) -> Tensor:
    """The row kept at least one unmasked token. bool [R]."""
    return batch.mask.any(-1)


def may_end(batch: Batch) -> Tensor:
    """The row ended with EOS, or rows without are not masked. bool [R]."""
    return batch.eos | (not batch.settings.mask_no_eos)


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage. bool [R]."""
    return has_tokens(batch) & may_end(batch) & batch.scored


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
