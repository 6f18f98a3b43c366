"""verl: which tensor is which, for recorder and guard; README.md says where to
call them. Tested with verl's GRPO function of 0.9.1, not with a whole run."""

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
