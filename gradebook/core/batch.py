"""Batch: the rollouts of one or more training steps, checked once, here.

Letters in shapes: R rows (rollouts), T tokens, S steps, G groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings

PER_ROW = ("eos", "step", "steps", "kept_steps")
PER_TOKEN = ("mask", "logp", "ref_logp")
FLOATING = ("reward", "logp", "ref_logp")
FEW = 4096
"""Rows up to which Python itself numbers labels."""


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
    settings    the trainer's conventions

    Raises GradebookError naming the field and the row.
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
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        if not isinstance(self.settings, Settings):
            raise GradebookError(
                key="settings",
                expected="a gradebook.Settings",
                found=shown(self.settings),
            )
        reward = _floats("reward", self.reward, dims=1)
        rows = reward.shape[0]
        put("reward", reward)
        put("prompt", _labels(self.prompt, rows))
        tokens = {
            name: _matrix(name, getattr(self, name), rows)
            for name in PER_TOKEN
        }
        for name in ("logp", "ref_logp"):
            if tokens[name] is not None:
                tokens[name] = tokens[name].to(reward.dtype)
        if tokens["mask"] is None:
            like = tokens["logp"]
            shape = (rows, 1) if like is None else like.shape
            tokens["mask"] = torch.ones(shape, dtype=torch.bool)
        for name in PER_TOKEN:
            put(name, tokens[name])
        put("eos", _bools("eos", self.eos, rows))
        put("step", _ints("step", self.step, rows, default=0))
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

    @cached_property
    def prompt_index(self) -> Tensor:
        """int64 [R] the row's prompt within its step, numbered 0.. over
        the whole batch as (step, prompt) pairs appear."""
        prompt = _factorized(self.prompt)
        if self.step_count > 1:
            return _factorized(self.step_index * (self.rows + 1) + prompt)
        return prompt

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
        order = self.step_index.argsort(stable=True)
        starts = self.step_rows.cumsum(0) - self.step_rows
        place = torch.empty_like(order)
        place[order] = torch.arange(self.rows)
        return place - starts[self.step_index]

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
        return largest.scatter_reduce(
            0, self.step_index, self.prompt_rows, "amax"
        )

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [R] unmasked tokens of the row: its response length."""
        return self.mask.sum(-1)

    @cached_property
    def large_enough(self) -> Tensor:
        """bool [R] the row's group has at least `min_group_size` rows."""
        return self.prompt_rows >= self.settings.min_group_size

    def select(self, keep: Tensor) -> Batch:
        """The rows where `keep`, bool [R], is true, in order."""
        names = ("prompt", "reward", *PER_ROW, *PER_TOKEN)
        values = {name: getattr(self, name) for name in names}
        taken = {k: v if v is None else v[keep] for k, v in values.items()}
        return replace(self, **taken)

    def under(self, settings: Settings) -> Batch:
        """The same rollouts under other settings."""
        return replace(self, settings=settings)


def _factorized(labels: Tensor) -> Tensor:
    """int64 [R] codes 0.. in order of first appearance."""
    return torch.from_numpy(_codes(labels.numpy()))


def _codes(labels: np.ndarray) -> np.ndarray:
    """int64 [R] codes 0.. in order of first appearance. What a page shows
    is not worth the import of pandas, which is the faster for many rows."""
    if len(labels) > FEW:
        return pd.factorize(labels)[0].astype("int64")
    seen: dict[Any, int] = {}
    codes = [seen.setdefault(one, len(seen)) for one in labels.tolist()]
    return np.array(codes, dtype="int64")


def _labels(prompt: Any, rows: int) -> Tensor:
    """Prompt labels as int64 [R]; strings are numbered as they appear."""
    if isinstance(prompt, Tensor):
        return _ints("prompt", prompt, rows, default=0)
    cells = np.asarray(prompt, dtype=object)
    if cells.ndim != 1:
        raise GradebookError(
            key="prompt",
            expected="a label a row, shape [R]",
            found=f"shape {list(cells.shape)}",
        )
    kinds = set(map(type, cells))
    if kinds and all(issubclass(kind, str) for kind in kinds):
        prompt = _codes(cells)
    elif any(k is bool or not issubclass(k, Real) for k in kinds):
        wanted = str if isinstance(cells[0], str) else Real
        for row, label in enumerate(cells):
            if not isinstance(label, wanted) or isinstance(label, bool):
                raise GradebookError(
                    key="prompt",
                    row=row,
                    expected="whole numbers, or strings in every row",
                    found=shown(label),
                )
    return _ints("prompt", prompt, rows, default=0)


def _tensor(key: str, value: Any) -> Tensor:
    """`value` as a tensor, detached and on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    try:
        if hasattr(value, "__array__"):
            value = np.array(value)
            if value.dtype != object:
                return torch.from_numpy(value)
            value = value.tolist()
        floating = key in FLOATING
        tensor = torch.tensor(value, dtype=torch.float64 if floating else None)
        if tensor.dtype == torch.float32:
            tensor = torch.tensor(value, dtype=torch.float64)
        if tensor.numel() or not any(map(np.size, value)):
            return tensor
        raise ValueError("torch reads [[], [1]] as two empty rows")
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise _unreadable(key, value) from error


def _unreadable(key: str, value: Any) -> GradebookError:
    """Why a nested list is no tensor: the first row that differs."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        lengths = [
            len(v)
            if isinstance(v, Sequence) and not isinstance(v, str)
            else -1
            for v in value
        ]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                return GradebookError(
                    key=key,
                    row=row,
                    expected=f"{_many(lengths[0])}, as in row 0",
                    found=_many(length),
                )
        for row, item in enumerate(value):
            cells = item if lengths[row] >= 0 else [item]
            if not all(isinstance(c, (int, float)) for c in cells):
                return GradebookError(
                    key=key, row=row, expected="numbers", found=shown(item)
                )
            if not all(abs(c) < 2**63 for c in cells if isinstance(c, int)):
                return GradebookError(
                    key=key,
                    row=row,
                    expected="whole numbers below 2**63",
                    found=shown(item),
                )
    return GradebookError(key=key, expected="numbers", found=shown(value))


def _many(length: int) -> str:
    """How many values a row of a nested list has; -1 for no list."""
    return "a single value" if length < 0 else f"{length} values"


def _length(key: str, tensor: Tensor, rows: int | None, dims: int) -> Tensor:
    if tensor.numel() == 0 and tensor.dim() <= dims and not rows:
        tail = tensor.shape[1:] if tensor.dim() == dims else (0,) * (dims - 1)
        tensor = tensor.reshape(0, *tail)
    if tensor.dim() != dims:
        letters = "[R]" if dims == 1 else "[R, T]"
        raise GradebookError(
            key=key,
            expected=f"shape {letters}",
            found=f"shape {list(tensor.shape)}",
        )
    if rows is not None and tensor.shape[0] != rows:
        raise GradebookError(
            key=key,
            expected=f"{rows} rows, one for each reward",
            found=str(tensor.shape[0]),
        )
    return tensor


def _floats(
    key: str, value: Any, dims: int, rows: int | None = None
) -> Tensor:
    tensor = _tensor(key, value)
    if tensor.is_complex():
        raise GradebookError(
            key=key, expected="real numbers", found=str(tensor.dtype)
        )
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.double()
    tensor = _length(key, tensor, rows, dims)
    if dims == 1:
        _refuse(key, ~tensor.isfinite(), tensor, "a finite number")
    return tensor


def _matrix(key: str, value: Any, rows: int) -> Tensor | None:
    if value is None:
        return None
    if key != "mask":
        return _floats(key, value, dims=2, rows=rows)
    tensor = _length(key, _tensor(key, value), rows, dims=2)
    if tensor.dtype != torch.bool:
        wrong = ((tensor != 0) & (tensor != 1)).any(-1)
        _refuse(key, wrong, tensor, "0 or 1 in every cell")
    return tensor.bool()


def _bools(key: str, value: Any, rows: int) -> Tensor:
    if value is None:
        return torch.ones(rows, dtype=torch.bool)
    tensor = _length(key, _tensor(key, value), rows, dims=1)
    if tensor.dtype != torch.bool:
        wrong = (tensor != 0) & (tensor != 1)
        _refuse(key, wrong, tensor, "true or false")
    return tensor.bool()


def _ints(key: str, value: Any, rows: int, default: int) -> Tensor:
    if value is None:
        return torch.full((rows,), default, dtype=torch.int64)
    tensor = _length(key, _tensor(key, value), rows, dims=1)
    if tensor.is_floating_point():
        whole = (tensor.abs() < 2**63) & (tensor == tensor.round())
        _refuse(key, ~whole, tensor, "a whole number")
    elif tensor.dtype == torch.bool or tensor.is_complex():
        raise GradebookError(
            key=key, expected="whole numbers", found=str(tensor.dtype)
        )
    return tensor.to(torch.int64)


def _refuse(key: str, wrong: Tensor, values: Tensor, expected: str) -> None:
    """Raises at the first row where `wrong`, bool [R], is true."""
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise GradebookError(
            key=key,
            row=row,
            expected=expected,
            found=shown(values[row].tolist()),
        )


def _settle_steps(batch: Batch, put: Any, rows: int) -> None:
    kept = batch.kept_steps
    if kept is not None:
        kept = _ints("kept_steps", kept, rows, default=1)
        _refuse("kept_steps", kept < 0, kept, "0 or more")
    steps = batch.steps
    if steps is None and kept is not None:
        steps = kept.clamp(min=1)
    steps = _ints("steps", steps, rows, default=1)
    _refuse("steps", steps < 1, steps, "1 or more")
    kept = steps if kept is None else kept
    _refuse("kept_steps", kept > steps, kept, "at most the row's steps")
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
        _refuse(name, bad, values, "a finite number at every unmasked token")
    if (
        batch.logp is not None
        and batch.ref_logp is None
        and batch.settings.beta
    ):
        raise GradebookError(
            key="ref_logp",
            expected="values, since beta is not 0",
            found="none",
        )
