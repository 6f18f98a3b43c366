"""Read the columns of a batch: lists, arrays and tensors become tensors.

Every reader names the column and the row of what it cannot read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
"""Types that torch stores and does not compute with."""
FEW = 4096
"""Rows up to which Python itself numbers labels: without the import of pandas."""


def codes(labels: np.ndarray) -> np.ndarray:
    """Labels numbered 0.. in order of first appearance. int64 [R]."""
    if len(labels) > FEW:
        return pd.factorize(labels)[0].astype("int64")
    seen: dict[Any, int] = {}
    numbered = [seen.setdefault(label, len(seen)) for label in labels.tolist()]
    return np.array(numbered, dtype="int64")


def as_tensor(key: str, value: Any) -> Tensor:
    """`value` as a tensor without its graph, on the device it is on."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.is_meta or value.is_quantized:
            kind = f"{value.dtype} on {value.device}"
            raise GradebookError(key=key, expected="real numbers", found=kind)
        value = value.detach()
        if value.dtype not in UNSIGNED:
            return value.to_dense() if value.is_sparse else value
        value = value.cpu().numpy()
    array = _as_array(value)
    if array.dtype == object:
        array = _as_array(array.tolist())
    if array.dtype.kind not in "biuf":
        raise _unreadable(key, value)
    if array.dtype.kind == "u":  # torch does not compute with it
        small = array.size == 0 or array.max() < 2**63
        array = array.astype("int64" if small else "float64")
    return torch.from_numpy(array)


def _as_array(value: Any) -> np.ndarray:
    try:
        return np.array(value)
    except (ValueError, TypeError):  # lists of different lengths
        return np.array(None)


def _unreadable(key: str, value: Any) -> GradebookError:
    """Why the value is no tensor: the first row that holds no numbers, or has
    another shape than row 0."""
    rows = value.tolist() if hasattr(value, "tolist") else value
    arrays = [_as_array(row) for row in rows] if isinstance(rows, (list, tuple)) else []
    for row, array in enumerate(arrays):
        if array.dtype.kind not in "biuf":
            return refuse("numbers", rows[row], key, row=row)
        if array.shape != arrays[0].shape:
            as_first = f"shape {list(arrays[0].shape)}, as in row 0"
            shape = f"shape {list(array.shape)}"
            return GradebookError(key=key, row=row, expected=as_first, found=shape)
    return refuse("numbers", value, key)


def read_labels(key: str, labels: Any, rows: int) -> Tensor:
    """Labels as int64 [R]; strings are numbered as they appear."""
    cells = label_cells(key, labels, rows)
    return torch.from_numpy(codes(cells) if cells.dtype == object else cells)


def label_cells(key: str, labels: Any, rows: int) -> np.ndarray:
    """Labels as they are, [R]: whole numbers as int64, or strings as
    objects."""
    if not isinstance(labels, Tensor):
        cells = np.asarray(labels)
        if cells.dtype.kind not in "iuf" and cells.ndim == 1:
            cells = np.asarray(labels, dtype=object)
            text = [isinstance(label, str) for label in cells]
            if all(text) and text:
                _refuse_other_rows(key, len(cells), rows)
                return cells
            if any(text):
                row = text.index(not text[0])
                expected = "whole numbers, or strings in every row"
                raise refuse(expected, cells[row], key, row=row)
    return read_whole(key, as_tensor(key, labels), rows, default=0).numpy()


def read_floats(key: str, value: Any, dims: int, rows: int | None = None) -> Tensor:
    """Finite numbers where there is one a row."""
    tensor = read_numbers(key, value, dims, rows)
    if dims == 1:
        refuse_rows(key, ~tensor.isfinite(), tensor, "a finite number")
    return tensor


def read_numbers(key: str, value: Any, dims: int, rows: int | None = None) -> Tensor:
    """Real numbers, infinite and missing ones too."""
    tensor = as_tensor(key, value)
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.double()
    return _shaped(key, tensor, dims, rows)


def read_matrix(key: str, value: Any, rows: int) -> Tensor | None:
    """A response mask as bool [R, T]."""
    return None if value is None else _bits(key, value, rows, dims=2)


def read_flags(key: str, value: Any, rows: int) -> Tensor:
    """bool [R]; True where the column is not there."""
    if value is None:
        return torch.ones(rows, dtype=torch.bool)
    return _bits(key, value, rows, dims=1)


def _bits(key: str, value: Any, rows: int, dims: int) -> Tensor:
    tensor = _shaped(key, as_tensor(key, value), dims, rows)
    wrong = (tensor != 0) & (tensor != 1)
    expected = "true or false" if dims == 1 else "0 or 1 in every cell"
    refuse_rows(key, wrong if dims == 1 else wrong.any(-1), tensor, expected)
    return tensor.bool()


def read_whole(key: str, value: Any, rows: int, default: int) -> Tensor:
    """int64 [R]; the default where the column is not there."""
    if value is None:
        return torch.full((rows,), default, dtype=torch.int64)
    tensor = _shaped(key, as_tensor(key, value), 1, rows)
    if tensor.is_floating_point():
        whole = (tensor.abs() < 2**63) & (tensor == tensor.round())
        refuse_rows(key, ~whole, tensor, "a whole number")
    elif tensor.dtype == torch.bool:
        raise refuse("whole numbers", tensor.dtype, key)
    return tensor.to(torch.int64).cpu()


def refuse_rows(key: str, wrong: Tensor, values: Tensor, expected: str) -> None:
    """Raises at the first row where `wrong`, bool [R], is true."""
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise refuse(expected, values[row].tolist(), key, row=row)


def _shaped(key: str, tensor: Tensor, dims: int, rows: int | None) -> Tensor:
    """The tensor, where it has so many dimensions and rows. An empty list has
    whatever shape is needed."""
    if not tensor.numel() and tensor.dim() < dims and not rows:
        tensor = tensor.reshape(0, *[0] * (dims - 1))
    if tensor.dim() != dims:
        letters = "shape [R]" if dims == 1 else "shape [R, T]"
        shape = f"shape {list(tensor.shape)}"
        raise GradebookError(key=key, expected=letters, found=shape)
    _refuse_other_rows(key, tensor.shape[0], rows)
    return tensor


def _refuse_other_rows(key: str, count: int, rows: int | None) -> None:
    if rows is not None and count != rows:
        raise refuse(f"{rows} rows, one for each reward", count, key)
