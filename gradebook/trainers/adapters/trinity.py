"""Trinity-RFT: one task's experiences at a time; older: verl's batches."""

from types import SimpleNamespace

import torch

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows
from gradebook.trainers.adapters.verl import outcome

FOLDER = "trinity/algorithm/advantage_fn/"


def by_task(cut: Cut, rows: Rows) -> list[float]:
    own = SimpleNamespace(
        epsilon=1e-6, std_threshold=None, rank_penalty=None, std_cal_level="group"
    )
    found = []
    for group in rows.lists():
        mask = torch.ones(4)
        exps = [SimpleNamespace(reward=one, action_mask=mask) for one in group]
        cut.run(own, "task", exps)
        found += [float(one.advantages[-1]) for one in exps]
    return found


def by_batch(cut: Cut, rows: Rows) -> torch.Tensor:
    rewards, mask, index = rows.tokens()
    batch = {"token_level_rewards": rewards, "response_mask": mask}
    step = SimpleNamespace(batch=batch, non_tensor_batch={"uid": index})
    cut.run(SimpleNamespace(epsilon=1e-6), step)
    return batch["advantages"][:, -1]


def function(setting, name, call, since="0", before="9999"):
    file = FOLDER + setting.partition("_")[0] + "_advantage.py"
    reached = f"algorithm.advantage_fn={setting}"
    asked = {"estimator": setting.partition("_")[0]}
    return Function(
        setting, ((file, name),), call, asked, reached, setting == "grpo", since, before
    )


CORE = "trinity/trainer/verl/core_algos.py"
GROUPED = "GRPOGroupedAdvantage.calculate_group_advantage"
ADAPTER = Adapter(
    "Trinity-RFT",
    "trinity-rft",
    (
        function("grpo", GROUPED, by_task, "0.3"),
        function("grpo", "GRPOAdvantageFn.__call__", by_batch, before="0.3"),
        function("grpo_verl", "GRPOAdvantageFn.__call__", by_batch, "0.3"),
        function("rloo", "RLOOAdvantageFn.__call__", by_batch),
        outcome(CORE, "compute_grpo_outcome_advantage", "grpo", "grpo", default=True),
        outcome(CORE, "compute_rloo_outcome_advantage", "rloo", "rloo"),
    ),
)
