"""OpenPipe ART: the local backend's tokenizer, and the Tinker backend."""

import inspect
from types import SimpleNamespace
from typing import Any

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

PATHS = ("art/preprocessing/tokenize.py", "art/local/tokenize.py")


class Group(list):
    """Trajectories of one prompt."""

    @property
    def trajectories(self):
        return self


def local(cut: Cut, rows: Rows) -> list[float]:
    groups = [Group(map(_trajectory, rewards)) for rewards in rows.lists()]
    advantages: dict[int, float] = {}

    def keep(*values: Any, **named: Any) -> list[Any]:
        known = (*values, *named.values())
        (own,) = (one for one in known if hasattr(one, "messages_and_choices"))
        place = id(own.messages_and_choices)
        advantages[place] = named["advantage"] if named else values[2]
        return []

    for name in ("tokenize_trajectory", "assemble_vllm_training_sequences"):
        cut.module.space[name] = keep
    cut.module.space["History"] = cut.module.space["LegacyHistory"] = SimpleNamespace
    takes = inspect.signature(cut.run).parameters
    scaled = {"scale_rewards": True} if "scale_rewards" in takes else {}
    list(cut.run(None, groups, True, **scaled))
    places = [id(one.messages_and_choices) for group in groups for one in group]
    return [advantages.get(place, 0.0) for place in places]


def _trajectory(reward: float) -> SimpleNamespace:
    return SimpleNamespace(
        reward=reward,
        exchanges=[],
        messages_and_choices=[],
        tools=None,
        additional_histories=[],
    )


def native(cut: Cut, rows: Rows) -> list[float]:
    return [one for rewards in rows.lists() for one in cut.run(rewards)]


ADAPTER = Adapter(
    "OpenPipe ART",
    "openpipe-art",
    (
        Function(
            "local backend",
            tuple((path, "tokenize_trajectory_groups") for path in PATHS),
            local,
            {"scale": "group_std", "ddof": 0},
            "LocalBackend",
            True,
        ),
        Function(
            "tinker_native backend",
            (("art/tinker_native/data.py", "compute_advantages"),),
            native,
            {"estimator": "grpo"},
            "TinkerNativeBackend",
        ),
    ),
)
