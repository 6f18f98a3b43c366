"""The numbers that settle a report: by the engine, or by a formula if the report is
about code that the engine does not have."""

from collections.abc import Callable, Mapping
from itertools import accumulate, groupby

import torch
from torch import Tensor

from gradebook.bugs import swap
from gradebook.cases.reports import AlarmEvidence
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, choice
from gradebook.core.formatting import DUST, plain, settled, signed
from gradebook.engine.pipeline import CORRECT, STAGES, Trace, run

GAMMA = 0.99
"""The default discount of NormalizeReward."""

OF_STEP: Mapping[str, Callable[[Batch, Trace], Tensor]] = {
    "batch_scale": lambda batch, trace: trace.scale[:1],
    "mean_over_rows": lambda batch, trace: trace.advantage.mean(),
    "mean_over_tokens": lambda batch, trace: (
        (batch.tokens * trace.advantage).nansum() / batch.mask.sum()
    ),
}
"""Evidence that is computed from a trace. All other evidence is one of its fields."""


def centred(batch: Batch) -> Tensor:
    return batch.reward - batch.reward.mean()


def std_of_bracketed(batch: Batch) -> Tensor:
    """(score - mean) / deviation, the deviation taken of [scores]."""
    deviation = torch.std(torch.tensor([batch.reward.tolist()])).double()
    return centred(batch) / (deviation + batch.settings.eps)


def normalized_reward(batch: Batch, centre: bool = False) -> Tensor:
    """Each step's reward divided by the deviation of the discounted return, which
    NormalizeReward accumulates over the episode; the rows are the episode's steps. With
    `centre`, the rewards' mean is subtracted first."""
    rewards = batch.reward.tolist()
    returns = list(accumulate(rewards, lambda total, reward: total * GAMMA + reward))
    values = torch.tensor(returns, dtype=torch.float64)
    return (batch.reward - values.mean() * centre) / values.std(correction=0)


FORMULAS: Mapping[str, Callable[[Batch], Tensor]] = {
    "std_of_bracketed": std_of_bracketed,
    # 1 / sqrt(variance) is `rstd`; the report feared a product with the root itself.
    "times_reciprocal_root": lambda b: centred(b) * centred(b).square().mean().rsqrt(),
    "times_deviation": lambda b: centred(b) * centred(b).square().mean().sqrt(),
    "normalized_reward": normalized_reward,
    "centred_reward": lambda b: normalized_reward(b, centre=True),
}

SHOWN = (*STAGES, "loss", "gradient", "kl_gradient", *OF_STEP, *FORMULAS)
"""What evidence may show."""


def numbers(evidence: AlarmEvidence, batch: Batch) -> Tensor:
    """The evidence's numbers for the report's batch `batch`: float or int64, one per
    row, one per token, or one. Raises GradebookError if the engine cannot compute them,
    and for what evidence cannot show."""
    batch, show = evidence.batch(batch), choice(evidence.show, SHOWN, "show")
    if show in FORMULAS:
        return FORMULAS[show](batch)
    trace = run(swap(evidence.bug).engine if evidence.bug else CORRECT, batch)
    if show in OF_STEP:
        return OF_STEP[show](batch, trace).reshape(-1)
    value = getattr(trace, show)
    if value is None:
        raise GradebookError(key="logp", expected="log-probabilities", found="none")
    return value[batch.mask] if value.dim() == 2 else value.reshape(-1)


def in_words(values: Tensor) -> str:
    """Numbers as text: '+1.500, −0.500 ×3'. All have a sign if one is negative. Whole
    numbers have no decimals; others have one more if one is below 0.1."""
    write = signed if bool((values < 0).any()) else plain
    small = bool(((values.abs() > DUST) & (values.abs() < 0.1)).any())
    texts = [
        str(value) if isinstance(value, int) else write(settled(value), 3 + small)
        for value in values.tolist()
    ]
    runs = [(text, len(list(equal))) for text, equal in groupby(texts)]
    return ", ".join(text if n == 1 else f"{text} ×{n}" for text, n in runs)
