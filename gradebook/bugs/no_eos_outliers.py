"""No-EOS outliers: AReaL PR 1351, open."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens

DROPS = ("end",)


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: it has tokens. bool [R].

    The trainer sees finished rollouts moved by the reward of one that
    never ended and earns nothing itself.
    """
    return has_tokens(batch)
