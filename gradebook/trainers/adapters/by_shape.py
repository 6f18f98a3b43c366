"""Trainers whose functions take rows and a group size: a column of rewards, a
matrix, or arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

GRPO, RLOO, DR_GRPO = ({"estimator": name} for name in ("grpo", "rloo", "dr_grpo"))
GROUP = {"baseline": "group_mean", "scale": "group_std", "eps": 1e-4}

# OAT: final rewards as a column


def oat(cut: Cut, rows: Rows, critic_type: str) -> torch.Tensor:
    learner = cut.trainer(
        "args", num_samples=rows.size, critic_type=critic_type, remove_std_bias=False
    )
    masks = [None] * (cut.run.__code__.co_argcount - 2)  # 0.0.9 takes none
    return cut.run(learner, rows.rewards()[:, None], *masks)


OAT = Adapter(
    "OAT",
    "oat-llm",
    tuple(
        Function(
            critic + suffix,
            ((f"oat/{file}.py", ".compute_monte_carlo_advantages"),),
            oat,
            GRPO if critic == "grpo" else DR_GRPO,
            f"--critic_type {critic}",
            settings={"critic_type": critic},
        )
        for suffix, file in (
            ("", "algorithms/ppo"),
            (" (run_math_rl)", "experiment/run_math_rl"),
        )
        for critic in ("grpo", "drgrpo")
    ),
)

# RLinf: rewards of all rows, a mask by token and row


def rlinf(cut: Cut, rows: Rows) -> torch.Tensor:
    mask = torch.ones(4, len(rows.prompt), dtype=torch.bool)
    return cut.run(rewards=rows.rewards(), loss_mask=mask, group_size=rows.size)[0][-1]


RLINF = Adapter(
    "RLinf",
    "rlinf",
    (
        Function(
            "grpo",
            (("rlinf/algorithms/advantages.py", "compute_grpo_advantages"),),
            rlinf,
            GRPO,
            "algorithm.adv_type=grpo",
        ),
    ),
)

# Unsloth's path for Apple's MLX: float32 rewards of all functions


def unsloth(cut: Cut, rows: Rows, scale: str) -> np.ndarray:
    weights = rows.weights.tolist()
    return cut.run(rows.functions().numpy(), weights, rows.size, scale)[0]


UNSLOTH = Adapter(
    "Unsloth",
    "unsloth-zoo",
    tuple(
        Function(
            f"mlx grpo, scale_rewards={scale}",
            (("unsloth_zoo/mlx/grpo.py", "group_advantages"),),
            unsloth,
            GROUP | {"scale": declared},
            f"on MLX, scale_rewards={scale!r}",
            scale == "group",
            {"scale": scale},
            functions=True,
        )
        for scale, declared in (
            ("group", "group_std"),
            ("batch", "batch_std"),
            ("none", "none"),
        )
    ),
)

# torchtune: the GRPO recipe, rewards [prompts, group]


def torchtune(cut: Cut, rows: Rows) -> torch.Tensor:
    return cut.run(
        self=cut.trainer(_device="cpu"),
        rewards=rows.rewards().reshape(-1, rows.size),
        batch_size=len(rows.prompt) // rows.size,
        grpo_size=rows.size,
        responses=None,
    )["advantages"]


RECIPE = "dev/grpo_full_finetune_distributed"
TORCHTUNE = Adapter(
    "torchtune",
    "torchtune",
    (
        Function(
            "grpo (recipe)",
            ((f"recipes/{RECIPE}.py", ".generate_trajectory", "rewards", "seq_lens"),),
            torchtune,
            GROUP,
            f"recipe {RECIPE}",
            True,
        ),
    ),
)

# Tunix: flat rewards; NumPy stands for JAX

TUNIX_CORE, TUNIX_GRPO = "tunix/rl/algo_core.py", "tunix/rl/grpo/"


def tunix(setting: str, declared: dict[str, Any], *places: tuple[str, str]) -> Function:
    return Function(
        setting,
        places,
        lambda cut, rows: cut.run(rows.rewards().numpy(), rows.size),
        declared,
        setting,
        setting == "grpo",
        stubs={"jax": None, "jnp": np},
        untold=() if places[0][0] == TUNIX_CORE else ("flat",),
    )


TUNIX = Adapter(
    "Tunix",
    "google-tunix",
    (
        tunix("grpo", GRPO, (TUNIX_CORE, "compute_advantages")),
        tunix(
            "grpo",
            GRPO,
            (TUNIX_GRPO + "grpo_learner.py", "compute_advantages"),
            (TUNIX_GRPO + "grpo_helpers.py", "compute_advantages"),
        ),
        tunix(
            "rloo",
            RLOO,
            (TUNIX_CORE, "compute_rloo_advantages"),
            (TUNIX_GRPO + "grpo_learner.py", "compute_rloo_advantages"),
        ),
        tunix(
            "drgrpo",
            DR_GRPO,
            (TUNIX_CORE, "compute_drgrpo_advantages"),
            (TUNIX_GRPO + "drgrpo_learner.py", "compute_advantages"),
        ),
        tunix(
            "agentic_grpo",
            GRPO,
            ("tunix/rl/agentic/agentic_grpo_learner.py", "compute_advantages"),
        ),
    ),
)
