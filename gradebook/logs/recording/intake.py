"""One training step as a trainer hands it over: tensors, arrays or lists,
checked and turned into columns. The recorder and the guard share this.

Letters in shapes: R rows (rollouts), T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import (
    as_tensor,
    label_cells,
    read_bits,
    read_numbers,
    read_whole,
    refuse_rows,
)
from gradebook.core.columns import of_kind
from gradebook.core.errors import GradebookError, refuse

LABELS = of_kind("label")
"""Columns of labels: whole numbers, or strings in every row."""
FLAGS = of_kind("flag")
WHOLE = ("length", *(name for name in of_kind("whole") if name != "step"))
COLUMNS = ("reward", "advantage", "mask", *LABELS, *FLAGS, *WHOLE)
"""What `Recorder.step` and `Guard.step` take, beside the step's number."""


@dataclass(frozen=True, eq=False)
class StepRows:
    """The rows of one training step as columns.

    step      its number
    columns   name -> array [R]; reward and advantage are float32 or
              float64 and NaN where a row has none; labels are int64 or
              strings; flags are bool; the others int64
    by_token  some row's tokens have different advantages: the row has their mean
    types     name -> the float type that the trainer handed over
    """

    step: int
    columns: Mapping[str, np.ndarray]
    by_token: bool
    types: Mapping[str, str]

    @property
    def rows(self) -> int:
        """R, the number of rollouts."""
        return len(self.columns["reward"])


def step_rows(step: Any, arguments: Mapping[str, Any]) -> StepRows:
    """Checks what a trainer handed over for one step.

    Raises GradebookError naming the argument and the row: a step that is no
    number, columns of different lengths, an infinite reward, a mask of another
    shape, a label that is neither a whole number nor a string, an unknown
    argument.
    """
    whole = isinstance(step, Integral) and not isinstance(step, bool)
    if not whole or abs(int(step)) >= 2**53:
        raise refuse("a whole number below 2**53", step, "step")
    cells = {name: cell for name, cell in arguments.items() if cell is not None}
    for name in cells:
        if name not in COLUMNS:
            near = get_close_matches(name, COLUMNS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            expected = f"one of {', '.join(COLUMNS)}{hint}"
            raise GradebookError(
                key=name, expected=expected, found="an unknown argument"
            )
    for name in ("prompt", "reward", "advantage"):
        if name not in cells:
            raise GradebookError(key=name, expected="a value a row", found="nothing")
    if "mask" in cells and "length" in cells:
        raise GradebookError(key="length", expected="a mask or lengths", found="both")
    reward, reward_type = _floats("reward", cells["reward"])
    rows = len(reward)
    refuse_rows("reward", reward.isinf(), reward, "a finite number, NaN or None")
    mask = None
    if "mask" in cells:
        mask = read_bits("mask", cells["mask"], rows, dims=2)
    advantage, advantage_type = _floats("advantage", cells["advantage"], rows)
    by_token = False
    if advantage.dim() == 2:
        advantage, by_token = _by_row(advantage, mask)
    columns = {"reward": reward.cpu().numpy(), "advantage": advantage.cpu().numpy()}
    if mask is not None:
        columns["length"] = mask.sum(-1).cpu().numpy()
    for name, cell in cells.items():
        if name in LABELS:
            labels = label_cells(name, cell, rows)
            if labels.dtype == object:  # half characters stand in no file
                texts = [t.encode("utf-8", "backslashreplace").decode() for t in labels]
                labels = np.array(texts, dtype=object)
            columns[name] = labels
        elif name in FLAGS:
            columns[name] = read_bits(name, cell, rows).cpu().numpy()
        elif name in WHOLE:
            numbers = as_tensor(name, cell)
            numbers = numbers.expand(rows) if numbers.dim() == 0 else numbers
            numbers = read_whole(name, numbers, rows)
            refuse_rows(name, numbers < 0, numbers, "0 or more")
            columns[name] = numbers.numpy()
    missing = np.isnan(columns["reward"])
    if missing.any():
        columns["scored"] = columns.get("scored", True) & ~missing
    types = {"reward": reward_type, "advantage": advantage_type}
    return StepRows(int(step), columns, by_token, types)


def _floats(key: str, value: Any, rows: int | None = None) -> tuple[Tensor, str]:
    """Real numbers as float32 or float64, None as NaN, and the float type
    they came in. [R], or [R, T] where an advantage has a number a token."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        value = [np.nan if cell is None else cell for cell in value]
    tensor = as_tensor(key, value)
    dims = 2 if key == "advantage" and tensor.dim() == 2 else 1
    kind = "float64"
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        kind = str(tensor.dtype).removeprefix("torch.")
        tensor = tensor.float()
    return read_numbers(key, tensor, dims, rows), kind


def _by_row(advantage: Tensor, mask: Tensor | None) -> tuple[Tensor, bool]:
    """Advantages a token, [R, T], as one a row: the mean over the unmasked
    tokens, 0 for a row without any; and whether some row has several."""
    if mask is None or advantage.shape != mask.shape:
        shape = "the response mask's shape"
        shape += f" {list(mask.shape)}" if mask is not None else " (a mask)"
        raise GradebookError(
            key="advantage", expected=shape, found=f"shape {list(advantage.shape)}"
        )
    mask = mask.to(advantage.device)
    if mask.shape[1] == 0:
        return advantage.new_zeros(len(mask)), False
    first = advantage.gather(1, mask.int().argmax(-1, keepdim=True))
    same = (advantage == first) | (advantage.isnan() & first.isnan()) | ~mask
    same = same.all(-1)
    total = torch.where(mask, advantage, 0).double().sum(-1)
    mean = (total / mask.sum(-1).clamp(min=1)).to(advantage.dtype)
    single = torch.where(mask.any(-1), first[:, 0], 0)
    return torch.where(same, single, mean), not bool(same.all())
