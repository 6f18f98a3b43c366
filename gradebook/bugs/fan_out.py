"""Fan-out: miles issue 2378, fixed by PR 2369; open in slime."""

from torch import Tensor

from gradebook.core.batch import Batch

DROPS = ("rollout",)


def counted(batch: Batch, credited: Tensor) -> Tensor:
    """The row may enter a statistic: exactly the credited rows. bool [R].

    The trainer sees a rollout that was cut into several rows pull the mean
    and the deviation toward its own reward.
    """
    return credited
