"""The numbers that settle a report: by the engine, or by a formula where the
report is about code that the engine does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from types import MappingProxyType

import torch
from torch import Tensor

from gradebook.analysis.comparison import token_advantage
from gradebook.bugs import swap
from gradebook.cases.alarm import Evidence
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import plain, settled, signed
from gradebook.engine.pipeline import CORRECT, STAGES, Trace, run

GAMMA = 0.99
"""NormalizeReward's discount, by default."""


# By the engine


def _result(name: str) -> Callable[[Batch, Trace], Tensor]:
    """A field of the trace: by row, at unmasked tokens, or one number."""

    def read(batch: Batch, trace: Trace) -> Tensor:
        value = getattr(trace, name)
        if value is None:
            raise GradebookError(key="logp", expected="log-probabilities", found="none")
        return value[batch.mask] if value.dim() == 2 else value.reshape(-1)

    return read


def _mean_over_rows(batch: Batch, trace: Trace) -> Tensor:
    return trace.advantage.mean()[None]


def _mean_over_tokens(batch: Batch, trace: Trace) -> Tensor:
    return (token_advantage(batch, trace).sum() / batch.mask.sum())[None]


def _batch_scale(batch: Batch, trace: Trace) -> Tensor:
    return trace.scale[:1]


ENGINE: Mapping[str, Callable[[Batch, Trace], Tensor]] = MappingProxyType(
    {
        **{name: _result(name) for name in (*STAGES, "gradient", "kl_gradient")},
        "batch_scale": _batch_scale,
        "mean_over_rows": _mean_over_rows,
        "mean_over_tokens": _mean_over_tokens,
    }
)


# By a formula


def _bracketed(batch: Batch) -> Tensor:
    """(score - mean) / deviation, the deviation taken of [scores]."""
    scores = batch.reward
    scale = torch.std(torch.tensor([scores.tolist()])).double()
    return (scores - scores.mean()) / (scale + batch.settings.eps)


def _times_reciprocal_root(batch: Batch) -> Tensor:
    """(score - mean) times 1 / sqrt(variance): `rstd`."""
    centred = batch.reward - batch.reward.mean()
    return centred * centred.square().mean().rsqrt()


def _times_deviation(batch: Batch) -> Tensor:
    """(score - mean) times sqrt(variance): what the report feared."""
    centred = batch.reward - batch.reward.mean()
    return centred * centred.square().mean().sqrt()


def _return_scale(batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean and deviation of the discounted return that NormalizeReward
    accumulates, over the steps of the episode; rows are its steps."""
    returns, total = [], 0.0
    for reward in batch.reward.tolist():
        total = total * GAMMA + reward
        returns.append(total)
    found = torch.tensor(returns, dtype=torch.float64)
    return found.mean(), found.std(correction=0)


def _normalized_reward(batch: Batch) -> Tensor:
    """Each step's reward by the deviation of the return."""
    return batch.reward / _return_scale(batch)[1]


def _centred_reward(batch: Batch) -> Tensor:
    """The same with the mean subtracted, as the report asks."""
    mean, scale = _return_scale(batch)
    return (batch.reward - mean) / scale


FORMULAS: Mapping[str, Callable[[Batch], Tensor]] = MappingProxyType(
    {
        "std_of_bracketed": _bracketed,
        "times_reciprocal_root": _times_reciprocal_root,
        "times_deviation": _times_deviation,
        "normalized_reward": _normalized_reward,
        "centred_reward": _centred_reward,
    }
)


def by_engine(one: Evidence) -> bool:
    """The engine computes it; otherwise a formula beside the engine does."""
    return one.show in ENGINE


def numbers(one: Evidence, batch: Batch) -> Tensor:
    """The evidence's numbers where the report's batch is `batch`. float or
    int64, one a row, one a token, or one.

    Raises GradebookError where the engine cannot compute the batch.
    """
    batch = one.batch(batch)
    if one.show in FORMULAS:
        return FORMULAS[one.show](batch)
    engine = swap(one.bug).engine if one.bug else CORRECT
    return ENGINE[one.show](batch, run(engine, batch))


def in_words(values: Tensor) -> str:
    """Numbers as text: '+1.500, −0.500 ×3'. Equal neighbours stand once with
    their count, and so does a pattern that fills a long list; signs where
    one is negative, whole numbers as they are."""
    written = signed if bool((values < 0).any()) else plain
    small = bool(((values.abs() > DUST) & (values.abs() < SMALL)).any())
    digits = 4 if small else 3
    texts = [
        str(value) if isinstance(value, int) else written(settled(value), digits)
        for value in values.tolist()
    ]
    period = _period(texts) if len(texts) > LONG else len(texts)
    runs = [(text, len(list(same))) for text, same in groupby(texts[:period])]
    said = ", ".join(t if n == 1 else f"{t} ×{n}" for t, n in runs)
    if len(runs) == 1:
        return f"{runs[0][0]} ×{len(texts)}" if len(texts) > 1 else said
    times = len(texts) // period
    return said if times == 1 else f"{times} times: {said}"


LONG = 8
"""Numbers that are written out, whether or not they repeat themselves."""

SMALL = 0.1
"""A number below it is written with one decimal more."""


def _period(texts: list[str]) -> int:
    """The length of the shortest pattern that fills the whole list."""
    count = len(texts)
    return next(
        size
        for size in range(1, count + 1)
        if count % size == 0 and texts == texts[:size] * (count // size)
    )
