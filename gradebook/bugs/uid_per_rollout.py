"""One uid per rollout: rLLM issue 605, open, not confirmed."""

from torch import Tensor

from gradebook.core.batch import Batch


def group(batch: Batch) -> Tensor:
    """The row's rollout, numbered as rollouts appear. int64 [R].

    The trainer sees the raw reward as the advantage: no rollout has a
    sibling to be compared with.
    """
    return batch.rollout_index
