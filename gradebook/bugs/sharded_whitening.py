"""Sharded whitening: slime PR 2235, fixed; miles PR 3229, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import (
    enough_tokens,
    surviving,
    whitened_about,
)
from gradebook.engine.segments import weighted_mean


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Whitened over the tokens of the row's own rank. float [R].

    The trainer sees two advantages inside one rollout: one on each rank
    that holds a part of it.
    """
    if not batch.settings.whiten_tokens:
        return surviving(batch, standardized)
    enough_tokens(batch, credited)
    rank = batch.within_step(batch.rank)
    mean = weighted_mean(rank, standardized, batch.tokens * credited)
    a = whitened_about(batch, standardized, credited, mean, rank)
    return surviving(batch, a)
