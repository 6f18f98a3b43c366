"""Rollouts: the rows of whole steps as one batch, with what was logged."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings

CANONICAL = (
    "step",
    "prompt",
    "reward",
    "advantage",
    "length",
    "eos",
    "steps",
    "kept_steps",
)
"""The columns of a canonical frame; the first three are always there."""


@dataclass(frozen=True, eq=False)
class LoggedBatch(Batch):
    """A batch that knows its response lengths without a token matrix.

    lengths  int64 [R] unmasked tokens of the row; default: as the mask
    """

    lengths: Any = None

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [R] unmasked tokens of the row: its response length."""
        return self.mask.sum(-1) if self.lengths is None else self.lengths

    @cached_property
    def place(self) -> Tensor:
        """int64 [R] the row's position among the rows of its step, which
        stand together here."""
        starts = self.step_rows.cumsum(0) - self.step_rows
        return torch.arange(self.rows) - starts[self.step_index]


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows, int64 [G] each.

    first, last  the group's first and last row
    size         how many rows it has
    step         its step's number
    """

    first: np.ndarray
    last: np.ndarray
    size: np.ndarray
    step: np.ndarray


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Rows of whole steps, sorted by step, rows of a step in their order.

    batch      the rows
    advantage  float64 [R] as logged, NaN where the log has none
    labels     [S] the steps' own names
    has        the canonical columns that the log has
    """

    batch: LoggedBatch
    advantage: np.ndarray
    labels: np.ndarray
    has: frozenset[str]

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 [S] first row of each step."""
        rows = self.batch.step_rows.numpy()
        return np.cumsum(rows) - rows

    @cached_property
    def steps(self) -> int:
        """S, the number of steps."""
        return len(self.labels)

    @cached_property
    def groups(self) -> Groups:
        """The groups of rows that share step and prompt."""
        code = self.batch.prompt_index.numpy()
        rows = np.arange(len(code))
        size = np.bincount(code)
        first, last = np.empty_like(size), np.empty_like(size)
        first[code[::-1]] = rows[::-1]
        last[code] = rows
        step = self.batch.step_index.numpy()[first]
        return Groups(first, last, size, step)

    def worst(self, values: np.ndarray) -> np.ndarray:
        """Largest of each step's values, [S]."""
        return np.maximum.reduceat(values, self.starts)

    def first_at(self, values: np.ndarray, worst: np.ndarray) -> np.ndarray:
        """int64 [S] the first row of each step that has its `worst`."""
        step = self.batch.step_index.numpy()
        hit = np.flatnonzero(values == worst[step])
        return hit[np.unique(step[hit], return_index=True)[1]]

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of each step's values, [S]."""
        return np.add.reduceat(values, self.starts)

    def rows_of(self, steps: np.ndarray) -> np.ndarray:
        """bool [R] the row is in one of `steps`, bool [S]."""
        return steps[self.batch.step_index.numpy()]

    def of_steps(self, steps: np.ndarray) -> Rollouts:
        """Only the rows of `steps`, bool [S]."""
        if steps.all():
            return self
        return self.of_rows(self.rows_of(steps))

    def of_rows(self, rows: np.ndarray) -> Rollouts:
        """Only these rows, bool [R]."""
        at = np.flatnonzero(rows)
        keep = torch.from_numpy(at)
        b = self.batch
        step = b.step_index.numpy()[at]
        new = np.diff(step, prepend=-1) != 0
        old = b.prompt_index.numpy()[at]
        taken = _batch(
            **{
                name: value if value is None else value[keep]
                for name, value in ((n, getattr(b, n)) for n in FIELDS)
            }
        )
        _put(taken, "settings", b.settings)
        _index(taken, np.cumsum(new) - 1, _renumbered(old))
        return Rollouts(
            taken, self.advantage[at], self.labels[step[new]], self.has
        )


FIELDS = (
    "prompt",
    "reward",
    "mask",
    "eos",
    "step",
    "steps",
    "kept_steps",
    "lengths",
)


def _index(batch: LoggedBatch, step: np.ndarray, group: np.ndarray) -> None:
    """Tells a batch its steps and groups, sorted codes 0.. int64 [R]."""
    rows = np.bincount(step)
    _put(batch, "step_index", torch.from_numpy(step))
    _put(batch, "step_count", len(rows))
    _put(batch, "step_rows", torch.from_numpy(rows))
    _put(batch, "prompt_index", torch.from_numpy(group))


def _put(batch: Batch, name: str, value: Any) -> None:
    """Sets what the batch would otherwise work out more slowly."""
    batch.__dict__[name] = value


def _renumbered(codes: np.ndarray) -> np.ndarray:
    """Codes 0.. in order of first appearance, [R]."""
    heads = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    found, unique = pd.factorize(codes[heads])
    if len(unique) == len(heads):
        found = np.arange(len(heads))
    lengths = np.diff(np.append(heads, len(codes)))
    return np.repeat(found, lengths).astype("int64")


def under(
    batch: LoggedBatch, settings: Settings, sizes: Tensor | None = None
) -> LoggedBatch:
    """The same batch under other settings, sharing all that is worked out;
    `sizes`, int64 [S], are the rows per prompt that strides are cut by."""
    twin = copy.copy(batch)
    for name in ("group_size", "large_enough"):
        twin.__dict__.pop(name, None)
    object.__setattr__(twin, "settings", settings)
    if sizes is not None:
        _put(twin, "group_size", sizes)
    return twin


def to_rollouts(frame: pd.DataFrame) -> Rollouts:
    """A canonical frame as rollouts.

    Raises GradebookError for a missing column or a value that a batch
    cannot hold, naming column and row.
    """
    for name in ("prompt", "reward"):
        if name not in frame.columns:
            raise GradebookError(key=name, expected="a column", found="none")
    if not len(frame):
        raise GradebookError(key="reward", expected="rows", found="none")
    step, labels = _steps(frame)
    if (np.diff(step) < 0).any():
        order = np.argsort(step, kind="stable")
        frame, step = frame.iloc[order], step[order]
    has = frozenset(c for c in CANONICAL if c in frame.columns)
    rows = len(frame)
    lengths = _whole(frame, "length")
    steps = _whole(frame, "steps", least=1)
    kept = _whole(frame, "kept_steps")
    ones = torch.ones((), dtype=torch.int64).expand(rows)
    if steps is None:
        steps = ones if kept is None else kept.clamp(min=1)
    kept = steps if kept is None else kept
    if bool((kept > steps).any()):
        row = int((kept > steps).int().argmax())
        raise GradebookError(
            key="kept_steps",
            row=row,
            expected="at most the row's steps",
            found=str(int(kept[row])),
        )
    always = torch.ones((), dtype=torch.bool).expand(rows)
    eos = _flags(frame, "eos")
    batch = _batch(
        reward=torch.from_numpy(_finite(frame, "reward")),
        mask=(always if lengths is None else lengths > 0)[:, None],
        eos=always if eos is None else eos,
        step=torch.from_numpy(step),
        steps=steps,
        kept_steps=kept,
        lengths=lengths,
    )
    _index(batch, step, _groups(step, frame))
    if "advantage" in has:
        advantage = _numbers(frame, "advantage")
    else:
        advantage = np.full(len(frame), np.nan)
    return Rollouts(batch, advantage, labels, has)


def _batch(**columns: Tensor | None) -> LoggedBatch:
    """A batch of columns that were checked here already: a large log has
    no time to check them twice."""
    batch = object.__new__(LoggedBatch)
    for name in FIELDS:
        _put(batch, name, columns.get(name))
    _put(batch, "prompt", columns["step"])
    _put(batch, "settings", Settings())
    _put(batch, "logp", None)
    _put(batch, "ref_logp", None)
    return batch


def _finite(frame: pd.DataFrame, name: str) -> np.ndarray:
    """float64 [R]. Raises GradebookError naming the row."""
    values = _numbers(frame, name)
    _refuse(~np.isfinite(values), frame, name, "a finite number")
    return values


def _refuse(
    bad: np.ndarray, frame: pd.DataFrame, name: str, expected: str
) -> None:
    """Raises GradebookError naming the first bad row, bool [R], if any."""
    if bad.any():
        row = int(bad.argmax())
        raise GradebookError(
            key=name,
            row=row,
            expected=expected,
            found=shown(frame[name].iloc[row]),
        )


def _steps(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Step codes int64 [R] in order of first appearance, and labels."""
    if "step" not in frame.columns:
        return np.zeros(len(frame), dtype="int64"), np.zeros(1, "int64")
    values = frame["step"].to_numpy()
    if values.dtype.kind in "iu":
        heads = np.flatnonzero(np.diff(values, prepend=values[:1] - 1))
        found, labels = pd.factorize(values[heads])
        lengths = np.diff(np.append(heads, len(values)))
        return np.repeat(found, lengths).astype("int64"), labels
    codes, labels = pd.factorize(frame["step"], use_na_sentinel=False)
    return codes.astype("int64"), np.asarray(labels)


def _groups(step: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
    """Group codes int64 [R], one for each (step, prompt)."""
    values = frame["prompt"].to_numpy()
    if values.dtype.kind not in "iu":
        values = pd.factorize(frame["prompt"], use_na_sentinel=False)[0]
    values = values.astype("int64", copy=False)
    new = np.empty(len(step), dtype=bool)
    new[0] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    new[1:] |= step[1:] != step[:-1]
    heads = np.flatnonzero(new)
    prompts = pd.factorize(values[heads])[0]
    pairs = step[heads] * (len(heads) + 1) + prompts
    found = pd.factorize(pairs)[0].astype("int64")
    return np.repeat(found, np.diff(np.append(heads, len(step))))


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """float64 [R]. Raises GradebookError naming the row."""
    column = frame[name]
    if column.dtype.kind in "fiub":
        return np.array(column, dtype="float64")
    values = pd.to_numeric(column, errors="coerce").to_numpy("float64")
    wrong = np.isnan(values) & column.notna().to_numpy()
    _refuse(wrong, frame, name, "a number")
    return values


def _whole(frame: pd.DataFrame, name: str, least: int = 0) -> Tensor | None:
    if name not in frame.columns:
        return None
    values = _numbers(frame, name)
    bad = ~np.isfinite(values) | (values != np.round(values))
    bad |= (values < least) | (values > 2**31)
    _refuse(bad, frame, name, f"a whole number of {least} or more")
    return torch.from_numpy(values.astype("int64"))


def _flags(frame: pd.DataFrame, name: str) -> Tensor | None:
    if name not in frame.columns:
        return None
    values = _numbers(frame, name)
    bad = (values != 0) & (values != 1)
    _refuse(bad, frame, name, "true or false")
    return torch.from_numpy(values == 1)
