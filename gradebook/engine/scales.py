"""Scales: what the distance from the baseline is divided by, and the
advantage that comes out."""

from __future__ import annotations

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.segments import Segments, by_group, by_step, step_mean


def scale(
    batch: Batch,
    score: Tensor,
    counted: Tensor,
    group: Tensor,
    baseline: Tensor,
) -> Tensor:
    """The divisor, by `settings.scale`. float [R].

    Standard deviations have eps added outside the root. A row in no group
    has standard deviation 0.
    """
    s = batch.settings
    if s.scale == "none":
        return torch.ones_like(score)
    if s.scale == "group_std":
        groups = by_group(group, counted)
        return std(batch, score, baseline, groups) + s.eps
    steps = by_step(batch, counted)
    if s.scale == "batch_std":
        return std(batch, score, baseline, steps) + s.eps
    share = steps.mean((score != 0).to(score.dtype))
    least = 1 / steps.n.clamp(min=1).to(score.dtype)
    return steps.at_rows(share.maximum(least))


def std(
    batch: Batch, score: Tensor, baseline: Tensor, among: Segments
) -> Tensor:
    """Standard deviation of the counted scores, at each row. float [R].

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
        spread[..., 0] = 0
    return among.at_rows(spread)


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`(score - baseline) / scale` on credited rows, else 0. float [R]."""
    return torch.where(credited, (score - baseline) / scale, 0)


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """The standardized score, token-whitened where the estimator asks.

    float [R]; NaN where subsampling left the row no transition.
    """
    a = whitened(batch, standardized, credited)
    return surviving(batch, a)


def whitened(batch: Batch, values: Tensor, credited: Tensor) -> Tensor:
    """Values less their mean over the step's tokens, by the root of their
    variance + 1e-8, on credited rows, else 0. float [R].

    Every row weighs as many tokens as it has; the variance is times
    S/(S-1), with S tokens (verl masked_whiten). Unchanged where
    `whiten_tokens` is off. Raises GradebookError for a step with fewer
    than two tokens.
    """
    if not batch.settings.whiten_tokens:
        return values
    weight = batch.tokens * credited
    steps = by_step(batch, credited)
    tokens = steps.sum(weight)
    short = tokens[1:] < 2
    if bool(short.any()):
        step = int(short.int().argmax())
        raise GradebookError(
            f"step {int(batch.step[batch.step_index == step][0])} cannot be"
            " whitened",
            key="mask",
            expected="two unmasked tokens or more",
            found=str(int(tokens[step + 1])),
        )
    tokens = tokens.to(values.dtype)
    bessel = steps.at_rows(tokens / (tokens - 1).clamp(min=1))
    centered = values - step_mean(batch, values, weight)
    variance = step_mean(batch, centered * centered, weight) * bessel
    return torch.where(credited, centered / (variance + 1e-8).sqrt(), 0)


def surviving(batch: Batch, values: Tensor) -> Tensor:
    """Values of rows that kept a transition, NaN elsewhere. float [R]."""
    return torch.where(batch.kept_steps > 0, values, torch.nan)
