"""AReaL: the class that normalizes rewards; groups by position."""

from types import SimpleNamespace
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def function(setting: str, mean: str, one_out: bool, std: str | None) -> Function:
    def call(cut: Cut, rows: Rows) -> torch.Tensor:
        config = SimpleNamespace(
            mean_level=mean,
            mean_leave1out=one_out,
            std_level=std,
            std_unbiased=True,
            group_size=rows.size,
            eps=1e-5,
        )
        return cut.run(config)(rows.rewards())

    baseline = "leave_one_out" if one_out else f"{mean}_mean"
    scale = f"{std}_std" if std else "none"
    if (mean, std) == ("group", "batch"):
        scale = "advantage_std"
    asked: dict[str, Any] = {"estimator": f"{baseline}/{scale}"}
    asked |= {"spread_about": "baseline", "eps": 1e-5} if std else {}
    reached = f"reward_norm: mean_level={mean}, std_level={std}"
    reached += ", mean_leave1out=true" if one_out else ""
    return Function(
        setting, (("areal/utils/data.py", "Normalization"),), call, asked, reached
    )


ADAPTER = Adapter(
    "AReaL",
    "areal",
    (
        function("group mean, group std", "group", False, "group"),
        function("group mean, batch std", "group", False, "batch"),
        function("group mean, no std", "group", False, None),
        function("leave one out, no std", "group", True, None),
        function("leave one out, group std", "group", True, "group"),
        function(
            "batch mean, batch std (NormConfig's defaults)", "batch", False, "batch"
        ),
    ),
)
