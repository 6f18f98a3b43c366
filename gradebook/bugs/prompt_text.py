"""Prompt text: NeMo-RL PR 3882, open on main."""

from torch import Tensor

from gradebook.core.batch import Batch


def group(batch: Batch) -> Tensor:
    """The text of the row's prompt, numbered as texts appear. int64 [R].

    The trainer sees prompts with one text compared with each other, and
    rows of one prompt with different texts compared with nobody.
    """
    return batch.within_step(batch.text)
