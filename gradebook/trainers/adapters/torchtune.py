"""torchtune: the GRPO recipe, rewards [prompts, group]."""

from types import SimpleNamespace

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def call(cut: Cut, rows: Rows) -> torch.Tensor:
    return cut.run(
        self=SimpleNamespace(_device="cpu"),
        rewards=rows.rewards().reshape(-1, rows.size),
        batch_size=len(rows.prompt) // rows.size,
        grpo_size=rows.size,
        responses=None,
    )["advantages"]


ADAPTER = Adapter(
    "torchtune",
    "torchtune",
    (
        Function(
            "grpo (recipe)",
            (
                (
                    "recipes/dev/grpo_full_finetune_distributed.py",
                    ".generate_trajectory",
                    "rewards",
                    "seq_lens",
                ),
            ),
            call,
            {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4},
            "recipe dev/grpo_full_finetune_distributed",
            True,
        ),
    ),
)
