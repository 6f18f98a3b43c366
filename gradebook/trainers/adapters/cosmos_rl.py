"""Cosmos-RL: rewards of one group at a time."""

from types import SimpleNamespace

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows


def function(unbiased: bool) -> Function:
    def call(cut: Cut, rows: Rows) -> list[float]:
        own = SimpleNamespace(unbiased=unbiased, eps=1e-6)
        return [one for rewards in rows.lists() for one in cut.run(own, rewards)]

    return Function(
        f"grpo, unbiased={unbiased}",
        (("cosmos_rl/dispatcher/algo/grpo.py", "GRPO.compute_advantage"),),
        call,
        {"scale": "none"} if unbiased else {"scale": "group_std", "ddof": 0},
        f"unbiased_advantage = {str(unbiased).lower()}",
        not unbiased,
    )


ADAPTER = Adapter("Cosmos-RL", "cosmos-rl", (function(False), function(True)))
