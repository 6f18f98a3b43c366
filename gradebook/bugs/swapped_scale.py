"""Swapped scale: TRL issue 3991, fixed by PR 3992 in v0.22.2."""

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.advantages import divisor
from gradebook.engine.segments import by_group


def scale(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor, baseline: Tensor
) -> Tensor:
    """The divisor of another setting than the one asked for. float [R].

    The trainer sees undivided advantages when it asked for the group's
    deviation, and the group's deviation when it asked for none.
    """
    swapped = {"group_std": "none", "batch_std": "group_std", "none": "group_std"}
    asked = batch.settings.scale
    groups = by_group(group, counted)
    return divisor(swapped.get(asked, asked), batch, score, groups, baseline)
