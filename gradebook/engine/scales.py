"""Scales: what the distance from the baseline is divided by.

Each takes the batch, score float [R], the counted rows bool [R], the group
int64 [R] and the baseline float [R], and gives float [R].
"""

from __future__ import annotations

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
    return chosen(batch, score, counted, group, baseline)


def group_std(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """Standard deviation of the row's group + eps. float [R].

    A row in no group has standard deviation 0.
    """
    return std(batch, score, baseline, by_group(group, counted))


def batch_std(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """Standard deviation of the row's step + eps. float [R]."""
    return std(batch, score, baseline, by_step(batch, counted))


def nonzero_share(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """Share of the step's counted rows with a score other than 0, at least
    one row's: GPG. float [R]."""
    steps = by_step(batch, counted)
    share = steps.mean((score != 0).to(score.dtype))
    least = 1 / steps.n.clamp(min=1).to(score.dtype)
    return steps.at_rows(share.maximum(least))


def others_std(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """Standard deviation of the group's other votes + eps (NeMo-RL). 1, so
    that nothing is divided, where fewer than two other votes are left or
    all of them are equal. float [R].

    SS - (x - mean)^2 n / (n - 1) is the others' sum of squares. It loses
    its digits where x holds most of SS, so the lowest and the highest vote
    take a sum over the others, measured from the group's other end.
    """
    groups = by_group(group, counted)
    rest = others(batch, counted, groups)
    low = groups.at_rows(-groups.max(-score))
    high = groups.at_rows(groups.max(score))
    lowest = is_first(groups.of, counted & (score == low))
    highest = is_first(groups.of, counted & (score == high))
    n = groups.at_rows(groups.n)
    whole = squares(groups, score - low, counted)
    far = score - low - groups.at_rows(groups.mean(score - low))
    left = whole - far * far * n / (n - 1)
    without = squares(groups, score - low, counted & ~highest)
    left = torch.where(highest, without, left)
    without = squares(groups, score - high, counted & ~lowest)
    left = torch.where(lowest, without, left)
    left = torch.where(rest.left_out, left[rest.vote], whole)
    spread = (left / (rest.n - batch.settings.ddof).clamp(min=1)).sqrt()
    divides = (rest.n >= 2) & (spread > FLAT)
    return torch.where(divides, spread + batch.settings.eps, 1)


def squares(groups: Segments, values: Tensor, among: Tensor) -> Tensor:
    """Sum of (value - mean)^2 over the voting rows `among`, bool [R], of
    each row's group. [R]."""
    n = groups.sum(among.long()).clamp(min=1)
    mean = groups.sum(torch.where(among, values, 0)) / n
    residual = torch.where(among, values - groups.at_rows(mean), 0)
    return groups.at_rows(groups.sum(residual * residual))


def no_scale(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """1, without eps, for every row. float [R]."""
    return torch.ones_like(score)


Scale = Callable[[Batch, Tensor, Tensor, Tensor, Tensor], Tensor]

SCALES: Mapping[str, Scale] = {
    "group_std": group_std,
    "batch_std": batch_std,
    "nonzero_share": nonzero_share,
    "others_std": others_std,
    "none": no_scale,
}


def std(
    batch: Batch, score: Tensor, baseline: Tensor, among: Segments
) -> Tensor:
    """Standard deviation of the counted scores + eps, at each row.
    float [R].

    About the mean or about the baseline (AReaL), by `spread_about`. With
    ddof 1, at most one counted row has standard deviation 1.
    """
    s = batch.settings
    about_mean = s.spread_about == "mean"
    center = among.at_rows(among.mean(score)) if about_mean else baseline
    residual = score - center
    squares = among.sum(residual * residual)
    spread = (squares / (among.n - s.ddof).clamp(min=1)).sqrt()
    if s.ddof == 1:
        spread = torch.where(among.n <= 1, 1, spread)
        spread[0] = 0
    return among.at_rows(spread) + s.eps
