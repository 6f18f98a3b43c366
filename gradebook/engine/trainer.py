"""What a trainer does around the pipeline: finds EOS by length, draws a
subsample of transitions, evaluates."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.pipeline import Engine, Trace, put_back, run
from gradebook.engine.segments import is_first

DRAWS = 200


def eos_by_width(batch: Batch) -> Tensor:
    """EOS as AReaL finds it: a row as long as the padded width has none.
    bool [R]."""
    return batch.tokens < batch.mask.shape[-1]


def subsampled(batch: Batch, seed: int) -> Tensor:
    """Transitions each row keeps when as many as now are kept of each
    step's, drawn singly without replacement. int64 [R]."""
    generator = torch.Generator().manual_seed(seed)
    owner = torch.arange(batch.rows).repeat_interleave(batch.steps)
    step = batch.step_index[owner]
    order = torch.rand(len(owner), generator=generator).argsort()
    order = order[step[order].argsort(stable=True)]
    kept = torch.zeros(batch.step_count, dtype=torch.int64)
    kept.index_add_(0, batch.step_index, batch.kept_steps)
    count = torch.bincount(step, minlength=batch.step_count)
    place = torch.arange(len(owner)) - (count.cumsum(0) - count)[step[order]]
    drawn = owner[order[place < kept[step[order]]]]
    return torch.bincount(drawn, minlength=batch.rows)


def draws(engine: Engine, batch: Batch, times: int = DRAWS) -> Tensor:
    """Advantages under `times` subsamples, seeds 0.., in one run.

    float [times, R]; NaN where a draw leaves the row no transition.
    """
    kept = torch.cat([subsampled(batch, seed) for seed in range(times)])
    copies = replace(batch.copies(times), kept_steps=kept)
    return run(engine, copies).advantage.reshape(times, batch.rows)


NORMALIZATIONS = (
    "once",
    "twice, by episode",
    "twice, by transition",
    "twice, after subsampling",
)
"""When and over what a second normalization runs."""


def normalized(engine: Engine, batch: Batch, how: str) -> Trace:
    """The trace of `engine`, whose second normalization weighs each row by
    one, by all its transitions, or by those left. A row with no transition
    left has no value whichever way."""
    weights = {
        "twice, by episode": torch.ones_like(batch.steps),
        "twice, by transition": batch.steps,
        "twice, after subsampling": batch.kept_steps,
    }
    trace = run(engine, replace(batch, kept_steps=weights[how]))
    left = batch.kept_steps > 0
    value = torch.where(left, trace.advantage, torch.nan)
    return replace(trace, advantage=value)


def first_generations(batch: Batch) -> Tensor:
    """The first row of each prompt: what an evaluation with one generation
    a prompt sees. bool [R]."""
    every = torch.ones(batch.rows, dtype=torch.bool)
    return is_first(batch.prompt_index, every)


def evaluated(engine: Engine, batch: Batch) -> Trace:
    """The trace with one generation a prompt; other rows have no value."""
    keep = first_generations(batch)
    return put_back(run(engine, batch.select(keep)), keep)
