"""SkyRL's training package: verl's functions with settings of its own."""

from gradebook.trainers.adapter import Adapter
from gradebook.trainers.adapters.verl import outcome


def functions(path):
    grpo, rloo = "compute_grpo_outcome_advantage", "compute_rloo_outcome_advantage"
    key = "trainer.algorithm.advantage_estimator="
    off = ", trainer.algorithm.grpo_norm_by_std=false"
    return (
        outcome(path, grpo, "grpo", "grpo", key + "grpo", True, grpo_norm_by_std=True),
        outcome(
            path,
            grpo,
            "grpo, no std",
            "dr_grpo",
            key + "grpo" + off,
            grpo_norm_by_std=False,
        ),
        outcome(path, rloo, "rloo", "rloo", key + "rloo"),
    )


ADAPTER = Adapter("SkyRL", "skyrl-train", functions("skyrl_train/utils/ppo_utils.py"))
