"""ms-swift: rewards of all functions; groups by position, or by prompt id."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows
from gradebook.trainers.cut import Silent

NEW = "swift/rl_core/advantage.py"
OLD = (
    "swift/rlhf_trainers/grpo_trainer.py",
    "swift/trainers/rlhf_trainer/grpo_trainer.py",
)

EARLY = (
    (OLD[1], "._prepare_batch_inputs", "rewards", "process_slice"),
    (OLD[1], "._prepare_batch_inputs", "rewards", "template"),
    (OLD[1], "._generate_and_score_completions", "rewards_per_func", "process_slice"),
)


def function(estimator, scale, declared, since="3.9.3", before="9999"):
    def call(cut: Cut, rows: Rows) -> torch.Tensor:
        asked = {"advantage_estimator": estimator, "scale_rewards": scale}
        if "." not in cut.name and not cut.name.startswith("_"):
            found = cut.run(rows.functions(), rows.weights, rows.size, **asked)
            return found[0]
        if not cut.name.startswith("_compute"):
            return early(cut, rows, bool(scale))
        own = cut.own(
            **asked,
            num_generations=rows.size,
            num_generations_eval=rows.size,
            reward_weights=rows.weights,
            reward_func_names=[],
            accelerator=SimpleNamespace(device="cpu"),
            args=SimpleNamespace(scale_rewards=scale),
            model=SimpleNamespace(training=True),
            kl_in_reward=False,
            dynamic_num_samples=False,
            beta=0.0,
            _metrics=Silent(),
            _logs=Silent(),
        )
        more: list[Any] = [[]] * (cut.run.__code__.co_argcount - 3)  # 3.8 takes none
        return cut.run(own, [], rows.functions(), *more)

    return Function(
        f"{estimator}, scale_rewards={scale}",
        (
            (NEW, "compute_advantages"),
            *((old, "._compute_advantages") for old in OLD),
            *EARLY,
        ),
        call,
        declared,
        f"--advantage_estimator {estimator} --scale_rewards {scale}",
        (estimator, scale) == ("grpo", "group"),
        since,
        before,
        functions=True,
    )


def early(cut: Cut, rows: Rows, scale: bool) -> torch.Tensor:
    """Statements of the releases up to 3.7."""
    known = {"num_generations": rows.size, "reward_weights": rows.weights}
    known |= {"args": SimpleNamespace(scale_rewards=scale)}
    rewards = (rows.functions() * rows.weights).nansum(1)
    own = SimpleNamespace(**known)
    return cut.run(
        self=own, device="cpu", rewards=rewards, rewards_per_func=rows.functions()
    )["advantages"]


def dynamic(cut: Cut, rows: Rows) -> torch.Tensor:
    prompts, requests = map(str, rows.prompt), map(str, range(len(rows.prompt)))
    return cut.run(rows.functions(), rows.weights, list(prompts), list(requests))[0]


GRPO = {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4}
BATCH, NONE = GRPO | {"scale": "batch_std"}, GRPO | {"scale": "none"}
ADAPTER = Adapter(
    "ms-swift",
    "ms-swift",
    (
        function("grpo", "group", GRPO),
        function("grpo", "batch", BATCH),
        function("grpo", "none", NONE),
        function("rloo", "none", {"estimator": "rloo"}),
        function(
            "reinforce_plus_plus", "batch", {"estimator": "group_mean/advantage_std"}
        ),
        function("grpo", "gdpo", {}, "4.0"),
        function("grpo", True, GRPO, "3.3", "3.9.3"),
        function("grpo", False, NONE, "3.3", "3.9.3"),
        replace(function("grpo", True, GRPO, "0", "3.3"), setting="grpo"),
        Function(
            "grpo dynamic (by id)",
            ((NEW, "compute_advantages_dynamic"),),
            dynamic,
            GRPO,
            "a number of samples that varies by prompt",
            functions=True,
        ),
    ),
)
