"""From a score to an advantage: baselines, scales, whitening.

A baseline takes the batch, score float [R] and the groups' segments; a scale takes the
baseline float [R] too. Both give float [R]. `gradebook.core.vocabulary` has a record of
each, which names its function here.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gradebook.core import formatting
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.vocabulary import BASELINES as BASELINE_RECORDS
from gradebook.core.vocabulary import SCALES as SCALE_RECORDS
from gradebook.engine.segments import (
    FLAT,
    Segments,
    by_group,
    by_step,
    is_first,
    others,
    weighted_mean,
)

# Baselines: what a score is compared with. A row in no group has baseline 0.


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

    A row leaves out the vote that speaks for it: its own if the row
    counts, else that of its rollout.
    """
    rest = others(batch, groups)
    mean = rest.sum(score) / rest.n.clamp(min=1)
    alone = 0 if batch.settings.lone_row == "raw" else score
    mean = torch.where(rest.n < 1, alone, mean)
    return torch.where(groups.of == 0, 0, mean)


def length_weighted_mean(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean weighted by unmasked tokens: OPO. float [R].

    NaN if several rows count and none has a token (0/0), as in the
    trainer. Those rows earn no advantage.
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


def batch_others(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """Mean over the step's other votes; 0 if there is none. float [R].

    A row leaves out the vote that speaks for it, as in `leave_one_out`.
    """
    rest = others(batch, by_step(batch, groups.counted))
    return rest.sum(score) / rest.n.clamp(min=1)


def no_baseline(batch: Batch, score: Tensor, groups: Segments) -> Tensor:
    """0: the raw score is the advantage. float [R]."""
    return torch.zeros_like(score)


# Scales: what the distance from the baseline is divided by


def scale(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor, baseline: Tensor
) -> Tensor:
    """The divisor, by `settings.scale`, with eps. float [R]."""
    groups = by_group(group, counted)
    return divisor(batch.settings.scale, batch, score, groups, baseline)


def divisor(
    name: str, batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """The divisor of the scale `name`, with eps if eps is added to it.
    float [R]."""
    spread = SCALES[name](batch, score, groups, baseline)
    if not SCALE_RECORDS[name].adds_eps:
        return spread
    return with_eps(spread, batch.settings.eps, batch.settings.eps_at)


def with_eps(spread: Tensor, eps: float, eps_at: str) -> Tensor:
    """The spread and eps: after the root, inside it, or as the least
    spread; 1 if the spread is NaN: such a row is not divided. float, as
    `spread`."""
    if eps_at == "inside":
        divisor = (spread * spread + eps).sqrt()
    elif eps_at == "least":
        divisor = spread.clamp(min=eps)
    else:
        divisor = spread + eps
    return torch.where(spread.isnan(), 1, divisor)


def group_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Standard deviation of the counted scores of the row's group, without
    eps. float [R].

    About the mean or about the baseline (AReaL), by `spread_about`. If
    at most one row counts, it is 1 under ddof 1 or if a lone row keeps
    its raw score. It is 0 for a row in no group.
    """
    s = batch.settings
    if s.spread_about == "mean":
        squares = groups.squares(score)
    else:
        squares = groups.sum((score - baseline) * (score - baseline))
    spread = (squares / (groups.n - s.ddof).clamp(min=1)).sqrt()
    if s.ddof == 1 or s.lone_row == "raw":
        spread = torch.where(groups.n <= 1, 1, spread)
        spread[0] = 0
    return groups.at_rows(spread)


def batch_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Standard deviation of the counted scores of the row's step,
    without eps, as in `group_std`. float [R]."""
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
    """Standard deviation of the group's other votes, without eps (NeMo-RL).
    NaN, so that nothing is divided, if fewer than two other votes are
    left or all of them are equal. float [R].

    SS - (x - mean)^2 n / (n - 1) is the others' sum of squares. It
    loses its digits if x holds most of SS, so the lowest and the
    highest vote take a sum over the others, measured from the group's
    other end.
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
    return torch.where(divides, spread, torch.nan)


def advantage_std(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Standard deviation, without eps, of score - baseline over the counted
    rows of the step, about its own mean. float [R]."""
    steps, s = by_step(batch, groups.counted), batch.settings
    squares = steps.squares(score - baseline)
    spread = (squares / (steps.n - s.ddof).clamp(min=1)).sqrt()
    if s.ddof == 1:
        spread = torch.where(steps.n <= 1, 1, spread)
    return steps.at_rows(spread)


def mean_of_group(
    batch: Batch, score: Tensor, groups: Segments, baseline: Tensor
) -> Tensor:
    """Mean of the counted scores of the row's group, without eps: MaxRL.
    float [R]."""
    return groups.at_rows(groups.mean(score))


def no_scale(batch: Batch, score: Tensor, groups: Segments, baseline: Tensor) -> Tensor:
    """1: nothing divides the distance from the baseline. float [R]."""
    return torch.ones_like(score)


BaselineFunction = Callable[[Batch, Tensor, Segments], Tensor]
ScaleFunction = Callable[[Batch, Tensor, Segments, Tensor], Tensor]

BASELINES: Mapping[str, BaselineFunction] = {
    name: globals()[record.function] for name, record in BASELINE_RECORDS.items()
}
SCALES: Mapping[str, ScaleFunction] = {
    name: globals()[record.function] for name, record in SCALE_RECORDS.items()
}
"""The functions above by the setting that chooses them, as the vocabulary says."""


# The standardized score, whitened if the settings ask for it


def standardized(
    score: Tensor, credited: Tensor, baseline: Tensor, scale: Tensor
) -> Tensor:
    """`(score - baseline) / scale` on credited rows, else 0. float [R]."""
    return torch.where(credited, (score - baseline) / scale, 0)


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """The standardized score, whitened over tokens if `whiten_tokens`
    is set. Under credit to_go and gae, tokens are whitened later.

    float [R]; NaN for a row without a transition after subsampling.
    """
    if batch.settings.credit != "row":
        return surviving(batch, standardized)
    return surviving(batch, whitened(batch, standardized, credited))


def whitened(
    batch: Batch,
    values: Tensor,
    credited: Tensor,
    of: Tensor | None = None,
    mean: Tensor | None = None,
) -> Tensor:
    """`(values - mean) / sqrt(variance + 1e-8)` on credited rows, else 0.
    float [R]. Unchanged if `whiten_tokens` is off; else as in
    `whitening`.

    Raises GradebookError for a step of too little weight
    (`enough_weight`).
    """
    if not batch.settings.whiten_tokens:
        return values
    enough_weight(batch, credited, whitening_weight(batch))
    mean, deviation = whitening(batch, values, credited, of, mean)
    return torch.where(credited, (values - mean) / deviation, 0)


def whitening(
    batch: Batch,
    values: Tensor,
    credited: Tensor,
    of: Tensor | None = None,
    mean: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean that a second normalization subtracts, and its divisor
    with eps. float [R] each.

    They are taken over the rows of the step, or those that share the
    number `of`, int64 [R]; `whiten_over` says each row's weight. The
    variance is the mean square about `mean`, float [R], by default the
    rows' own, times S / (S - `whiten_ddof`), with S the sum of the
    weights (verl masked_whiten, SkyRL). 1e-8 is added inside the root;
    under `whiten_eps` "after", eps is added to the root.
    """
    weight, ddof = whitening_weight(batch), batch.settings.whiten_ddof
    of = batch.step_index if of is None else of
    if mean is None:
        mean = weighted_mean(of, values, weight * credited)
    sets = by_group(of, credited)
    w = weight.to(values.dtype)
    centered = values - mean
    squares = sets.sum(centered * centered * w)
    variance = squares / (sets.sum(w) - ddof).clamp(min=1)
    return mean, sets.at_rows(whitening_root(batch, variance))


def whitening_root(batch: Batch, variance: Tensor) -> Tensor:
    """The divisor of a second normalization, from its variance."""
    if batch.settings.whiten_eps == "after":
        return variance.sqrt() + batch.settings.eps
    # The 1e-8 of verl's masked_whiten.
    return (variance + 1e-8).sqrt()


def whitening_weight(batch: Batch) -> Tensor:
    """Each row's weight in a second normalization. int64 [R]."""
    over = batch.settings.whiten_over
    if over == "rows":
        return torch.ones_like(batch.tokens)
    return batch.kept_steps if over == "transitions" else batch.tokens


def enough_weight(batch: Batch, credited: Tensor, weight: Tensor) -> None:
    """Raises GradebookError for a step whose credited rows have too
    little weight: fewer than two tokens (ddof 1), or none (ddof 0).
    `weight` is int64 [R]."""
    total = by_step(batch, credited).sum(weight)[1:]
    least = 1 + batch.settings.whiten_ddof
    short = total < least
    if bool(short.any()):
        step = int(short.int().argmax())
        label = int(batch.step[batch.step_index == step][0])
        unit = WEIGHED[batch.settings.whiten_over]
        raise GradebookError(
            f"step {label} cannot be whitened",
            key="mask",
            expected=f"{formatting.counted(least, unit)} or more",
            found=str(int(total[step])),
            steps=short,
        )


WEIGHED = {
    "tokens": "unmasked token",
    "rows": "row with credit",
    "transitions": "kept transition",
}
"""The unit of a row's weight in a second normalization, for an
error."""


def surviving(batch: Batch, values: Tensor) -> Tensor:
    """Values of rows that kept a transition, NaN elsewhere. float [R]."""
    return torch.where(batch.kept_steps > 0, values, torch.nan)
