"""One file a trainer: where its functions are and how groups reach them.

Adapters hold no results. What cannot be cut is not measured.
"""

from importlib import import_module

from gradebook.trainers.adapter import Adapter

NAMES = (
    "trl",
    "verl",
    "openrlhf",
    "ms_swift",
    "areal",
    "skyrl_train",
    "skyrl",
    "miles",
    "oat",
    "rlinf",
    "unsloth",
    "torchtune",
    "tunix",
    "trinity",
    "siirl",
    "tinker_cookbook",
    "openpipe_art",
    "cosmos_rl",
)


def adapters() -> tuple[Adapter, ...]:
    """All adapters, in the order of NAMES."""
    return tuple(import_module(f"{__name__}.{name}").ADAPTER for name in NAMES)
