"""Batch: the rollouts of one or more training steps, checked once, here.

Letters in shapes: R rows (rollouts), T tokens, S steps, G groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradebook.core.columns import COLUMNS, of_kind
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings
from gradebook.core.tensors import (
    codes,
    read_flags,
    read_floats,
    read_labels,
    read_matrix,
    read_numbers,
    read_whole,
    refuse_rows,
)

PER_TOKEN = of_kind("tokens", "list")


@dataclass(frozen=True, eq=False)
class Batch:
    """Rollouts, one a row. Lists and tensors are both welcome.

    prompt      int64 [R], or a list of R strings
    reward      float [R], finite; float32 stays float32, all else is float64
    mask        bool [R, T] response mask; default one unmasked token a row
    eos         bool [R] the row ended with EOS; default True
    step        int64 [R] training step of the row; default 0
    steps       int64 [R] transitions of the episode; default 1
    kept_steps  int64 [R] transitions left after subsampling; default steps
    logp, ref_logp  float [R, T] log-probabilities of policy and reference;
                needed for the loss and its gradient, else absent
    scored      bool [R] a reward function gave the row a value; default
                True. The reward of a row that is not scored is a filler.
    rollout     int64 [R], or a list of R strings: rows of one prompt and
                step that share it are pieces of one rollout; default each
                row its own
    rank        int64 [R] the process that holds the row; default 0
    text        int64 [R], or a list of R strings: what the prompt says, as
                the trainer sees it; default the prompt
    settings    the trainer's conventions

    Raises GradebookError naming the field and the row.

    >>> batch = Batch(prompt=["a", "a", "b"], reward=[1.0, 3.0, 5.0])
    >>> batch.rows, batch.reward.tolist()
    (3, [1.0, 3.0, 5.0])
    >>> Batch(prompt=["a"], reward=[float("nan")])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gradebook.core.errors.GradebookError: key 'reward', row 0: expected a ...
    """

    prompt: Any
    reward: Any
    mask: Any = None
    eos: Any = None
    step: Any = None
    steps: Any = None
    kept_steps: Any = None
    logp: Any = None
    ref_logp: Any = None
    scored: Any = None
    rollout: Any = None
    rank: Any = None
    text: Any = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Settings):
            raise refuse("a gradebook.Settings", self.settings, "settings")
        reward = read_floats("reward", self.reward, dims=1)
        rows = reward.shape[0]
        columns: dict[str, Tensor | None] = {"reward": reward}
        rollout = torch.arange(rows) if self.rollout is None else self.rollout
        text = self.prompt if self.text is None else self.text
        labels = {"prompt": self.prompt, "rollout": rollout, "text": text}
        for name, values in labels.items():
            columns[name] = read_labels(name, values, rows)
        for name in ("logp", "ref_logp"):
            values = getattr(self, name)
            if values is not None:
                values = read_numbers(name, values, 2, rows).to(reward.dtype)
            columns[name] = values
        logp = columns["logp"]
        mask = read_matrix("mask", self.mask, rows)
        if mask is None:
            shape = (rows, 1) if logp is None else logp.shape
            mask = torch.ones(shape, dtype=torch.bool)
        columns["mask"] = mask
        for name in of_kind("flag"):
            columns[name] = read_flags(name, getattr(self, name), rows)
        if self.settings.eos_by_width:  # as AReaL finds it
            columns["eos"] = mask.sum(-1) < mask.shape[-1]
        for name in ("step", "rank"):
            columns[name] = read_whole(name, getattr(self, name), rows, default=0)
        steps, kept = self.steps, self.kept_steps
        if kept is not None:
            kept = read_whole("kept_steps", kept, rows, default=1)
            refuse_rows("kept_steps", kept < 0, kept, "0 or more")
            steps = kept.clamp(min=1) if steps is None else steps
        steps = read_whole("steps", steps, rows, default=1)
        refuse_rows("steps", steps < 1, steps, "1 or more")
        kept = steps if kept is None else kept
        refuse_rows("kept_steps", kept > steps, kept, "at most the row's steps")
        columns |= {"steps": steps, "kept_steps": kept}
        for name, column in columns.items():
            on_cpu = None if column is None else column.cpu()
            object.__setattr__(self, name, on_cpu)
        if self.ref_logp is not None and self.logp is None:
            expected = "values beside ref_logp"
            raise GradebookError(key="logp", expected=expected, found="none")
        if self.logp is not None and self.ref_logp is None and self.settings.beta:
            expected = "values, since beta is not 0"
            raise GradebookError(key="ref_logp", expected=expected, found="none")
        for name in ("logp", "ref_logp"):
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != self.mask.shape:
                expected = f"the mask's shape {list(self.mask.shape)}"
                raise refuse(expected, list(values.shape), name)
            bad = (self.mask & ~values.isfinite()).any(-1)
            refuse_rows(name, bad, values, "a finite number at every unmasked token")

    @property
    def rows(self) -> int:
        """R, the number of rollouts."""
        return self.reward.shape[0]

    @cached_property
    def step_index(self) -> Tensor:
        """int64 [R] the row's step, numbered 0.. as the steps appear."""
        return _factorized(self.step)

    def within_step(self, labels: Tensor) -> Tensor:
        """Labels int64 [R] numbered 0.. over the whole batch as (step,
        label) pairs appear: one label in two steps gets two numbers.
        int64 [R]."""
        places = _factorized(labels)
        if self.step_count < 2:
            return places
        return _factorized(self.step_index * self.rows + places)

    @cached_property
    def prompt_index(self) -> Tensor:
        """int64 [R] the row's prompt within its step, numbered 0.. over
        the whole batch as (step, prompt) pairs appear."""
        return self.within_step(self.prompt)

    @cached_property
    def rollout_index(self) -> Tensor:
        """int64 [R] the row's rollout, numbered 0.. over the whole batch as
        (step, prompt, rollout) triples appear."""
        if bool((self.rollout[1:] > self.rollout[:-1]).all()):
            return torch.arange(self.rows)  # all are different
        rollout = _factorized(self.rollout)
        return _factorized(self.prompt_index * (self.rows + 1) + rollout)

    @cached_property
    def step_count(self) -> int:
        """S, the number of steps; 0 for an empty batch."""
        return int(self.step_index.max()) + 1 if self.rows else 0

    @cached_property
    def step_rows(self) -> Tensor:
        """int64 [S] rows of each step."""
        return torch.bincount(self.step_index, minlength=self.step_count)

    @cached_property
    def place(self) -> Tensor:
        """int64 [R] the row's position among the rows of its step."""
        return self.place_among(torch.ones(self.rows, dtype=torch.bool))

    def place_among(self, chosen: Tensor) -> Tensor:
        """How many of the `chosen` rows, bool [R], of its step stand before
        the row. int64 [R]."""
        order = self.step_index.argsort(stable=True)
        ahead = torch.empty_like(order)
        ahead[order] = chosen[order].cumsum(0) - chosen[order].long()
        of_step = torch.bincount(self.step_index[chosen], minlength=self.step_count)
        return ahead - (of_step.cumsum(0) - of_step)[self.step_index]

    @cached_property
    def prompt_rows(self) -> Tensor:
        """int64 [R] rows that share the row's prompt and step."""
        return torch.bincount(self.prompt_index)[self.prompt_index]

    @cached_property
    def group_size(self) -> Tensor:
        """int64 [S] rows per prompt the trainer was configured with; where
        the settings name none, the largest group of the step."""
        if self.settings.group_size is not None:
            return torch.full_like(self.step_rows, self.settings.group_size)
        largest = torch.zeros_like(self.step_rows)
        return largest.scatter_reduce(0, self.step_index, self.prompt_rows, "amax")

    @cached_property
    def prompts_per_step(self) -> Tensor:
        """int64 [S] prompts per step the trainer was configured with; where
        the settings name none, the prompts that the step has."""
        if self.settings.prompts_per_step is not None:
            return torch.full_like(self.step_rows, self.settings.prompts_per_step)
        step = torch.empty_like(torch.bincount(self.prompt_index))
        step[self.prompt_index] = self.step_index
        return torch.bincount(step, minlength=self.step_count)

    @cached_property
    def micro_batch(self) -> Tensor:
        """int64 [S] rows of one forward pass; where the settings name none,
        all rows of the step."""
        if self.settings.micro_batch is not None:
            return torch.full_like(self.step_rows, self.settings.micro_batch)
        return self.step_rows

    @cached_property
    def width(self) -> Tensor:
        """int64 [S] the padded width of each step: T, in tokens."""
        return torch.full_like(self.step_rows, self.mask.shape[-1])

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [R] unmasked tokens of the row: its response length."""
        return self.mask.sum(-1)

    def select(self, keep: Tensor) -> Batch:
        """The rows where `keep`, bool [R], is true, in order; or the rows
        with these numbers, int64."""
        present = [name for name in COLUMNS if getattr(self, name) is not None]
        chosen: dict[str, Any] = {name: getattr(self, name)[keep] for name in present}
        return replace(self, **chosen)

    def copies(self, times: int) -> Batch:
        """The batch `times` times over; each copy has steps of its own, so
        no copy can touch another."""
        rows = torch.arange(self.rows).repeat(times)
        copy = torch.arange(times).repeat_interleave(self.rows)
        step = copy * self.step_count + self.step_index[rows]
        return replace(self.select(rows), step=step)

    def under(self, settings: Settings) -> Batch:
        """The same rollouts under other settings."""
        return replace(self, settings=settings)


def _factorized(labels: Tensor) -> Tensor:
    """int64 [R] codes 0.. in order of first appearance."""
    return torch.from_numpy(codes(labels.numpy()))
