"""verl: where to call the recorder and the guard, and which tensor is which.

verl has no hook between its advantages and its update, so the call goes into
`RayPPOTrainer.fit`, after `compute_advantage`:

    from gradebook.trainers.verl import step_of

    rows = step_of(batch.batch, batch.non_tensor_batch)
    recorder.step(self.global_steps, **rows)
    guard.step(self.global_steps, **rows)

Tested with the function `compute_grpo_outcome_advantage` of verl 0.9.1, not
with a whole training run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def step_of(batch: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of one step, as `Recorder.step` takes them.

    batch   tensors of DataProto.batch: token_level_rewards, advantages and
            response_mask, [R, T] each
    others  arrays of DataProto.non_tensor_batch: uid, [R]
    """
    return {
        "prompt": [str(uid) for uid in others["uid"]],
        "reward": batch["token_level_rewards"].sum(-1),
        "advantage": batch["advantages"],
        "mask": batch["response_mask"],
    }
