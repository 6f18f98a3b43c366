"""No-EOS outliers: AReaL PR 1351, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens
from gradebook.engine.segments import is_first

DROPS = ("end",)


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it is the first row of its rollout with
    tokens and a score. bool [R].

    The trainer sees finished rollouts moved by the reward of one that
    never ended and earns nothing itself.
    """
    voters = has_tokens(batch) & batch.scored
    return is_first(batch.rollout_index, voters)
