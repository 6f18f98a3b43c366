"""Scales: what the distance from the baseline is divided by.

Each takes the batch, score float [R], the groups' segments and the baseline
float [R], and gives float [R].
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import (
    Segments,
    by_group,
    by_step,
    is_first,
    others,
)

FLAT = 1e-8
"""A spread of at most this is zero (torch.isclose, as TRL tests it)."""


def scale(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """The divisor, by `settings.scale`. float [R]."""
    chosen = SCALES[batch.settings.scale]
    return chosen(batch, score, by_group(group, counted), baseline)


def group_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Standard deviation of the counted scores of the row's group + eps.
    float [R].

    About the mean or about the baseline (AReaL), by `spread_about`. With
    ddof 1, at most one counted row has standard deviation 1. A row in no
    group has standard deviation 0.
    """
    s = batch.settings
    if s.spread_about == "mean":
        squares = groups.squares(score)
    else:
        squares = groups.sum((score - baseline) * (score - baseline))
    spread = (squares / (groups.n - s.ddof).clamp(min=1)).sqrt()
    if s.ddof == 1:
        spread = torch.where(groups.n <= 1, 1, spread)
        spread[0] = 0
    return groups.at_rows(spread) + s.eps


def batch_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """The same of the row's step. float [R]."""
    steps = by_step(batch, groups.counted)
    return group_std(batch, score, steps, baseline)


def nonzero_share(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Share of the step's counted rows with a score other than 0, at least
    one row's: GPG. float [R]."""
    steps = by_step(batch, groups.counted)
    share = steps.mean((score != 0).to(score.dtype))
    least = 1 / steps.n.clamp(min=1).to(score.dtype)
    return steps.at_rows(share.maximum(least))


def others_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Standard deviation of the group's other votes + eps (NeMo-RL). 1, so
    that nothing is divided, where fewer than two other votes are left or
    all of them are equal. float [R].

    SS - (x - mean)^2 n / (n - 1) is the others' sum of squares. It loses
    its digits where x holds most of SS, so the lowest and the highest vote
    take a sum over the others, measured from the group's other end.
    """
    rest, counted = others(batch, groups), groups.counted
    low = groups.at_rows(-groups.max(-score))
    high = groups.at_rows(groups.max(score))
    lowest = is_first(groups.of, counted & (score == low))
    highest = is_first(groups.of, counted & (score == high))
    n = groups.at_rows(groups.n)
    whole = groups.at_rows(groups.squares(score - low))
    far = score - low - groups.at_rows(groups.mean(score - low))
    left = whole - far * far * n / (n - 1)
    below = Segments(groups.of, counted & ~highest).squares(score - low)
    left = torch.where(highest, groups.at_rows(below), left)
    above = Segments(groups.of, counted & ~lowest).squares(score - high)
    left = torch.where(lowest, groups.at_rows(above), left)
    left = torch.where(rest.left_out, left[rest.vote], whole)
    spread = (left / (rest.n - batch.settings.ddof).clamp(min=1)).sqrt()
    divides = (rest.n >= 2) & (spread > FLAT)
    return torch.where(divides, spread + batch.settings.eps, 1)


def no_scale(batch: Batch, score: Tensor, groups: Segments, baseline: Tensor) -> Tensor:
    """1, without eps, for every row. float [R]."""
    return torch.ones_like(score)


SCALES: Mapping[str, Callable[[Batch, Tensor, Segments, Tensor], Tensor]] = {
    "group_std": group_std,
    "batch_std": batch_std,
    "nonzero_share": nonzero_share,
    "others_std": others_std,
    "none": no_scale,
}
