"""Prompt text: NeMo-RL PR 3882, open (2026-09-08)."""

from torch import Tensor

from gradebook.core.batch import Batch


def group(batch: Batch) -> Tensor:
    """The text of the row's prompt, numbered as texts appear. int64 [R].

    The trainer sees prompts with one text compared with each other, and
    rows of one prompt with different texts compared with no other row.
    """
    return batch.within_step(batch.text)
