"""What a trainer does before the pipeline: it draws a subsample of transitions."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.pipeline import Engine, run

DRAWS = 200


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
