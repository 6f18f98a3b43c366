"""What a row scores, which rows count, and which rows are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.segments import is_first


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in that order. float [R]."""
    s = batch.settings
    shaped = (batch.reward + s.reward_bias) * s.reward_scaling
    if s.reward_clip is None:
        return shaped
    return shaped.clamp(-s.reward_clip, s.reward_clip)


def has_tokens(batch: Batch) -> Tensor:
    """The row kept at least one unmasked token. bool [R]."""
    return batch.mask.any(-1)


def may_end(batch: Batch) -> Tensor:
    """The row ended with EOS, or rows without are not masked. bool [R]."""
    return batch.eos | (not batch.settings.mask_no_eos)


CONDITIONS: Mapping[str, Callable[[Batch], Tensor]] = {
    "tokens": has_tokens,
    "end": may_end,
}
"""What a row must meet in order to count, by name."""


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage. bool [R]."""
    return has_tokens(batch) & may_end(batch) & batch.scored


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it is the first credited row of its
    rollout. bool [R].

    A row that cannot learn must not vote, and a rollout votes once.
    """
    return is_first(batch.rollout_index, credited)


@lru_cache
def counted_without(dropped: frozenset[str]) -> Callable[..., Tensor]:
    """The stage `counted` without some of the CONDITIONS.

    Each faulty `counted` stage drops one condition. Several of them
    together drop each of theirs, so every set of them is defined.
    """
    kept = [has for name, has in CONDITIONS.items() if name not in dropped]

    def counted(batch: Batch, credited: Tensor) -> Tensor:
        """The row meets every condition that is not dropped. bool [R]."""
        every = torch.ones_like(credited)
        return reduce(torch.logical_and, (has(batch) for has in kept), every)

    return counted


def group(batch: Batch) -> Tensor:
    """The row's prompt, numbered as prompts appear. int64 [R].

    The same prompt in two training steps makes two groups.
    """
    return batch.prompt_index


def across_steps(batch: Batch, group: Tensor, groups: Tensor) -> Tensor:
    """Groups numbered 0.. in each step, numbered on over the whole batch.

    group int64 [R], groups int64 [S] how many the step has; a number past
    them becomes -1, in no group. int64 [R].
    """
    inside = group < groups[batch.step_index]
    first = (groups.cumsum(0) - groups)[batch.step_index]
    return torch.where(inside, first + group, -1)


def divisible(batch: Batch, kept: Tensor | None = None) -> None:
    """Passes when the rows of every step, or those `kept`, bool [R], divide
    by the group size. It says nothing about which rows form a group.

    Raises GradebookError naming the first step that does not divide.
    """
    of = batch.step_index if kept is None else batch.step_index[kept]
    rows = torch.bincount(of, minlength=batch.step_count)
    size = batch.group_size
    uneven = rows % size != 0
    if bool(uneven.any()):
        at = int(uneven.int().argmax())
        step = int(batch.step[batch.step_index == at][0])
        raise GradebookError(
            f"step {step}: {int(rows[at])} rows do not divide"
            f" by the group size {int(size[at])}"
        )
