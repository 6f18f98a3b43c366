"""Phantom signal: NeMo-RL PR 2478, fixed in v0.7.0."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import may_earn, score, varies


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage: under `filter_flat` its prompt's scores
    vary after the penalty for length. bool [R].

    The trainer sees short wrong answers praised in a prompt that nobody
    solved.
    """
    if not batch.settings.filter_flat:
        return may_earn(batch)
    return may_earn(batch) & varies(batch, score(batch))
