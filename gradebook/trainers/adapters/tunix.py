"""Tunix: flat rewards, groups by position; NumPy stands for JAX."""

from typing import Any

import numpy as np

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

JAX = {"jax": None, "jnp": np}
CORE = "tunix/rl/algo_core.py"
OLD = "tunix/rl/grpo/grpo_learner.py"


def call(cut: Cut, rows: Rows) -> Any:
    return cut.run(rows.rewards().numpy(), rows.size)


def function(setting: str, declared: str, *places: tuple[str, str]) -> Function:
    asked = {"estimator": declared}
    return Function(
        setting,
        places,
        call,
        asked,
        setting,
        setting == "grpo",
        given=JAX,
        untold=() if places[0][0] == CORE else ("flat",),
    )


ADAPTER = Adapter(
    "Tunix",
    "google-tunix",
    (
        function("grpo", "grpo", (CORE, "compute_advantages")),
        function(
            "grpo",
            "grpo",
            (OLD, "compute_advantages"),
            ("tunix/rl/grpo/grpo_helpers.py", "compute_advantages"),
        ),
        function(
            "rloo",
            "rloo",
            (CORE, "compute_rloo_advantages"),
            (OLD, "compute_rloo_advantages"),
        ),
        function(
            "drgrpo",
            "dr_grpo",
            (CORE, "compute_drgrpo_advantages"),
            ("tunix/rl/grpo/drgrpo_learner.py", "compute_advantages"),
        ),
        function(
            "agentic_grpo",
            "grpo",
            ("tunix/rl/agentic/agentic_grpo_learner.py", "compute_advantages"),
        ),
    ),
)
