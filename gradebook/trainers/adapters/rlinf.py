"""RLinf: rewards of all rows, a mask by token and row, groups by position."""

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def call(cut: Cut, rows: Rows) -> torch.Tensor:
    mask = torch.ones(4, len(rows.prompt), dtype=torch.bool)
    return cut.run(rewards=rows.rewards(), loss_mask=mask, group_size=rows.size)[0][-1]


ADAPTER = Adapter(
    "RLinf",
    "rlinf",
    (
        Function(
            "grpo",
            (("rlinf/algorithms/advantages.py", "compute_grpo_advantages"),),
            call,
            {"estimator": "grpo"},
            "algorithm.adv_type=grpo",
        ),
    ),
)
