"""Dropped winner: NeMo-RL PR 3469, fixed in PR 4158."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.grouping import may_earn, shaped
from gradebook.engine.segments import FLAT, by_group, others


def credited(batch: Batch) -> Tensor:
    """The row may earn an advantage: under `filter_flat` the other scored
    rows of its prompt do not all have one value. bool [R].

    The trainer sees the only right answer of a prompt leave the batch.
    """
    if not batch.settings.filter_flat:
        return may_earn(batch)
    rest = others(batch, by_group(batch.prompt_index, batch.scored))
    values, n = shaped(batch), rest.n.clamp(min=1)
    mean = rest.sum(values) / n
    variance = rest.sum(values * values) / n - mean * mean
    return may_earn(batch) & (rest.n > 1) & (variance > FLAT**1.5)
