"""miles, a fork of slime: samples of a rollout, groups by position."""

from types import SimpleNamespace

from gradebook.trainers.adapter import Adapter, Cut, Function, Rows

PLACE = ("miles/ray/rollout.py", "._post_process_rewards")


def function(by_std: bool) -> Function:
    def call(cut: Cut, rows: Rows) -> list[float]:
        args = SimpleNamespace(
            advantage_estimator="grpo",
            rewards_normalization=True,
            grpo_std_normalization=by_std,
            n_samples_per_prompt=rows.size,
            rollout_batch_size=len(rows.groups),
        )
        own = SimpleNamespace(args=args, custom_reward_post_process_func=None)
        rewards = [reward for group in rows.lists() for reward in group]
        samples = [
            SimpleNamespace(get_reward_value=lambda args, value=value: value)
            for value in rewards
        ]
        return cut.run(own, samples)[1]

    return Function(
        f"grpo, grpo_std_normalization={by_std}",
        (PLACE,),
        call,
        {"estimator": "grpo" if by_std else "dr_grpo"},
        "--advantage-estimator grpo" + "" * by_std,
        by_std,
    )


ADAPTER = Adapter("miles", "miles-rl", (function(True), function(False)))
