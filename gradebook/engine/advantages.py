"""The advantage: the standardized score, whitened where it is asked for."""

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.errors import StepsError
from gradebook.engine.segments import by_group, by_step, weighted_mean


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`(score - baseline) / scale` on credited rows, else 0. float [R]."""
    return torch.where(credited, (score - baseline) / scale, 0)


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """The standardized score, token-whitened where the estimator asks.

    float [R]; NaN where subsampling left the row no transition.
    """
    return surviving(batch, whitened(batch, standardized, credited))


def whitened(batch: Batch, values: Tensor, credited: Tensor) -> Tensor:
    """Values whitened over the tokens of the step, on credited rows, else
    0. float [R]. Unchanged where `whiten_tokens` is off.

    Raises StepsError for steps with too few tokens.
    """
    if not batch.settings.whiten_tokens:
        return values
    enough_tokens(batch, credited)
    of = batch.step_index
    mean = weighted_mean(of, values, batch.tokens * credited)
    return whitened_about(batch, values, credited, mean, of)


def whitened_about(
    batch: Batch, values: Tensor, credited: Tensor, mean: Tensor, of: Tensor
) -> Tensor:
    """`(values - mean) / sqrt(variance + 1e-8)` on credited rows, else 0.
    float [R].

    The variance is the mean square about `mean`, float [R], over the
    tokens of the rows that share the number `of`, int64 [R], times
    S / (S - `whiten_ddof`), with S tokens (verl masked_whiten, SkyRL).
    """
    sets = by_group(of, credited)
    tokens = batch.tokens.to(values.dtype)
    s = sets.sum(tokens)
    centered = values - mean
    squares = sets.sum(centered * centered * tokens)
    variance = squares / (s - batch.settings.whiten_ddof).clamp(min=1)
    deviation = sets.at_rows((variance + 1e-8).sqrt())
    return torch.where(credited, centered / deviation, 0)


def enough_tokens(batch: Batch, credited: Tensor) -> None:
    """Raises StepsError for the first step with too few tokens on credited
    rows to whiten: fewer than 1 + `whiten_ddof`."""
    tokens = by_step(batch, credited).sum(batch.tokens)[1:]
    least = 1 + batch.settings.whiten_ddof
    short = tokens < least
    if bool(short.any()):
        step = int(short.int().argmax())
        many = "two unmasked tokens" if least == 2 else "one unmasked token"
        raise StepsError(
            short,
            f"step {int(batch.step[batch.step_index == step][0])} cannot be whitened",
            key="mask",
            expected=f"{many} or more",
            found=str(int(tokens[step])),
        )


def surviving(batch: Batch, values: Tensor) -> Tensor:
    """Values of rows that kept a transition, NaN elsewhere. float [R]."""
    return torch.where(batch.kept_steps > 0, values, torch.nan)
