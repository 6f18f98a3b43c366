"""Sharded whitening: slime PR 2235, fixed; miles PR 3229, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import surviving, whitened


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Whitened over the tokens of the row's own rank. float [R].

    The trainer sees two advantages inside one rollout: one on each rank
    that holds a part of it.
    """
    rank = batch.within_step(batch.rank)
    return surviving(batch, whitened(batch, standardized, credited, rank))
