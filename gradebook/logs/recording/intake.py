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

from gradebook.core.errors import GradebookError, shown

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


def step_number(step: Any) -> int:
    """The step's number. Raises GradebookError for anything else."""
    whole = isinstance(step, Integral) and not isinstance(step, bool)
    if not whole or abs(int(step)) >= 2**53:
        raise GradebookError(
            key="step",
            expected="a whole number below 2**53",
            found=shown(step),
        )
    return int(step)


class LabelKinds:
    """Whether each label is a number or a string, as the first step has
    it."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def check(self, rows: StepRows) -> None:
        """Raises GradebookError where a label's kind changes between
        steps."""
        for name in LABELS:
            if name not in rows.columns or not rows.rows:
                continue
            text = rows.columns[name].dtype == object
            kind = "strings" if text else "whole numbers"
            before = self._kinds.setdefault(name, kind)
            if kind != before:
                raise GradebookError(
                    key=name,
                    row=0,
                    expected=f"{before}, as in the steps before",
                    found=shown(rows.columns[name].tolist()[0]),
                )


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
            raise GradebookError(
                key=name, expected="a value a row", found="nothing"
            )
    reward, reward_type = _floats("reward", given["reward"])
    rows = len(_one_a_row("reward", reward, None))
    _refuse("reward", reward.isinf(), reward, "a finite number, NaN or None")
    columns: dict[str, np.ndarray] = {"reward": reward.cpu().numpy()}
    mask = _mask(given["mask"], rows) if "mask" in given else None
    if mask is not None:
        columns["length"] = mask.sum(-1).cpu().numpy()
    advantage, advantage_type = _floats("advantage", given["advantage"])
    by_token = None
    if advantage.dim() == 2:
        advantage, by_token = _a_row(advantage, mask, rows)
    columns["advantage"] = (
        _one_a_row("advantage", advantage, rows).cpu().numpy()
    )
    for name in LABELS:
        if name in given:
            columns[name] = _labels(name, given[name], rows)
    for name in FLAGS:
        if name in given:
            columns[name] = _flags(name, given[name], rows)
    for name in WHOLE:
        if name in given:
            _check_length(name, "length" in columns and name == "length")
            columns[name] = _whole(name, given[name], rows)
    types = {"reward": reward_type, "advantage": advantage_type}
    missing = np.isnan(columns["reward"])
    if missing.any():
        scored = columns.get("scored", np.ones(rows, dtype=bool))
        columns["scored"] = scored & ~missing
    width = None if mask is None else mask.shape[1]
    return StepRows(columns, by_token, types, width)


UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
"""Types that torch stores and does not compute with."""


def _check_length(name: str, twice: bool) -> None:
    if twice:
        raise GradebookError(
            key=name, expected="a mask or lengths", found="both"
        )


def _tensor(key: str, value: Any) -> Tensor:
    """`value` as a tensor without its graph, on the device it is on."""
    if isinstance(value, Tensor):
        return _dense(key, value)
    try:
        array = np.asarray(value)
        if array.dtype == object:  # None among numbers
            array = np.array(value, dtype="float64")
        if array.dtype.kind in "US":
            raise ValueError("text")
        if array.dtype.kind == "u":  # torch computes with none but uint8
            small = array.size == 0 or array.max() < 2**63
            array = array.astype("int64" if small else "float64")
        return torch.from_numpy(np.ascontiguousarray(array))
    except (TypeError, ValueError, OverflowError) as error:
        raise _odd_cell(key, value) from error


def _dense(key: str, tensor: Tensor) -> Tensor:
    """The tensor without its graph, its values in rows and columns."""
    if tensor.is_meta or tensor.is_quantized:
        kind = "a meta tensor" if tensor.is_meta else str(tensor.dtype)
        raise GradebookError(
            key=key, expected="a tensor with plain values", found=kind
        )
    tensor = tensor.detach()
    if tensor.dtype in UNSIGNED:
        return _tensor(key, tensor.cpu().numpy())
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _array(key: str, value: Any) -> np.ndarray:
    """`value` as an array; an error where its rows have several lengths."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise _odd_cell(key, value) from error


def _odd_cell(key: str, value: Any) -> GradebookError:
    """The first row that is no number, or has another length."""
    cells = list(value) if isinstance(value, (list, tuple)) else []
    lengths = [np.size(cell) if np.ndim(cell) else -1 for cell in cells]
    for row, cell in enumerate(cells):
        if lengths[row] != lengths[0]:
            expected = "as many values as row 0"
            return GradebookError(
                key=key, row=row, expected=expected, found=shown(cell)
            )
        if lengths[row] < 0 and not isinstance(cell, (int, float, type(None))):
            return GradebookError(
                key=key, row=row, expected="a number", found=shown(cell)
            )
    return GradebookError(key=key, expected="numbers", found=shown(value))


def _floats(key: str, value: Any) -> tuple[Tensor, str]:
    """Real numbers as float32 or float64, and the type they came in."""
    tensor = _tensor(key, value)
    if tensor.is_complex():
        raise GradebookError(
            key=key, expected="real numbers", found=str(tensor.dtype)
        )
    came_in = str(tensor.dtype).removeprefix("torch.")
    if not tensor.is_floating_point():
        return tensor.double(), "float64"
    if tensor.dtype != torch.float64:
        tensor = tensor.float()
    return tensor, came_in


def _one_a_row(key: str, tensor: Tensor, rows: int | None) -> Tensor:
    if tensor.dim() != 1:
        raise GradebookError(
            key=key,
            expected="a value a row, shape [R]",
            found=f"shape {list(tensor.shape)}",
        )
    if rows is not None and len(tensor) != rows:
        raise GradebookError(
            key=key,
            expected=f"{rows} rows, one for each reward",
            found=f"{len(tensor)} rows",
        )
    return tensor


def _mask(value: Any, rows: int) -> Tensor:
    """The response mask, bool [R, T]."""
    mask = _tensor("mask", value)
    if mask.dim() != 2 or mask.shape[0] != rows:
        raise GradebookError(
            key="mask",
            expected=f"shape [{rows}, T], a row for each reward",
            found=f"shape {list(mask.shape)}",
        )
    if mask.dtype != torch.bool:
        _refuse(
            "mask", ((mask != 0) & (mask != 1)).any(-1), mask, "0 or 1 a token"
        )
    return mask.bool()


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


def _labels(key: str, value: Any, rows: int) -> np.ndarray:
    """int64 [R], or an array of strings [R]."""
    if isinstance(value, Tensor):
        value = _dense(key, value).cpu()
        if value.is_floating_point():
            value = value.double()
        value = value.numpy()
    texts = _texts(value)
    cells = np.array(texts, dtype=object) if texts else _array(key, value)
    if cells.ndim != 1 or len(cells) != rows:
        raise GradebookError(
            key=key,
            expected=f"{rows} labels, one for each reward",
            found=f"shape {list(cells.shape)}",
        )
    if texts:
        return cells
    if cells.dtype.kind in "iu" or not rows:
        return cells.astype("int64")
    for row, cell in enumerate(value):
        if not isinstance(cell, str):
            raise GradebookError(
                key=key,
                row=row,
                expected="whole numbers, or strings in every row",
                found=shown(cell),
            )
    raise GradebookError(
        key=key, expected="whole numbers or strings", found=shown(value)
    )


def _texts(value: Any) -> list[str] | None:
    """The labels where all of them are strings, without half characters,
    which no file can hold; otherwise none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return None
    if not set(map(type, value)) <= {str, np.str_}:
        return None
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        return [
            one.encode("utf-8", "backslashreplace").decode() for one in value
        ]
    return list(value)


def _flags(key: str, value: Any, rows: int) -> np.ndarray:
    tensor = _one_a_row(key, _tensor(key, value), rows)
    _refuse(key, (tensor != 0) & (tensor != 1), tensor, "true or false")
    return tensor.bool().cpu().numpy()


def _whole(key: str, value: Any, rows: int) -> np.ndarray:
    if not isinstance(value, Tensor) and _array(key, value).ndim == 0:
        value = [value] * rows
    tensor = _tensor(key, value)
    if tensor.dim() == 0:
        tensor = tensor.expand(rows)
    tensor = _one_a_row(key, tensor, rows)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise GradebookError(
            key=key, expected="whole numbers", found=str(tensor.dtype)
        )
    if tensor.is_floating_point():
        whole = (tensor == tensor.round()) & (tensor.abs() < 2**53)
        _refuse(key, ~whole, tensor, "a whole number")
    _refuse(key, tensor < 0, tensor, "0 or more")
    return tensor.long().cpu().numpy()


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
