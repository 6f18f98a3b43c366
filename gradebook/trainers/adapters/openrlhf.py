"""OpenRLHF: one experience of all rows, groups by position."""

import inspect
from types import SimpleNamespace
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

FILE = "openrlhf/trainer/ppo_utils/experience_maker.py"
DECLARED: dict[str, dict[str, Any]] = {
    "group_norm": {"estimator": "grpo"},
    "dr_grpo": {"estimator": "dr_grpo"},
    "rloo": {"estimator": "rloo"},
    "reinforce_baseline": {"estimator": "group_mean/advantage_std", "ddof": 0},
}


def call(cut: Cut, rows: Rows, estimator: str) -> torch.Tensor:
    group = SimpleNamespace
    advantage = group(estimator=estimator, gamma=1.0, no_std_norm=False)
    args = group(
        rollout=group(n_samples_per_prompt=rows.size),
        reward=group(
            clip_range=None,
            overlong_buffer_len=None,
            stop_properly_penalty_coef=None,
        ),
        algo=group(advantage=advantage),
        n_samples_per_prompt=rows.size,
        advantage_estimator=estimator,
        gamma=1.0,
        reward_clip_range=None,
        no_advantage_std_norm=False,
        overlong_buffer_len=None,
        packing_samples=False,
    )
    own = cut.own(
        strategy=group(args=args, ring_attn_group=None),
        args=args,
        advantage_estimator=estimator,
        kl_ctl=group(value=0.0),
        packing_samples=False,
    )
    rewards, mask = rows.rewards(), torch.ones(len(rows.prompt), 4, dtype=torch.bool)
    step = group(
        index=list(range(len(rewards))),
        rewards=rewards,
        action_mask=mask,
        kl=torch.zeros(mask.shape),  # log-probabilities are float32
        info={"reward": rewards, "num_actions": mask.shape[1]},
    )
    step.to_device = lambda device: step
    takes = inspect.signature(cut.run).parameters
    old = {"gamma": 1.0, "lambd": 1.0} if "kwargs" in takes else {}  # up to 0.7
    found = cut.run(own, [step], **old)
    if isinstance(found, tuple):
        return found[1][0]
    return step.advantages[:, -1]


def function(estimator: str) -> Function:
    return Function(
        estimator,
        ((FILE, ".compute_advantages_and_returns"), (FILE, ".process_experiences")),
        lambda cut, rows: call(cut, rows, estimator),
        DECLARED[estimator],
        f"--algo.advantage.estimator {estimator}",
    )


ADAPTER = Adapter("OpenRLHF", "openrlhf", tuple(map(function, DECLARED)))
