"""Unsloth's path for Apple's MLX: float32 rewards of all functions."""

import numpy as np

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def function(scale: str, declared: str) -> Function:
    def call(cut: Cut, rows: Rows) -> np.ndarray:
        weights = rows.weights.tolist()
        return cut.run(rows.functions().numpy(), weights, rows.size, scale)[0]

    return Function(
        f"mlx grpo, scale_rewards={scale}",
        (("unsloth_zoo/mlx/grpo.py", "group_advantages"),),
        call,
        {"baseline": "group_mean", "scale": declared, "eps": 1e-4},
        f"on MLX, scale_rewards={scale!r}",
        scale == "group",
        functions=True,
    )


ADAPTER = Adapter(
    "Unsloth",
    "unsloth-zoo",
    (
        function("group", "group_std"),
        function("batch", "batch_std"),
        function("none", "none"),
    ),
)
