"""TRL: rewards of all functions; the statements of a long method."""

from types import SimpleNamespace

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows
from gradebook.trainers.cut import Silent

GRPO, RLOO = "trl/trainer/grpo_trainer.py", "trl/trainer/rloo_trainer.py"
WORKER = "trl/experimental/async_grpo/async_rollout_worker.py"
ENDS = ("rewards_per_func", "process_slice")


def batch(**settings):
    def call(cut: Cut, rows: Rows) -> torch.Tensor:
        own = {
            "num_generations": rows.size,
            "num_generations_eval": rows.size,
            "reward_weights": rows.weights,
            "reward_funcs": [None] * len(rows.weights),
            "multi_objective_aggregation": "sum_then_normalize",
            "accelerator": SimpleNamespace(device="cpu"),
            "reward_clip_range": None,
            "beta": 0.0,
            "args": SimpleNamespace(**settings),
            "_metrics": Silent(),
        }
        known = {
            "self": SimpleNamespace(**own | settings),
            "num_generations": rows.size,
            "mode": "train",
        }
        known |= {"device": "cpu", "rewards_per_func": rows.functions()}
        return cut.run(**known)["advantages"]

    return call


def group(cut: Cut, rows: Rows) -> list[float]:
    own, found = SimpleNamespace(reward_weights=rows.weights), []
    values = iter(rows.functions().double().tolist())
    for one in rows.groups:
        columns = [list(c) for c in zip(*(next(values) for _ in one))]
        found += cut.run(self=own, all_rewards=columns)["advantages"].tolist()
    return found


def grpo(setting, since, before="9999", reached="", **settings):
    names = ("._generate_and_score_completions", "._prepare_inputs")
    places = tuple((GRPO, name, *ENDS) for name in names)
    places += ((GRPO, ".compute_loss", "rewards_per_func", "per_token_loss"),)
    none = settings.get("scale_rewards") in (False, "none")
    scale = "none" if none else "group_std"
    scale = "batch_std" if settings.get("scale_rewards") == "batch" else scale
    return Function(
        setting,
        places,
        batch(**settings),
        {} if reached else {"baseline": "group_mean", "scale": scale, "eps": 1e-4},
        reached or "scale_rewards=" + repr(settings.get("scale_rewards", True)),
        not reached and settings.get("scale_rewards", True) in (True, "group"),
        since,
        before,
        functions=True,
    )


def rloo(setting, reached, **settings):
    place = (RLOO, "._generate_and_score_completions", *ENDS)
    asked = {"baseline": "leave_one_out", "scale": "none"}
    whitened = settings["normalize_advantages"]
    own = (
        batch(**settings),
        {} if whitened else asked,
        reached,
        not whitened,
        "0.22.0",
    )
    return Function(setting, (place,), *own, functions=True)


ADAPTER = Adapter(
    "TRL",
    "trl",
    (
        grpo("grpo", "0", "0.16", ""),
        grpo("grpo, scale_rewards=True", "0.16", "0.22", scale_rewards=True),
        grpo("grpo, scale_rewards=False", "0.16", "0.22", scale_rewards=False),
        grpo("grpo, scale_rewards=group", "0.22", scale_rewards="group"),
        grpo("grpo, scale_rewards=batch", "0.22", scale_rewards="batch"),
        grpo("grpo, scale_rewards=none", "0.22", scale_rewards="none"),
        grpo(
            "grpo, normalize_then_sum",
            "0.27",
            reached="multi_objective_aggregation='normalize_then_sum'",
            multi_objective_aggregation="normalize_then_sum",
            scale_rewards="group",
        ),
        rloo("rloo", "RLOOTrainer", normalize_advantages=False),
        rloo(
            "rloo, normalize_advantages",
            "RLOOTrainer, normalize_advantages=True",
            normalize_advantages=True,
        ),
        Function(
            "async_grpo",
            (
                (WORKER, "._score_group", "all_rewards", "total_calls"),
                (WORKER, "._score_group", "all_rewards", "samples"),
            ),
            group,
            {"scale": "group_std", "ddof": 0, "eps": 1e-8},
            "AsyncGRPOTrainer",
            since="1.0",
            functions=True,
        ),
    ),
)
