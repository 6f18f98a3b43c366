"""Read the columns of a batch: lists, arrays and tensors become tensors.

Every reader names the column and the row of what it cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd

FLOATING = ("reward", "advantage", "logp", "ref_logp")
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
"""Types that torch stores and does not compute with."""
FEW = 4096
"""Rows up to which Python itself numbers labels."""


def codes(labels: np.ndarray) -> np.ndarray:
    """Labels numbered 0.. in order of first appearance. int64 [R].

    pandas is faster for many rows, but its import takes longer than
    numbering the few rows of a page.
    """
    if len(labels) > FEW:
        return pd.factorize(labels)[0].astype("int64")
    seen: dict[Any, int] = {}
    numbered = [seen.setdefault(label, len(seen)) for label in labels.tolist()]
    return np.array(numbered, dtype="int64")


def read_labels(key: str, labels: Any, rows: int) -> Tensor:
    """Labels as int64 [R]; strings are numbered as they appear."""
    cells = label_cells(key, labels, rows)
    if cells.dtype == object:
        cells = codes(cells)
    return torch.from_numpy(cells)


def label_cells(key: str, labels: Any, rows: int) -> np.ndarray:
    """Labels as they are, [R]: whole numbers as int64, or strings as
    objects."""
    is_array = isinstance(labels, np.ndarray)
    whole = labels.dtype.kind in "iu" if is_array else isinstance(labels, Tensor)
    if not whole:
        cells = np.asarray(labels, dtype=object)
        if cells.ndim != 1:
            raise GradebookError(
                key=key,
                expected="a label a row, shape [R]",
                found=f"shape {list(cells.shape)}",
            )
        kinds = set(map(type, cells))
        if kinds and all(issubclass(kind, str) for kind in kinds):
            _refuse_other_rows(key, len(cells), rows)
            return cells
        if any(k is bool or not issubclass(k, Real) for k in kinds):
            expected = str if isinstance(cells[0], str) else Real
            for row, label in enumerate(cells):
                if not isinstance(label, expected) or isinstance(label, bool):
                    raise refuse(
                        "whole numbers, or strings in every row",
                        label,
                        key,
                        row=row,
                    )
    return read_whole(key, labels, rows, default=0).numpy()


def as_tensor(key: str, value: Any) -> Tensor:
    """`value` as a tensor without its graph, on the device it is on."""
    if isinstance(value, Tensor):
        return _dense(key, value.detach())
    try:
        if hasattr(value, "__array__"):
            value = np.array(value)
            if value.dtype.kind == "u":  # torch computes with none but uint8
                small = value.size == 0 or value.max() < 2**63
                value = value.astype("int64" if small else "float64")
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


def _dense(key: str, tensor: Tensor) -> Tensor:
    """The tensor with its values in rows and columns."""
    if tensor.is_meta or tensor.is_quantized:
        kind = "a meta tensor" if tensor.is_meta else str(tensor.dtype)
        raise GradebookError(key=key, expected="a tensor with plain values", found=kind)
    if tensor.dtype in UNSIGNED:
        return as_tensor(key, tensor.cpu().numpy())
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _unreadable(key: str, value: Any) -> GradebookError:
    """Why a nested list is no tensor: the first row that differs."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        lengths = [
            len(v) if isinstance(v, Sequence) and not isinstance(v, str) else -1
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
                return refuse("numbers", item, key, row=row)
            if not all(abs(c) < 2**63 for c in cells if isinstance(c, int)):
                return refuse("whole numbers below 2**63", item, key, row=row)
    return refuse("numbers", value, key)


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
    _refuse_other_rows(key, tensor.shape[0], rows)
    return tensor


def _refuse_other_rows(key: str, count: int, rows: int | None) -> None:
    if rows is not None and count != rows:
        raise refuse(f"{rows} rows, one for each reward", count, key)


def read_floats(key: str, value: Any, dims: int, rows: int | None = None) -> Tensor:
    """Finite numbers where there is one a row."""
    tensor = read_numbers(key, value, dims, rows)
    if dims == 1:
        refuse_rows(key, ~tensor.isfinite(), tensor, "a finite number")
    return tensor


def read_numbers(key: str, value: Any, dims: int, rows: int | None = None) -> Tensor:
    """Real numbers, infinite and missing ones too."""
    tensor = as_tensor(key, value)
    if tensor.is_complex():
        raise GradebookError(key=key, expected="real numbers", found=str(tensor.dtype))
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.double()
    return _length(key, tensor, rows, dims)


def read_matrix(key: str, value: Any, rows: int) -> Tensor | None:
    if value is None:
        return None
    if key != "mask":
        return read_floats(key, value, dims=2, rows=rows)
    tensor = _length(key, as_tensor(key, value), rows, dims=2)
    if tensor.dtype != torch.bool:
        wrong = ((tensor != 0) & (tensor != 1)).any(-1)
        refuse_rows(key, wrong, tensor, "0 or 1 in every cell")
    return tensor.bool()


def read_flags(key: str, value: Any, rows: int) -> Tensor:
    if value is None:
        return torch.ones(rows, dtype=torch.bool)
    tensor = _length(key, as_tensor(key, value), rows, dims=1)
    if tensor.dtype != torch.bool:
        wrong = (tensor != 0) & (tensor != 1)
        refuse_rows(key, wrong, tensor, "true or false")
    return tensor.bool()


def read_whole(key: str, value: Any, rows: int, default: int) -> Tensor:
    if value is None:
        return torch.full((rows,), default, dtype=torch.int64)
    tensor = _length(key, as_tensor(key, value), rows, dims=1)
    if tensor.is_floating_point():
        whole = (tensor.abs() < 2**63) & (tensor == tensor.round())
        refuse_rows(key, ~whole, tensor, "a whole number")
    elif tensor.dtype == torch.bool or tensor.is_complex():
        raise GradebookError(key=key, expected="whole numbers", found=str(tensor.dtype))
    return tensor.to(torch.int64).cpu()


def refuse_rows(key: str, wrong: Tensor, values: Tensor, expected: str) -> None:
    """Raises at the first row where `wrong`, bool [R], is true."""
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise refuse(expected, values[row].tolist(), key, row=row)
