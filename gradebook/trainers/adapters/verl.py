"""verl: rewards on the last token, rows grouped by prompt id."""

import inspect
from typing import Any

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

CPU = {"get_torch_device": lambda: torch.device("cpu")}
"""As under VERL_FORCE_DEVICE=cpu: `grpo_vectorized` of verl 0.6.0 to 0.7.0 asks
for a device and gets a module."""


def outcome(path, name, setting, declared, reached="", default=False, **settings):
    """A function `compute_..._outcome_advantage` of verl and its descendants."""

    def call(cut: Cut, rows: Rows) -> Any:
        takes = inspect.signature(cut.run).parameters
        own = {k: v for k, v in settings.items() if k in takes or k != "config"}
        return cut.run(*rows.tokens(), **own)[0][:, -1]

    asked = {"estimator": declared} if isinstance(declared, str) else declared
    own = (setting, ((path, name),), call, asked, reached or setting, default)
    return Function(*own, given=CPU)


FILE = "verl/trainer/ppo/core_algos.py"
ESTIMATORS = (
    "grpo",
    "rloo",
    "opo",
    "gpg",
    "grpo_vectorized",
    "rloo_vectorized",
)


def estimator(key, declared=None, setting=None, **settings):
    more = "".join(f", algorithm.{k}={v}" for k, v in settings.items() if k != "config")
    return outcome(
        FILE,
        f"compute_{key}_outcome_advantage",
        setting or key,
        key if declared is None else declared,
        f"algorithm.adv_estimator={key}{more}",
        **settings,
    )


ADAPTER = Adapter(
    "verl",
    "verl",
    (
        *map(estimator, ESTIMATORS),
        estimator("gdpo", {}),
        estimator("reinforce_plus_plus_baseline", {}),
        estimator("grpo_passk", config={}),
        estimator("grpo", "dr_grpo", "grpo, no std", norm_adv_by_std_in_grpo=False),
    ),
)
