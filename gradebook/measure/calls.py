"""How each trainer's functions are reached: the settings that lead to them, the places
at which releases have them, and how they are called. A call takes a cut function, rows
and settings, and gives advantages [R]."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradebook.measure.cut import Cut, Silent, at
from gradebook.measure.shapes import TrainerRows
from gradebook.trainers.child import flat

PARTS = "args accelerator model strategy rollout reward algo advantage kl_ctl"
SIZES = "num_generations n_samples_per_prompt num_samples group_size"
OFF = "kl_in_reward dynamic_num_samples packing_samples remove_std_bias no_std_norm"
NONE = (
    "reward_clip_range clip_range overlong_buffer_len std_threshold rank_penalty"
    " stop_properly_penalty_coef custom_reward_post_process_func"
)
USUAL: dict[str, Any] = {
    **dict.fromkeys([*OFF.split(), "no_advantage_std_norm"], False),
    **dict.fromkeys(NONE.split()),
    "beta": 0.0,
    "value": 0.0,
    "gamma": 1.0,
    "epsilon": 1e-6,
    "device": "cpu",
    "training": True,
    "rewards_normalization": True,
    "std_cal_level": "group",
    "advantage_estimator": "grpo",
    "multi_objective_aggregation": "sum_then_normalize",
    "reward_func_names": [],
    "_metrics": Silent(),
    "_logs": Silent(),
}
"""The attributes that the functions read from their trainers, besides an adapter's
settings."""


def trainer(cut: Cut, rows: TrainerRows, **settings: Any) -> Any:
    """Replaces the trainer's `self`, and the parts of its configuration."""
    of_rows = dict.fromkeys(SIZES.split(), rows.size) | {
        "rollout_batch_size": len(rows.groups),
        "reward_weights": rows.weights,
        "reward_funcs": [None] * len(rows.weights),
    }
    return cut.trainer(PARTS, **USUAL | of_rows | settings)


def positional(cut: Cut, *values: Any) -> Any:
    """Calls the function with these values, and None for any further argument of a
    release."""
    return cut.run(*values, *[None] * (cut.run.__code__.co_argcount - len(values)))


# One group at a time


def each_group(cut: Cut, rows: TrainerRows, **settings: Any) -> list[float]:
    """Calls the function group by group; if it is a method, with the trainer before the
    rewards."""
    owner = [trainer(cut, rows, **settings)] if "." in cut.name else []
    return [a for rewards in rows.lists() for a in cut.run(*owner, rewards)]


ART_NATIVE = "art/tinker_native/data.py compute_advantages"
art_native = at("TinkerNativeBackend", ART_NATIVE)(each_group)
COSMOS = "cosmos_rl/dispatcher/algo/grpo.py GRPO.compute_advantage"
cosmos = at("unbiased_advantage = false", COSMOS, eps=1e-6)(each_group)
TRL_WORKER = "trl/experimental/async_grpo/async_rollout_worker.py ._score_group"


@at(
    "AsyncGRPOTrainer",
    f"{TRL_WORKER} all_rewards total_calls",
    f"{TRL_WORKER} all_rewards samples",
)
def trl_worker(cut: Cut, rows: TrainerRows) -> list[float]:
    worker, advantages = trainer(cut, rows), []
    for group in rows.by_prompt(rows.functions.double().tolist()):
        columns = [list(column) for column in zip(*group)]
        advantages += cut.run(self=worker, all_rewards=columns)["advantages"].tolist()
    return advantages


TRINITY_GRPO = "trinity/algorithm/advantage_fn/grpo_advantage.py"


@at(
    "algorithm.advantage_fn={name}",
    f"{TRINITY_GRPO} GRPOGroupedAdvantage.calculate_group_advantage",
)
def trinity_task(cut: Cut, rows: TrainerRows) -> list[float]:
    groups = rows.samples()
    for group in groups:
        cut.run(trainer(cut, rows), "task", group)
    return [float(sample.advantages[-1]) for sample in flat(groups)]


# All groups, by prompt


def tokens(cut: Cut, rows: TrainerRows, **settings: Any) -> torch.Tensor:
    """verl and its descendants: rewards on the last token, prompt ids."""
    return cut.run(*rows.tokens(), **settings)[0][:, 0]


verl = at(
    "algorithm.adv_estimator={name}",
    "verl/trainer/ppo/core_algos.py compute_{name}_outcome_advantage",
    "siirl/dag_worker/core_algos.py compute_{name}_outcome_advantage",
    "siirl/workers/dag_worker/core_algos.py compute_{name}_outcome_advantage",
    "trinity/trainer/verl/core_algos.py compute_{name}_outcome_advantage",
)(tokens)
skyrl = at(
    "trainer.algorithm.advantage_estimator={name}",
    "skyrl_train/utils/ppo_utils.py compute_{name}_outcome_advantage",
    "skyrl/backends/skyrl_train/utils/ppo_utils.py compute_{name}_outcome_advantage",
    "skyrl/backends/skyrl_train/utils/ppo_utils.py compute_{name}_advantage",
)(tokens)


@at("algorithm.advantage_fn={name}", f"{TRINITY_GRPO} GRPOAdvantageFn.__call__")
def trinity_batch(cut: Cut, rows: TrainerRows) -> torch.Tensor:
    rewards, mask, index = rows.tokens()
    batch = {"token_level_rewards": rewards, "response_mask": mask}
    step = SimpleNamespace(batch=batch, non_tensor_batch={"uid": index})
    cut.run(trainer(cut, rows), step)
    return batch["advantages"][:, -1]


SWIFT = "swift/rl_core/advantage.py compute_advantages"


@at("a number of samples that varies by prompt", f"{SWIFT}_dynamic")
def swift_dynamic(cut: Cut, rows: TrainerRows) -> torch.Tensor:
    prompts, requests = map(str, rows.prompt), map(str, range(len(rows.prompt)))
    return cut.run(rows.functions, rows.weights, list(prompts), list(requests))[0]


@at("rl.train", "tinker_cookbook/rl/data_processing.py compute_advantages")
def tinker(cut: Cut, rows: TrainerRows) -> torch.Tensor:
    groups = [
        SimpleNamespace(get_total_rewards=lambda rewards=rewards: rewards)
        for rewards in rows.lists()
    ]
    return torch.cat(cut.run(groups))


@at(
    "LocalBackend",
    "art/preprocessing/tokenize.py tokenize_trajectory_groups",
    "art/local/tokenize.py tokenize_trajectory_groups",
)
def art(cut: Cut, rows: TrainerRows, **settings: Any) -> list[float]:
    def keep(*values: Any, **named: Any) -> list[Any]:
        """Leaves a row's advantage, a float, with its messages."""
        arguments = (*values, *named.values())
        row = next(a for a in arguments if hasattr(a, "messages_and_choices"))
        row.messages_and_choices += [a for a in arguments if isinstance(a, float)]
        return []

    for name in ("tokenize_trajectory", "assemble_vllm_training_sequences"):
        cut.module[name] = keep
    cut.module["History"] = cut.module["LegacyHistory"] = SimpleNamespace
    groups = rows.samples()
    list(cut.run(None, groups, True, **settings))
    return [sum(sample.messages_and_choices) for sample in flat(groups)]


# All rows, in groups of one size by position


def statements(cut: Cut, rows: TrainerRows, **settings: Any) -> torch.Tensor:
    return cut.run(
        self=trainer(cut, rows, **settings),
        num_generations=rows.size,
        mode="train",
        device="cpu",
        rewards_per_func=rows.functions,
        rewards=(rows.functions * rows.weights).nansum(1),
    )["advantages"]


GENERATE = "._generate_and_score_completions rewards_per_func process_slice"
trl = at(
    "scale_rewards={scale_rewards!r}",
    f"trl/trainer/grpo_trainer.py {GENERATE}",
    "trl/trainer/grpo_trainer.py ._prepare_inputs rewards_per_func process_slice",
    "trl/trainer/grpo_trainer.py .compute_loss rewards_per_func per_token_loss",
)(statements)
trl_rloo = at("RLOOTrainer", f"trl/trainer/rloo_trainer.py {GENERATE}")(statements)
SWIFT_TRAINER = "swift/trainers/rlhf_trainer/grpo_trainer.py"


@at(
    "--advantage_estimator {name} --scale_rewards {scale_rewards}",
    SWIFT,
    "swift/rlhf_trainers/grpo_trainer.py ._compute_advantages",
    f"{SWIFT_TRAINER} ._compute_advantages",
    f"{SWIFT_TRAINER} ._prepare_batch_inputs rewards process_slice",
    f"{SWIFT_TRAINER} ._prepare_batch_inputs rewards template",
    f"{SWIFT_TRAINER} {GENERATE}",
    advantage_estimator="{name}",
)
def swift(cut: Cut, rows: TrainerRows, **settings: Any) -> torch.Tensor:
    if cut.name == "compute_advantages":
        return cut.run(rows.functions, rows.weights, rows.size, **settings)[0]
    if cut.name == "_compute_advantages":
        return positional(cut, trainer(cut, rows, **settings), [], rows.functions)
    return statements(cut, rows, **settings)


OPENRLHF = "openrlhf/trainer/ppo_utils/experience_maker.py"


@at(
    "--algo.advantage.estimator {name}",
    f"{OPENRLHF} .compute_advantages_and_returns",
    f"{OPENRLHF} .process_experiences",
    estimator="{name}",
)
def openrlhf(cut: Cut, rows: TrainerRows, estimator: str) -> torch.Tensor:
    maker = trainer(cut, rows, estimator=estimator, advantage_estimator=estimator)
    mask = torch.ones(len(rows.prompt), 4, dtype=torch.bool)
    step = SimpleNamespace(
        index=list(range(len(rows.prompt))),
        rewards=rows.rewards,
        action_mask=mask,
        kl=torch.zeros(mask.shape),  # log-probabilities are float32
        info={"reward": rows.rewards, "num_actions": 4},
    )
    step.to_device = lambda device: step
    parameters = inspect.signature(cut.run).parameters
    old = {"gamma": 1.0, "lambd": 1.0} if "kwargs" in parameters else {}
    result = cut.run(maker, [step], **old)
    return result[1][0] if isinstance(result, tuple) else step.advantages[:, -1]


@at(
    "reward_norm: mean_level={mean_level}, std_level={std_level}",
    "areal/utils/data.py Normalization",
    std_unbiased=True,
    eps=1e-5,
)
def areal(cut: Cut, rows: TrainerRows, **levels: Any) -> torch.Tensor:
    return cut.run(trainer(cut, rows, **levels))(rows.rewards)


@at("--advantage-estimator grpo", "miles/ray/rollout.py ._post_process_rewards")
def miles(cut: Cut, rows: TrainerRows, **settings: Any) -> list[float]:
    return cut.run(trainer(cut, rows, **settings), flat(rows.samples()))[1]


TINKER_TRAIN = "skyrl-agent/skyrl_agent/integrations/tinker/tinker_train.py"


@at("skyrl-agent with Tinker", f"{TINKER_TRAIN} compute_advantages_grpo")
def skyrl_agent(cut: Cut, rows: TrainerRows) -> list[float]:
    return cut.run(flat(rows.lists()), group_size=rows.size, normalize=True)


@at(
    "--critic_type {name}",
    "oat/algorithms/ppo.py .compute_monte_carlo_advantages",
    critic_type="{name}",
)
def oat(cut: Cut, rows: TrainerRows, **settings: Any) -> torch.Tensor:
    return positional(cut, trainer(cut, rows, **settings), rows.rewards[:, None])


@at("algorithm.adv_type=grpo", "rlinf/algorithms/advantages.py compute_grpo_advantages")
def rlinf(cut: Cut, rows: TrainerRows) -> torch.Tensor:
    mask = torch.ones(4, len(rows.prompt), dtype=torch.bool)
    return cut.run(rewards=rows.rewards, loss_mask=mask, group_size=rows.size)[0][-1]


@at(
    "on MLX, scale_rewards={scale_rewards!r}",
    "unsloth_zoo/mlx/grpo.py group_advantages",
)
def unsloth(cut: Cut, rows: TrainerRows, scale_rewards: str) -> np.ndarray:
    weights = rows.weights.tolist()
    return cut.run(rows.functions.numpy(), weights, rows.size, scale_rewards)[0]


RECIPE = "dev/grpo_full_finetune_distributed"


@at(f"recipe {RECIPE}", f"recipes/{RECIPE}.py .generate_trajectory rewards seq_lens")
def torchtune(cut: Cut, rows: TrainerRows) -> torch.Tensor:
    return cut.run(
        rewards=rows.rewards.reshape(-1, rows.size),
        batch_size=len(rows.prompt) // rows.size,
        grpo_size=rows.size,
        responses=None,
    )["advantages"]


@at(
    "{name}",
    "tunix/rl/algo_core.py compute_{name}_advantages",
    "tunix/rl/grpo/grpo_learner.py compute_{name}_advantages",
    "tunix/rl/grpo/{name}_learner.py compute_advantages",
    "tunix/rl/grpo/{name}_helpers.py compute_advantages",
    "tunix/rl/agentic/{name}_learner.py compute_advantages",
)
def tunix(cut: Cut, rows: TrainerRows) -> np.ndarray:
    """NumPy replaces JAX."""
    return cut.run(rows.rewards.numpy(), rows.size)
