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

from gradebook.core.columns import (
    as_tensor,
    label_cells,
    read_flags,
    read_matrix,
    read_numbers,
    read_whole,
    refuse_rows,
)
from gradebook.core.errors import GradebookError, refuse

LABELS = ("prompt", "rollout", "text")
"""Columns of labels: whole numbers, or strings in every row."""
FLAGS = ("eos", "scored")
WHOLE = ("length", "steps", "kept_steps", "rank")
COLUMNS = (
    "reward",
    "advantage",
    "mask",
    *LABELS,
    *FLAGS,
    *WHOLE,
)
"""What `Recorder.step` and `Guard.step` take, beside the step's number."""


@dataclass(frozen=True, eq=False)
class StepRows:
    """The rows of one training step as columns.

    columns     name -> array [R]; reward and advantage are float32 or
                float64 and NaN where a row has none; labels are int64 or
                strings; flags are bool; the others int64
    by_token    the advantages of the unmasked tokens, row after row, where
                some row has more than one value; else none. `length` says
                how many are a row's, and `columns["advantage"]` is their
                mean
    types       name -> the float type that the trainer handed over
    width       T, the padded width of the mask; none without a mask
    """

    columns: Mapping[str, np.ndarray]
    by_token: np.ndarray | None
    types: Mapping[str, str]
    width: int | None

    @property
    def rows(self) -> int:
        """R, the number of rollouts."""
        return len(self.columns["reward"])


class StepReader:
    """Checks one step after another. Each label stays a number or a string,
    as the first step has it."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def read(self, step: Any, arguments: Mapping[str, Any]) -> tuple[int, StepRows]:
        """The step's number and its rows. Raises GradebookError where one
        of them is not what it must be."""
        whole = isinstance(step, Integral) and not isinstance(step, bool)
        if not whole or abs(int(step)) >= 2**53:
            raise refuse("a whole number below 2**53", step, "step")
        rows = step_rows(arguments)
        for name in LABELS if rows.rows else ():
            if name not in rows.columns:
                continue
            text = rows.columns[name].dtype == object
            kind = "strings" if text else "whole numbers"
            before = self._kinds.setdefault(name, kind)
            if kind != before:
                raise refuse(
                    f"{before}, as in the steps before",
                    rows.columns[name].tolist()[0],
                    name,
                    row=0,
                )
        return int(step), rows


def step_rows(arguments: Mapping[str, Any]) -> StepRows:
    """Checks what a trainer handed over for one step.

    Raises GradebookError naming the argument and the row: columns of
    different lengths, an infinite reward, a mask of another shape, a label
    that is neither a whole number nor a string, an unknown argument.
    """
    given = {k: v for k, v in arguments.items() if v is not None}
    for name in given:
        if name not in COLUMNS:
            near = get_close_matches(name, COLUMNS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise GradebookError(
                key=name,
                expected="one of " + ", ".join(COLUMNS) + hint,
                found="an unknown argument",
            )
    for name in ("prompt", "reward", "advantage"):
        if name not in given:
            raise GradebookError(key=name, expected="a value a row", found="nothing")
    reward, reward_type = _floats("reward", given["reward"], 1)
    rows = len(reward)
    refuse_rows("reward", reward.isinf(), reward, "a finite number, NaN or None")
    columns: dict[str, np.ndarray] = {"reward": reward.cpu().numpy()}
    mask = read_matrix("mask", given.get("mask"), rows)
    if mask is not None:
        columns["length"] = mask.sum(-1).cpu().numpy()
    tokens = as_tensor("advantage", _without_none(given["advantage"]))
    dims = 2 if tokens.dim() == 2 else 1
    advantage, advantage_type = _floats("advantage", tokens, dims, rows)
    by_token = None
    if dims == 2:
        advantage, by_token = _a_row(advantage, mask, rows)
    columns["advantage"] = advantage.cpu().numpy()
    for name in LABELS:
        if name in given:
            columns[name] = _encodable(label_cells(name, given[name], rows))
    for name in FLAGS:
        if name in given:
            columns[name] = read_flags(name, given[name], rows).cpu().numpy()
    for name in WHOLE:
        if name in given:
            if name in columns:
                raise GradebookError(
                    key=name, expected="a mask or lengths", found="both"
                )
            columns[name] = _whole(name, given[name], rows)
    types = {"reward": reward_type, "advantage": advantage_type}
    missing = np.isnan(columns["reward"])
    if missing.any():
        scored = columns.get("scored", np.ones(rows, dtype=bool))
        columns["scored"] = scored & ~missing
    width = None if mask is None else mask.shape[1]
    return StepRows(columns, by_token, types, width)


def _without_none(value: Any) -> Any:
    """A list whose empty cells are NaN."""
    cells = value.tolist() if _holds_objects(value) else value
    if isinstance(cells, (list, tuple)):
        return [np.nan if cell is None else cell for cell in cells]
    return cells


def _holds_objects(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _floats(
    key: str, value: Any, dims: int, rows: int | None = None
) -> tuple[Tensor, str]:
    """Real numbers as float32 or float64, and the float type they came
    in."""
    tensor = as_tensor(key, _without_none(value))
    kind = "float64"
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        kind = str(tensor.dtype).removeprefix("torch.")
        tensor = tensor.float()
    return read_numbers(key, tensor, dims, rows), kind


def _encodable(labels: np.ndarray) -> np.ndarray:
    """The labels without half characters, which no file can hold."""
    try:
        "".join(labels if labels.dtype == object else "").encode()
    except UnicodeEncodeError:
        whole = [one.encode("utf-8", "backslashreplace") for one in labels]
        return np.array([one.decode() for one in whole], dtype=object)
    return labels


def _whole(key: str, value: Any, rows: int) -> np.ndarray:
    """Whole numbers from 0, int64 [R]; a single one stands for all rows."""
    tensor = as_tensor(key, value)
    if tensor.dim() == 0:
        tensor = tensor.expand(rows)
    tensor = read_whole(key, tensor, rows, default=0)
    refuse_rows(key, tensor < 0, tensor, "0 or more")
    return tensor.numpy()


def _a_row(
    advantage: Tensor, mask: Tensor | None, rows: int
) -> tuple[Tensor, np.ndarray | None]:
    """Advantages a token, [R, T], as one a row, and by token where a row
    has several values. A row without unmasked tokens has advantage 0."""
    if mask is None:
        raise GradebookError(
            key="mask",
            expected="the response mask, since advantages are per token",
            found="nothing",
        )
    if advantage.shape != mask.shape:
        raise GradebookError(
            key="advantage",
            expected=f"the mask's shape {list(mask.shape)}",
            found=f"shape {list(advantage.shape)}",
        )
    mask = mask.to(advantage.device)
    if mask.shape[1] == 0:
        return advantage.new_zeros(rows), None
    first = mask.int().argmax(-1, keepdim=True)
    value = advantage.gather(1, first)
    same = (advantage == value) | (advantage.isnan() & value.isnan())
    has_tokens = mask.any(-1)
    if bool((same | ~mask).all()):
        return torch.where(has_tokens, value[:, 0], 0), None
    kept = torch.where(mask, advantage, 0)
    count = mask.sum(-1).clamp(min=1)
    constant = (same | ~mask).all(-1)
    mean = (kept.double().sum(-1) / count).to(advantage.dtype)
    by_token = advantage[mask].cpu().numpy()
    single = torch.where(has_tokens, value[:, 0], 0)
    return torch.where(constant, single, mean), by_token
