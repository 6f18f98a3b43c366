"""OAT: final rewards as a column, groups by position."""

from types import SimpleNamespace

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

FILES = {"": "oat/algorithms/ppo.py", " (run_math_rl)": "oat/experiment/run_math_rl.py"}


def function(critic: str, suffix: str) -> Function:
    def call(cut: Cut, rows: Rows) -> torch.Tensor:
        args = SimpleNamespace(
            num_samples=rows.size, critic_type=critic, remove_std_bias=False
        )
        own = SimpleNamespace(args=args)
        masks = [None] * (cut.run.__code__.co_argcount - 2)  # 0.0.9 takes none
        return cut.run(own, rows.rewards()[:, None], *masks)

    return Function(
        critic + suffix,
        ((FILES[suffix], ".compute_monte_carlo_advantages"),),
        call,
        {"estimator": "grpo" if critic == "grpo" else "dr_grpo"},
        f"--critic_type {critic}",
    )


ADAPTER = Adapter(
    "OAT",
    "oat-llm",
    tuple(
        function(critic, suffix) for suffix in FILES for critic in ("grpo", "drgrpo")
    ),
)
