"""TRL: a mixin for `GRPOTrainer` that records and guards its training, as
README.md shows.

Tested with TRL 1.16.0. It overrides two methods of the trainer:
`_calculate_rewards`, whose answer holds the rewards of all processes, and
`_generate_and_score_completions`, whose answer holds the advantages.
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
    """How a trainer with this `GRPOConfig` computes advantages. Raises
    GradebookError for a configuration that gradebook.Settings cannot say."""
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


class Watched:
    """A mixin for `trl.GRPOTrainer`, which must follow it in the list of bases.

    Each generation is one step, recorded and judged once, in training and
    not in evaluation. The main process handles the rows of all processes.
    """

    _watching: Sequence[Recorder | Guard] = ()
    _rewards: Tensor | None = None
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

    def _generate_and_score_completions(self: Any, inputs: Any) -> Any:
        training = self.model.training
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
        weights = self.reward_weights.to(self._rewards.device)
        total = (self._rewards * weights).nansum(-1)
        total[self._rewards.isnan().all(-1)] = torch.nan
        rows = torch.arange(len(total))
        return {
            "prompt": rows // self.num_generations,
            "reward": total,
            "advantage": gather(output["advantages"]),
            "length": gather(mask.sum(-1)),
            "eos": gather(eos.int()),
            "rank": gather(process),
        }

    def _step_number(self: Any) -> int:
        """The optimizer's step in which the rows were generated; if one step generates
        several times, the number of the generation."""
        args, step = self.args, self.state.global_step
        before, count = self._generations
        count = count + 1 if before == step else 0
        self._generations = (step, count)
        each = args.steps_per_generation * self.num_iterations
        return step * -(-args.gradient_accumulation_steps // each) + count
