"""Where each trainer's functions are, and how groups of rewards reach them.

Adapters hold no results. What cannot be cut is not measured.
"""

from gradebook.trainers.adapter import Adapter
from gradebook.trainers.adapters import by_position, by_prompt, by_shape


def adapters() -> tuple[Adapter, ...]:
    """All adapters, in the order of the table of releases."""
    return (
        by_position.TRL,
        by_prompt.VERL,
        by_position.OPENRLHF,
        by_position.MS_SWIFT,
        by_position.AREAL,
        by_prompt.SKYRL_TRAIN,
        by_prompt.SKYRL,
        by_position.MILES,
        by_shape.OAT,
        by_shape.RLINF,
        by_shape.UNSLOTH,
        by_shape.TORCHTUNE,
        by_shape.TUNIX,
        by_prompt.TRINITY,
        by_prompt.SIIRL,
        by_prompt.TINKER_COOKBOOK,
        by_prompt.OPENPIPE_ART,
        by_prompt.COSMOS_RL,
    )
