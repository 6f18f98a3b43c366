"""Baselines: what a row's score is compared with.

Each takes the batch, score float [R], and the groups' segments.
A row in no group has baseline 0.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import Segments, by_group, by_step, others


def baseline(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
    """What the score is compared with, by `settings.baseline`. float [R]."""
    chosen = BASELINES[batch.settings.baseline]
    return chosen(batch, score, by_group(group, counted))


def group_mean(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean over the counted rows of each row's group. float [R]."""
    mean = groups.mean(score)
    if batch.settings.lone_row == "raw":
        mean = torch.where(groups.n == 1, 0, mean)
    return groups.at_rows(mean)


def batch_mean(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean over the counted rows of each row's step. float [R]."""
    steps = by_step(batch, groups.counted)
    return steps.at_rows(steps.mean(score))


def leave_one_out(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean over the group's other votes. float [R].

    A row leaves out the vote that speaks for it: its own where it counts,
    else the one of its rollout.
    """
    rest = others(batch, groups)
    mean = rest.sum(score) / rest.n.clamp(min=1)
    alone = 0 if batch.settings.lone_row == "raw" else score
    mean = torch.where(rest.n < 1, alone, mean)
    return torch.where(groups.of == 0, 0, mean)


def length_weighted_mean(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean weighted by unmasked tokens: OPO. float [R].

    NaN where several rows count and none has a token (0/0), as in the
    trainer; such rows earn no advantage.
    """
    length = batch.tokens.to(score.dtype)
    mean = groups.sum(length * score) / groups.sum(length)
    mean = torch.where(groups.n == 0, 0, mean)
    lone = 0 if batch.settings.lone_row == "raw" else groups.sum(score)
    return groups.at_rows(torch.where(groups.n == 1, lone, mean))


def second_best(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """The runner-up for the best counted row of a group of two or more;
    every other row's own score: Pass@k. float [R]."""
    best = groups.max(score)
    is_best = groups.counted & (score == groups.at_rows(best))
    runner_up = groups.max(torch.where(is_best, -torch.inf, score))
    tied = groups.sum(is_best.to(score.dtype)) > 1
    runner_up = torch.where(tied, best, runner_up)
    wins = is_best & groups.at_rows(groups.n > 1)
    fallback = torch.where(groups.of == 0, 0, score)
    return torch.where(wins, groups.at_rows(runner_up), fallback)


def no_baseline(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """0 for every row. float [R]."""
    return torch.zeros_like(score)


BASELINES: Mapping[str, Callable[[Batch, Tensor, Segments], Tensor]] = {
    "group_mean": group_mean,
    "batch_mean": batch_mean,
    "leave_one_out": leave_one_out,
    "length_weighted_mean": length_weighted_mean,
    "second_best": second_best,
    "none": no_baseline,
}
