"""Trainers that cut their rows into groups of one size, by position."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows
from gradebook.trainers.cut import Silent

GRPO, RLOO, DR_GRPO = ({"estimator": name} for name in ("grpo", "rloo", "dr_grpo"))
GROUP = {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4}
BATCH, PLAIN = GROUP | {"scale": "batch_std"}, GROUP | {"scale": "none"}

# TRL: rewards of all functions; the statements of a long method

TRL_GRPO, TRL_RLOO = "trl/trainer/grpo_trainer.py", "trl/trainer/rloo_trainer.py"
TRL_WORKER = "trl/experimental/async_grpo/async_rollout_worker.py"
ENDS = ("rewards_per_func", "process_slice")


def trl_batch(cut: Cut, rows: Rows, **settings: Any) -> torch.Tensor:
    trainer = cut.trainer(
        "args accelerator",
        num_generations=rows.size,
        num_generations_eval=rows.size,
        reward_weights=rows.weights,
        reward_funcs=[None] * len(rows.weights),
        reward_clip_range=None,
        device="cpu",
        beta=0.0,
        _metrics=Silent(),
        **{"multi_objective_aggregation": "sum_then_normalize"} | settings,
    )
    variables = {"num_generations": rows.size, "mode": "train", "device": "cpu"}
    variables |= {"rewards_per_func": rows.functions()}
    return cut.run(self=trainer, **variables)["advantages"]


def trl_group(cut: Cut, rows: Rows) -> list[float]:
    worker, advantages = cut.trainer(reward_weights=rows.weights), []
    values = iter(rows.functions().double().tolist())
    for group in rows.groups:
        columns = [list(c) for c in zip(*(next(values) for _ in group))]
        advantages += cut.run(self=worker, all_rewards=columns)["advantages"].tolist()
    return advantages


def trl_grpo(
    setting: str,
    since: str,
    before: str = "9999",
    scale: bool | str = True,
    declared: Mapping[str, Any] = GROUP,
) -> Function:
    names = ("._generate_and_score_completions", "._prepare_inputs")
    places = tuple((TRL_GRPO, name, *ENDS) for name in names)
    places += ((TRL_GRPO, ".compute_loss", "rewards_per_func", "per_token_loss"),)
    return Function(
        setting,
        places,
        trl_batch,
        declared,
        f"scale_rewards={scale!r}",
        scale in (True, "group"),
        {"scale_rewards": scale} if "," in setting else {},
        since,
        before,
        functions=True,
    )


def trl_rloo(setting: str, reached: str, normalizes: bool) -> Function:
    return Function(
        setting,
        ((TRL_RLOO, "._generate_and_score_completions", *ENDS),),
        trl_batch,
        {} if normalizes else {"baseline": "leave_one_out", "scale": "none"},
        reached,
        not normalizes,
        {"normalize_advantages": normalizes},
        "0.22.0",
        functions=True,
    )


SUMMED_LAST = {"multi_objective_aggregation": "normalize_then_sum"}
TRL = Adapter(
    "TRL",
    "trl",
    (
        trl_grpo("grpo", "0", "0.16"),
        trl_grpo("grpo, scale_rewards=True", "0.16", "0.22"),
        trl_grpo("grpo, scale_rewards=False", "0.16", "0.22", False, PLAIN),
        trl_grpo("grpo, scale_rewards=group", "0.22", scale="group"),
        trl_grpo("grpo, scale_rewards=batch", "0.22", scale="batch", declared=BATCH),
        trl_grpo("grpo, scale_rewards=none", "0.22", scale="none", declared=PLAIN),
        replace(
            trl_grpo("grpo, normalize_then_sum", "0.27"),
            declared={},
            reached="multi_objective_aggregation='normalize_then_sum'",
            default=False,
            settings={"scale_rewards": "group"} | SUMMED_LAST,
        ),
        trl_rloo("rloo", "RLOOTrainer", False),
        trl_rloo(
            "rloo, normalize_advantages",
            "RLOOTrainer, normalize_advantages=True",
            True,
        ),
        Function(
            "async_grpo",
            tuple(
                (TRL_WORKER, "._score_group", "all_rewards", end)
                for end in ("total_calls", "samples")
            ),
            trl_group,
            {"scale": "group_std", "ddof": 0, "eps": 1e-8},
            "AsyncGRPOTrainer",
            since="1.0",
            functions=True,
        ),
    ),
)

# ms-swift: rewards of all functions; groups by position, or by prompt id

SWIFT = "swift/rl_core/advantage.py"
SWIFT_OLD = (
    "swift/rlhf_trainers/grpo_trainer.py",
    "swift/trainers/rlhf_trainer/grpo_trainer.py",
)
SWIFT_EARLY = (
    ("._prepare_batch_inputs", "rewards", "process_slice"),
    ("._prepare_batch_inputs", "rewards", "template"),
    ("._generate_and_score_completions", "rewards_per_func", "process_slice"),
)


def swift_grpo(cut: Cut, rows: Rows, **settings: Any) -> torch.Tensor:
    if cut.name == "compute_advantages":
        return cut.run(rows.functions(), rows.weights, rows.size, **settings)[0]
    trainer = cut.trainer(
        "args accelerator model",
        **settings,
        num_generations=rows.size,
        num_generations_eval=rows.size,
        reward_weights=rows.weights,
        reward_func_names=[],
        device="cpu",
        training=True,
        kl_in_reward=False,
        dynamic_num_samples=False,
        beta=0.0,
        _metrics=Silent(),
        _logs=Silent(),
    )
    if cut.name == "_compute_advantages":
        more: list[Any] = [[]] * (cut.run.__code__.co_argcount - 3)  # 3.8 takes none
        return cut.run(trainer, [], rows.functions(), *more)
    trainer.scale_rewards = bool(
        settings["scale_rewards"]
    )  # statements of releases up to 3.7
    rewards = (rows.functions() * rows.weights).nansum(1)
    variables = {"rewards": rewards, "rewards_per_func": rows.functions()}
    return cut.run(self=trainer, device="cpu", **variables)["advantages"]


def swift_dynamic(cut: Cut, rows: Rows) -> torch.Tensor:
    prompts, requests = map(str, rows.prompt), map(str, range(len(rows.prompt)))
    return cut.run(rows.functions(), rows.weights, list(prompts), list(requests))[0]


def swift(
    estimator: str,
    scale: bool | str,
    declared: Mapping[str, Any],
    since: str = "3.9.3",
    before: str = "9999",
) -> Function:
    return Function(
        f"{estimator}, scale_rewards={scale}",
        (
            (SWIFT, "compute_advantages"),
            *((old, "._compute_advantages") for old in SWIFT_OLD),
            *((SWIFT_OLD[1], *statements) for statements in SWIFT_EARLY),
        ),
        swift_grpo,
        declared,
        f"--advantage_estimator {estimator} --scale_rewards {scale}",
        (estimator, scale) == ("grpo", "group"),
        {"advantage_estimator": estimator, "scale_rewards": scale},
        since,
        before,
        functions=True,
    )


MS_SWIFT = Adapter(
    "ms-swift",
    "ms-swift",
    (
        swift("grpo", "group", GROUP),
        swift("grpo", "batch", BATCH),
        swift("grpo", "none", PLAIN),
        swift("rloo", "none", RLOO),
        swift(
            "reinforce_plus_plus", "batch", {"estimator": "group_mean/advantage_std"}
        ),
        swift("grpo", "gdpo", {}, "4.0"),
        swift("grpo", True, GROUP, "3.3", "3.9.3"),
        swift("grpo", False, PLAIN, "3.3", "3.9.3"),
        replace(swift("grpo", True, GROUP, "0", "3.3"), setting="grpo"),
        Function(
            "grpo dynamic (by id)",
            ((SWIFT, "compute_advantages_dynamic"),),
            swift_dynamic,
            GROUP,
            "a number of samples that varies by prompt",
            functions=True,
        ),
    ),
)

# OpenRLHF: one experience of all rows

EXPERIENCE = "openrlhf/trainer/ppo_utils/experience_maker.py"


def experience(cut: Cut, rows: Rows, estimator: str) -> torch.Tensor:
    maker = cut.trainer(
        "args strategy rollout reward algo advantage kl_ctl",
        estimator=estimator,
        advantage_estimator=estimator,
        n_samples_per_prompt=rows.size,
        gamma=1.0,
        value=0.0,
        no_std_norm=False,
        no_advantage_std_norm=False,
        clip_range=None,
        reward_clip_range=None,
        overlong_buffer_len=None,
        stop_properly_penalty_coef=None,
        packing_samples=False,
        ring_attn_group=None,
    )
    rewards, mask = rows.rewards(), torch.ones(len(rows.prompt), 4, dtype=torch.bool)
    step = SimpleNamespace(
        index=list(range(len(rewards))),
        rewards=rewards,
        action_mask=mask,
        kl=torch.zeros(mask.shape),  # log-probabilities are float32
        info={"reward": rewards, "num_actions": mask.shape[1]},
    )
    step.to_device = lambda device: step
    parameters = inspect.signature(cut.run).parameters
    old = {"gamma": 1.0, "lambd": 1.0} if "kwargs" in parameters else {}  # up to 0.7
    result = cut.run(maker, [step], **old)
    if isinstance(result, tuple):
        return result[1][0]
    return step.advantages[:, -1]


OPENRLHF = Adapter(
    "OpenRLHF",
    "openrlhf",
    tuple(
        Function(
            estimator,
            tuple(
                (EXPERIENCE, f".{name}")
                for name in ("compute_advantages_and_returns", "process_experiences")
            ),
            experience,
            declared,
            f"--algo.advantage.estimator {estimator}",
            settings={"estimator": estimator},
        )
        for estimator, declared in (
            ("group_norm", GRPO),
            ("dr_grpo", DR_GRPO),
            ("rloo", RLOO),
            (
                "reinforce_baseline",
                {"estimator": "group_mean/advantage_std", "ddof": 0},
            ),
        )
    ),
)

# AReaL: the class that normalizes rewards


def normalization(cut: Cut, rows: Rows, **levels: Any) -> torch.Tensor:
    config = cut.trainer(**levels, std_unbiased=True, group_size=rows.size, eps=1e-5)
    return cut.run(config)(rows.rewards())


def areal(setting: str, mean: str, std: str | None, one_out: bool = False) -> Function:
    baseline = "leave_one_out" if one_out else f"{mean}_mean"
    scale = f"{std}_std" if std else "none"
    if (mean, std) == ("group", "batch"):
        scale = "advantage_std"
    declared: dict[str, Any] = {"estimator": f"{baseline}/{scale}"}
    return Function(
        setting,
        (("areal/utils/data.py", "Normalization"),),
        normalization,
        declared | ({"spread_about": "baseline", "eps": 1e-5} if std else {}),
        f"reward_norm: mean_level={mean}, std_level={std}"
        + (", mean_leave1out=true" if one_out else ""),
        settings={"mean_level": mean, "std_level": std, "mean_leave1out": one_out},
    )


AREAL = Adapter(
    "AReaL",
    "areal",
    (
        areal("group mean, group std", "group", "group"),
        areal("group mean, batch std", "group", "batch"),
        areal("group mean, no std", "group", None),
        areal("leave one out, no std", "group", None, True),
        areal("leave one out, group std", "group", "group", True),
        areal("batch mean, batch std (NormConfig's defaults)", "batch", "batch"),
    ),
)

# miles, a fork of slime: samples of a rollout


def miles(cut: Cut, rows: Rows, grpo_std_normalization: bool) -> list[float]:
    manager = cut.trainer(
        "args",
        advantage_estimator="grpo",
        rewards_normalization=True,
        grpo_std_normalization=grpo_std_normalization,
        n_samples_per_prompt=rows.size,
        rollout_batch_size=len(rows.groups),
        custom_reward_post_process_func=None,
    )
    samples = [
        SimpleNamespace(get_reward_value=lambda args, value=value: value)
        for group in rows.lists()
        for value in group
    ]
    return cut.run(manager, samples)[1]


MILES = Adapter(
    "miles",
    "miles-rl",
    tuple(
        Function(
            f"grpo, grpo_std_normalization={divides}",
            (("miles/ray/rollout.py", "._post_process_rewards"),),
            miles,
            GRPO if divides else DR_GRPO,
            "--advantage-estimator grpo",
            divides,
            {"grpo_std_normalization": divides},
        )
        for divides in (True, False)
    ),
)
