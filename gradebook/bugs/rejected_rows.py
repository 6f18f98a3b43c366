"""Rejected rows: verl PR 6452, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import may_end
from gradebook.engine.segments import is_first

DROPS = ("tokens",)


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it is the first row of its rollout that
    ended as it should and has a score. bool [R].

    The trainer sees survivors moved by the reward of a sibling whose whole
    response mask was set to zero.
    """
    voters = may_end(batch) & batch.scored
    return is_first(batch.rollout_index, voters)
