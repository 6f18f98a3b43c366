"""SkyRL: its backend, and its agent for Tinker."""

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows
from gradebook.trainers.adapters.skyrl_train import functions
from gradebook.trainers.adapters.verl import outcome

BACKEND = "skyrl/backends/skyrl_train/utils/ppo_utils.py"
AGENT = "skyrl-agent/skyrl_agent/integrations/tinker/tinker_train.py"


def agent(cut: Cut, rows: Rows) -> list[float]:
    rewards = [reward for group in rows.lists() for reward in group]
    return cut.run(rewards, group_size=rows.size, normalize=True)


ADAPTER = Adapter(
    "SkyRL",
    "skyrl",
    (
        *functions(BACKEND),
        outcome(
            BACKEND,
            "compute_maxrl_advantage",
            "maxrl",
            {},
            "trainer.algorithm.advantage_estimator=maxrl",
        ),
        Function(
            "skyrl-agent tinker grpo",
            ((AGENT, "compute_advantages_grpo"),),
            agent,
            {"estimator": "grpo"},
            "skyrl-agent with Tinker",
            True,
        ),
    ),
)
