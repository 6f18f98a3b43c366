"""Trainers that group rows by prompt: by an id, or one group at a time."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

# verl and its descendants: rewards on the last token, rows grouped by prompt id

CPU = {"get_torch_device": lambda: torch.device("cpu")}
"""As under VERL_FORCE_DEVICE=cpu: `grpo_vectorized` of verl 0.6.0 to 0.7.0 asks
for a device and gets a module."""


def outcome(cut: Cut, rows: Rows, **settings: Any) -> Any:
    parameters = inspect.signature(cut.run).parameters
    settings = {k: v for k, v in settings.items() if k in parameters or k != "config"}
    return cut.run(*rows.tokens(), **settings)[0][:, -1]


def by_id(
    paths: str | tuple[str, ...],
    key: str,
    declared: str = "",
    setting: str = "",
    reached: str = "",
    default: bool = False,
    **settings: Any,
) -> Function:
    """A function `compute_..._outcome_advantage` in one of the files."""
    return Function(
        setting or key,
        tuple(
            (path, f"compute_{key}_outcome_advantage")
            for path in ([paths] if isinstance(paths, str) else paths)
        ),
        outcome,
        {"estimator": declared} if declared else {},
        reached or key,
        default,
        settings,
        stubs=CPU,
    )


def verl(key: str, declared: str = "", setting: str = "", **settings: Any) -> Function:
    more = "".join(f", algorithm.{k}={v}" for k, v in settings.items() if k != "config")
    reached = f"algorithm.adv_estimator={key}{more}"
    path = "verl/trainer/ppo/core_algos.py"
    return by_id(path, key, declared, setting, reached, **settings)


VERL = Adapter(
    "verl",
    "verl",
    (
        *(verl(key, key) for key in ("grpo", "rloo", "opo", "gpg")),
        *(verl(key, key) for key in ("grpo_vectorized", "rloo_vectorized")),
        verl("gdpo"),
        verl("reinforce_plus_plus_baseline"),
        verl("grpo_passk", config={}),
        verl("grpo", "dr_grpo", "grpo, no std", norm_adv_by_std_in_grpo=False),
    ),
)


def siirl(key: str, declared: str, setting: str = "", **settings: Any) -> Function:
    folders = ("siirl/dag_worker", "siirl/workers/dag_worker")
    paths = tuple(f"{folder}/core_algos.py" for folder in folders)
    reached = f"algorithm.adv_estimator={key}"
    return by_id(paths, key, declared, setting, reached, **settings)


SIIRL = Adapter(
    "siiRL",
    "siirl",
    (
        siirl("grpo", "grpo"),
        siirl("grpo", "dr_grpo", "grpo, no std", norm_adv_by_std_in_grpo=False),
        siirl("rloo", "rloo"),
        siirl("opo", "opo"),
    ),
)

# SkyRL: verl's functions with settings of its own, and its agent for Tinker


def skyrl(path: str) -> tuple[Function, ...]:
    key = "trainer.algorithm.advantage_estimator="
    off = "grpo, trainer.algorithm.grpo_norm_by_std=false"
    divides, no_std = {"grpo_norm_by_std": True}, {"grpo_norm_by_std": False}
    return (
        by_id(path, "grpo", "grpo", "grpo", key + "grpo", True, **divides),
        by_id(path, "grpo", "dr_grpo", "grpo, no std", key + off, **no_std),
        by_id(path, "rloo", "rloo", "rloo", key + "rloo"),
    )


def skyrl_agent(cut: Cut, rows: Rows) -> list[float]:
    rewards = [reward for group in rows.lists() for reward in group]
    return cut.run(rewards, group_size=rows.size, normalize=True)


SKYRL_TRAIN = Adapter("SkyRL", "skyrl-train", skyrl("skyrl_train/utils/ppo_utils.py"))
SKYRL_BACKEND = "skyrl/backends/skyrl_train/utils/ppo_utils.py"
SKYRL_AGENT = "skyrl-agent/skyrl_agent/integrations/tinker/tinker_train.py"
SKYRL = Adapter(
    "SkyRL",
    "skyrl",
    (
        *skyrl(SKYRL_BACKEND),
        Function(
            "maxrl",
            ((SKYRL_BACKEND, "compute_maxrl_advantage"),),
            outcome,
            {},
            "trainer.algorithm.advantage_estimator=maxrl",
            stubs=CPU,
        ),
        Function(
            "skyrl-agent tinker grpo",
            ((SKYRL_AGENT, "compute_advantages_grpo"),),
            skyrl_agent,
            {},  # `normalize` asks for a second normalization
            "skyrl-agent with Tinker",
            True,
        ),
    ),
)

# Trinity-RFT: one task's experiences at a time; older: verl's batches


def trinity_task(cut: Cut, rows: Rows) -> list[float]:
    algorithm = cut.trainer(
        epsilon=1e-6, std_threshold=None, rank_penalty=None, std_cal_level="group"
    )
    advantages = []
    for group in rows.lists():
        mask = torch.ones(4)
        experiences = [SimpleNamespace(reward=r, action_mask=mask) for r in group]
        cut.run(algorithm, "task", experiences)
        advantages += [float(each.advantages[-1]) for each in experiences]
    return advantages


def trinity_batch(cut: Cut, rows: Rows) -> torch.Tensor:
    rewards, mask, index = rows.tokens()
    batch = {"token_level_rewards": rewards, "response_mask": mask}
    step = SimpleNamespace(batch=batch, non_tensor_batch={"uid": index})
    cut.run(cut.trainer(epsilon=1e-6), step)
    return batch["advantages"][:, -1]


def trinity(setting: str, name: str, call: Any, **releases: str) -> Function:
    estimator = setting.partition("_")[0]
    return Function(
        setting,
        ((f"trinity/algorithm/advantage_fn/{estimator}_advantage.py", name),),
        call,
        {"estimator": estimator},
        f"algorithm.advantage_fn={setting}",
        setting == "grpo",
        **releases,  # type: ignore[arg-type]
    )


TRINITY_CORE = "trinity/trainer/verl/core_algos.py"
GROUPED = "GRPOGroupedAdvantage.calculate_group_advantage"
WHOLE = "GRPOAdvantageFn.__call__"
TRINITY = Adapter(
    "Trinity-RFT",
    "trinity-rft",
    (
        trinity("grpo", GROUPED, trinity_task, since="0.3"),
        trinity("grpo", WHOLE, trinity_batch, before="0.3"),
        trinity("grpo_verl", WHOLE, trinity_batch, since="0.3"),
        trinity("rloo", "RLOOAdvantageFn.__call__", trinity_batch),
        by_id(TRINITY_CORE, "grpo", "grpo", default=True),
        by_id(TRINITY_CORE, "rloo", "rloo"),
    ),
)

# Tinker Cookbook, Cosmos-RL and OpenPipe ART: rewards of one group at a time


def tinker(cut: Cut, rows: Rows) -> torch.Tensor:
    groups = [
        SimpleNamespace(get_total_rewards=lambda rewards=rewards: rewards)
        for rewards in rows.lists()
    ]
    return torch.cat(cut.run(groups))


TINKER_COOKBOOK = Adapter(
    "Tinker Cookbook",
    "tinker-cookbook",
    (
        Function(
            "compute_advantages",
            (("tinker_cookbook/rl/data_processing.py", "compute_advantages"),),
            tinker,
            {"estimator": "dr_grpo"},
            "rl.train",
            True,
        ),
    ),
)


def cosmos(cut: Cut, rows: Rows, unbiased: bool) -> list[float]:
    algorithm = cut.trainer(unbiased=unbiased, eps=1e-6)
    return [a for rewards in rows.lists() for a in cut.run(algorithm, rewards)]


COSMOS_RL = Adapter(
    "Cosmos-RL",
    "cosmos-rl",
    tuple(
        Function(
            f"grpo, unbiased={unbiased}",
            (("cosmos_rl/dispatcher/algo/grpo.py", "GRPO.compute_advantage"),),
            cosmos,
            {"scale": "none"} if unbiased else {"scale": "group_std", "ddof": 0},
            f"unbiased_advantage = {str(unbiased).lower()}",
            not unbiased,
            {"unbiased": unbiased},
        )
        for unbiased in (False, True)
    ),
)


class Trajectories(list):
    """Of one prompt, as ART has them."""

    @property
    def trajectories(self) -> Trajectories:
        return self


def art_local(cut: Cut, rows: Rows) -> list[float]:
    groups = [
        Trajectories(
            SimpleNamespace(
                reward=reward,
                exchanges=[],
                messages_and_choices=[],
                tools=None,
                additional_histories=[],
            )
            for reward in rewards
        )
        for rewards in rows.lists()
    ]
    advantages: dict[int, float] = {}

    def keep(*values: Any, **named: Any) -> list[Any]:
        arguments = (*values, *named.values())
        (trajectory,) = (a for a in arguments if hasattr(a, "messages_and_choices"))
        place = id(trajectory.messages_and_choices)
        advantages[place] = named["advantage"] if named else values[2]
        return []

    for name in ("tokenize_trajectory", "assemble_vllm_training_sequences"):
        cut.module[name] = keep
    cut.module["History"] = cut.module["LegacyHistory"] = SimpleNamespace
    parameters = inspect.signature(cut.run).parameters
    scaled = {"scale_rewards": True} if "scale_rewards" in parameters else {}
    list(cut.run(None, groups, True, **scaled))
    places = [id(each.messages_and_choices) for group in groups for each in group]
    return [advantages.get(place, 0.0) for place in places]


OPENPIPE_ART = Adapter(
    "OpenPipe ART",
    "openpipe-art",
    (
        Function(
            "local backend",
            tuple(
                (f"art/{folder}/tokenize.py", "tokenize_trajectory_groups")
                for folder in ("preprocessing", "local")
            ),
            art_local,
            {"scale": "group_std", "ddof": 0},
            "LocalBackend",
            True,
        ),
        Function(
            "tinker_native backend",
            (("art/tinker_native/data.py", "compute_advantages"),),
            lambda cut, rows: [a for r in rows.lists() for a in cut.run(r)],
            {"estimator": "grpo"},
            "TinkerNativeBackend",
        ),
    ),
)
