"""Tinker Cookbook: one trajectory group a prompt."""

from types import SimpleNamespace

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def call(cut: Cut, rows: Rows) -> torch.Tensor:
    groups = [
        SimpleNamespace(get_total_rewards=lambda rewards=rewards: rewards)
        for rewards in rows.lists()
    ]
    return torch.cat(cut.run(groups))


ADAPTER = Adapter(
    "Tinker Cookbook",
    "tinker-cookbook",
    (
        Function(
            "compute_advantages",
            (("tinker_cookbook/rl/data_processing.py", "compute_advantages"),),
            call,
            {"estimator": "dr_grpo"},
            "rl.train",
            True,
        ),
    ),
)
