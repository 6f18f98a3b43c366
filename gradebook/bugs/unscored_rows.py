"""Unscored rows: TRL PR 5902, fixed in v1.6.0."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens, may_end


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage: it has tokens and may end. bool [R].

    The trainer sees a completion that no reward function scored learn as
    if it had the reward 0.
    """
    return has_tokens(batch) & may_end(batch)
