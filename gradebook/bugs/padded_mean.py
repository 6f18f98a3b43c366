"""Padded mean: SkyRL issue 1305, open."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import surviving, whitened
from gradebook.engine.segments import by_step


def advantage(batch: Batch, standardized: Tensor, credited: Tensor) -> Tensor:
    """Whitened about a mean that counts padding as tokens with value 0.

    float [R]. The trainer sees every advantage of a padded batch moved,
    and advantages other than 0 if all values are equal.
    """
    steps, step = by_step(batch, credited), batch.step_index
    total = steps.at_rows(steps.sum(standardized * batch.tokens))
    mean = total / (batch.rows_per_step * batch.width)[step]
    return surviving(batch, whitened(batch, standardized, credited, step, mean))
