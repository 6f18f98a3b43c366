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
        def put(name: str, value: object) -> None:
            on_cpu = value.cpu() if isinstance(value, Tensor) else value
            object.__setattr__(self, name, on_cpu)

        if not isinstance(self.settings, Settings):
            raise refuse("a gradebook.Settings", self.settings, "settings")
        reward = read_floats("reward", self.reward, dims=1)
        rows = reward.shape[0]
        put("reward", reward)
        put("prompt", read_labels("prompt", self.prompt, rows))
        tokens = {
            name: read_matrix(name, getattr(self, name), rows) for name in PER_TOKEN
        }
        for name in ("logp", "ref_logp"):
            values = tokens[name]
            if values is not None:
                tokens[name] = values.to(reward.dtype)
        if tokens["mask"] is None:
            like = tokens["logp"]
            shape = (rows, 1) if like is None else like.shape
            tokens["mask"] = torch.ones(shape, dtype=torch.bool)
        for name in PER_TOKEN:
            put(name, tokens[name])
        for name in of_kind("flag"):
            put(name, read_flags(name, getattr(self, name), rows))
        if self.settings.eos_by_width:  # as AReaL finds it
            put("eos", self.tokens < self.mask.shape[-1])
        put("step", read_whole("step", self.step, rows, default=0))
        put("rank", read_whole("rank", self.rank, rows, default=0))
        rollout = torch.arange(rows) if self.rollout is None else self.rollout
        put("rollout", read_labels("rollout", rollout, rows))
        text = self.prompt if self.text is None else self.text
        put("text", read_labels("text", text, rows))
        _settle_steps(self, put, rows)
        _check_tokens(self)

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
        if self.step_count > 1:
            many = int(places.max()) + 1
            return _factorized(self.step_index * many + places)
        return places

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
        step = torch.zeros(
            int(self.prompt_index.max()) + 1 if self.rows else 0,
            dtype=torch.int64,
        )
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
        values = {name: getattr(self, name) for name in COLUMNS}
        taken: dict[str, Any] = {
            k: v if v is None else v[keep] for k, v in values.items()
        }
        return replace(self, **taken)

    def copies(self, times: int) -> Batch:
        """The batch `times` times over; each copy has steps of its own, so
        no copy can touch another. What was checked and numbered here is
        not checked and numbered again."""
        copies = object.__new__(Batch)
        values = vars(copies)
        values["settings"] = self.settings
        for name in COLUMNS:
            value = getattr(self, name)
            values[name] = value if value is None else _repeated(value, times)
        copy = torch.arange(times).repeat_interleave(self.rows)
        for name in ("step_index", "prompt_index", "rollout_index"):
            count = int(getattr(self, name).max()) + 1 if self.rows else 0
            values[name] = count * copy + _repeated(getattr(self, name), times)
        values["step"] = values["step_index"]
        return copies

    def under(self, settings: Settings) -> Batch:
        """The same rollouts under other settings."""
        return replace(self, settings=settings)


def _factorized(labels: Tensor) -> Tensor:
    """int64 [R] codes 0.. in order of first appearance."""
    return torch.from_numpy(codes(labels.numpy()))


def _repeated(values: Tensor, times: int) -> Tensor:
    """[R, ...] `times` times over, [times R, ...]."""
    return values.expand(times, *values.shape).flatten(0, 1)


def _settle_steps(batch: Batch, put: Any, rows: int) -> None:
    kept = batch.kept_steps
    if kept is not None:
        kept = read_whole("kept_steps", kept, rows, default=1)
        refuse_rows("kept_steps", kept < 0, kept, "0 or more")
    steps = batch.steps
    if steps is None and kept is not None:
        steps = kept.clamp(min=1)
    steps = read_whole("steps", steps, rows, default=1)
    refuse_rows("steps", steps < 1, steps, "1 or more")
    kept = steps if kept is None else kept
    refuse_rows("kept_steps", kept > steps, kept, "at most the row's steps")
    put("steps", steps)
    put("kept_steps", kept)


def _check_tokens(batch: Batch) -> None:
    if batch.ref_logp is not None and batch.logp is None:
        raise GradebookError(
            key="logp", expected="values beside ref_logp", found="none"
        )
    for name in ("logp", "ref_logp"):
        values = getattr(batch, name)
        if values is None:
            continue
        if values.shape != batch.mask.shape:
            raise GradebookError(
                key=name,
                expected=f"the mask's shape {list(batch.mask.shape)}",
                found=str(list(values.shape)),
            )
        bad = (batch.mask & ~values.isfinite()).any(-1)
        refuse_rows(name, bad, values, "a finite number at every unmasked token")
    if batch.logp is not None and batch.ref_logp is None and batch.settings.beta:
        raise GradebookError(
            key="ref_logp",
            expected="values, since beta is not 0",
            found="none",
        )
