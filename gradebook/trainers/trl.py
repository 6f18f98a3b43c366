"""TRL: a mixin for `GRPOTrainer` and `RLOOTrainer` that records and guards their
training, as README.md shows.

Tested with TRL 1.16.0. It overrides three methods of the trainer:
`_calculate_rewards`, whose answer holds the rewards of all processes;
`_get_per_token_logps_and_entropies`, whose answers hold what RLOO's KL is computed
from; and `_generate_and_score_completions`, whose answer holds the advantages.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gradebook.core.errors import refuse
from gradebook.logs.guard import Finding, Guard
from gradebook.logs.recorder import Recorder

SCALES = {"group": "group_std", "batch": "batch_std", "none": "none"}
"""What TRL's `scale_rewards` is called in gradebook.Settings."""


def declared(args: Any) -> dict[str, Any]:
    """How a trainer with this `GRPOConfig` or `RLOOConfig` computes advantages. Raises
    GradebookError for a configuration that gradebook.Settings cannot say."""
    if _is_rloo(args):
        return _declared_rloo(args)
    way = getattr(args, "multi_objective_aggregation", "sum_then_normalize")
    if way != "sum_then_normalize":
        raise refuse("sum_then_normalize", way, "multi_objective_aggregation")
    return {
        "baseline": "group_mean",
        "scale": SCALES[str(args.scale_rewards)],
        "ddof": 1,
        "eps": 1e-4,  # what TRL adds to a standard deviation
        "mask_no_eos": False,
    }


def _is_rloo(args: Any) -> bool:
    """`RLOOConfig` has this option, and `GRPOConfig` has not (TRL 1.16.0)."""
    return hasattr(args, "normalize_advantages")


def _declared_rloo(args: Any) -> dict[str, Any]:
    """The same for an `RLOOConfig`. `normalize_advantages` divides by the deviation of
    the batch's advantages; their mean, which it takes off first, is 0."""
    settings = {"baseline": "leave_one_out", "scale": "none", "mask_no_eos": False}
    if args.normalize_advantages:
        settings |= {"scale": "advantage_std", "ddof": 1, "eps": 1e-4}
    return settings


class Watched:
    """A mixin for `trl.GRPOTrainer` or `trl.RLOOTrainer`, which must follow it in the
    list of bases.

    Each generation is one step, recorded and judged once, in training and
    not in evaluation. The main process handles the rows of all processes.
    """

    _watching: Sequence[Recorder | Guard] = ()
    _rewards: Tensor | None = None
    _token_logps: Sequence[Tensor] = ()
    _generations = (-1, 0)

    def watch(
        self: Any,
        folder: str | os.PathLike[str] | None = None,
        *,
        guard: str | Callable[[Finding], object] | None = None,
        strict: bool = False,
    ) -> None:
        """Before `train`: record into `folder`, and judge with a guard whose action
        is `guard`. `strict` is the recorder's."""
        settings = declared(self.args)
        watching = [*self._watching]
        if folder is not None:
            watching.append(Recorder(folder, declared=settings, strict=strict))
        if guard is not None:
            watching.append(Guard(declared=settings, action=guard))
        self._watching = watching

    def _calculate_rewards(self: Any, *args: Any, **more: Any) -> Tensor:
        self._rewards = super()._calculate_rewards(*args, **more)  # type: ignore[misc]
        return self._rewards

    def _get_per_token_logps_and_entropies(self: Any, *args: Any, **more: Any) -> Any:
        answer = super()._get_per_token_logps_and_entropies(*args, **more)  # type: ignore[misc]
        if not torch.is_grad_enabled():  # scores a generation, and trains nothing
            self._token_logps = (*self._token_logps, answer[0])
        return answer

    def _generate_and_score_completions(self: Any, inputs: Any) -> Any:
        training = self.model.training
        self._token_logps = ()
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if training and self._watching:
            rows, step = self.generated_rows(output), self._step_number()
            for each in self._watching if self.accelerator.is_main_process else ():
                each.step(step, **rows)
        return output

    def generated_rows(self: Any, output: Any) -> dict[str, Any]:
        """The rows of the generation that made `output`, of all processes, as
        `Recorder.step` takes them. Groups are `num_generations` rows in a row."""
        mask = output["completion_mask"]
        if "tool_mask" in output:
            mask = mask * output["tool_mask"]
        ends = torch.tensor(self.eos_token_ids, device=mask.device)
        eos = torch.isin(output["completion_ids"], ends).any(-1)
        process = torch.full_like(mask[:, 0], self.accelerator.process_index)
        gather = self.accelerator.gather
        total = self._normalized_rewards(output)
        rows = torch.arange(len(total))
        return {
            "prompt": rows // self.num_generations,
            "reward": total,
            "advantage": gather(output["advantages"]),
            "length": gather(mask.sum(-1)),
            "eos": gather(eos.int()),
            "rank": gather(process),
        }

    def _normalized_rewards(self: Any, output: Any) -> Tensor:
        """The reward that is normalized, of all processes, [R]: the functions' weighted
        sum, NaN if none gave a reward. RLOO clips it and takes its KL off."""
        weights = self.reward_weights.to(self._rewards.device)
        total = (self._rewards * weights).nansum(-1)
        total[self._rewards.isnan().all(-1)] = torch.nan
        if not _is_rloo(self.args):
            return total
        if self.args.reward_clip_range:
            total = total.clamp(*self.args.reward_clip_range)
        if self.args.beta:
            policy, reference = self._token_logps
            kl = ((policy - reference) * output["completion_mask"]).sum(-1)
            total = total - self.args.beta * self.accelerator.gather(kl)
        return total

    def _step_number(self: Any) -> int:
        """The optimizer's step in which the rows were generated; if one step generates
        several times, the number of the generation."""
        args, step = self.args, self.state.global_step
        before, count = self._generations
        count = count + 1 if before == step else 0
        self._generations = (step, count)
        each = args.steps_per_generation * self.num_iterations
        return step * -(-args.gradient_accumulation_steps // each) + count
