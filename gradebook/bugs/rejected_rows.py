"""Rejected rows: verl PR 6452, open."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import may_end

DROPS = ("tokens",)


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it ended as it should. bool [R].

    The trainer sees survivors moved by the reward of a sibling whose whole
    response mask was set to zero.
    """
    return may_end(batch)
