"""Logged steps: the rows of whole steps as one batch, with the advantages
that were logged. Letters: R rows, S steps, G groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch, codes
from gradebook.core.columns import of_kind
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd


@dataclass(frozen=True, eq=False)
class LoggedBatch(Batch):
    """A batch of rows that stand together by step, with response lengths
    in place of a token matrix.

    lengths     int64 [R] unmasked tokens of the row, 0 where it was rejected
    all_tokens  int64 [R] unmasked tokens of the row
    """

    lengths: Any = None
    all_tokens: Any = None

    def __post_init__(self) -> None:
        """Checks nothing: the columns were checked when the log was read."""

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [R] unmasked tokens of the row: its response length."""
        return self.lengths

    @cached_property
    def width(self) -> Tensor:
        """int64 [S] the step's padded width: its longest response."""
        longest = torch.ones_like(self.step_rows)
        return longest.scatter_reduce(0, self.step_index, self.tokens, "amax")


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows that share step and prompt, int64 [G] each: the first row,
    how many rows there are, and the step's number."""

    first: np.ndarray
    size: np.ndarray
    step: np.ndarray


@dataclass(frozen=True, eq=False)
class LoggedSteps:
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
    def rows(self) -> int:
        return len(self.advantage)

    @cached_property
    def step_count(self) -> int:
        return len(self.labels)

    @cached_property
    def step_of(self) -> np.ndarray:
        """int64 [R], from 0."""
        return self.batch.step_index.numpy()

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 [S] first row of each step."""
        rows = self.batch.step_rows.numpy()
        return np.cumsum(rows) - rows

    @cached_property
    def groups(self) -> Groups:
        code = self.batch.prompt_index.numpy()
        size = np.bincount(code)
        first = np.empty_like(size)
        first[code[::-1]] = np.arange(len(code))[::-1]
        return Groups(first, size, self.step_of[first])

    def worst(self, values: np.ndarray) -> np.ndarray:
        """Largest of each step's values, [S]."""
        return np.maximum.reduceat(values, self.starts)

    def first_at(self, values: np.ndarray, worst: np.ndarray) -> np.ndarray:
        """int64 [S] the first row of each step that has its `worst`."""
        hit = np.flatnonzero(values == worst[self.step_of])
        step = self.step_of[hit]
        return hit[np.unique(step, return_index=True)[1]]

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of each step's values, [S]; flags are counted."""
        return np.add.reduceat(values * 1, self.starts)

    def of_steps(self, steps: np.ndarray) -> LoggedSteps:
        """Only the rows of `steps`, bool [S]."""
        if steps.all():
            return self
        first, rows = self.starts[steps], self.batch.step_rows.numpy()[steps]
        moved = first - (np.cumsum(rows) - rows)
        return self.of_rows(np.arange(rows.sum()) + np.repeat(moved, rows))

    def of_rows(self, at: np.ndarray) -> LoggedSteps:
        """Only the rows `at`, int64."""
        cells = {f.name: getattr(self.batch, f.name) for f in fields(self.batch)}
        columns = {n: v.numpy()[at] for n, v in cells.items() if isinstance(v, Tensor)}
        step = columns["step"]
        new = np.diff(step, prepend=-1) != 0
        columns |= {"step": np.cumsum(new) - 1, "prompt": codes(columns["prompt"])}
        tensors: dict[str, Any] = {n: torch.from_numpy(v) for n, v in columns.items()}
        labels = self.labels[step[new]]
        return LoggedSteps(LoggedBatch(**tensors), self.advantage[at], labels, self.has)


def to_logged(table: Mapping[str, Any] | pd.DataFrame) -> LoggedSteps:
    """Canonical columns, their cells checked, as logged steps. Raises
    GradebookError for a missing column, or no rows."""
    cells = {name: np.asarray(table[name]) for name in table}
    for name in ("prompt", "reward"):
        if name not in cells:
            raise GradebookError(key=name, expected="a column", found="none")
    rows = len(cells["reward"])
    if not rows:
        raise GradebookError(key="reward", expected="rows", found="none")
    names = cells.get("step", np.zeros(rows, dtype="int64"))
    step = codes(names)
    if (np.diff(step) < 0).any():
        order = np.argsort(step, kind="stable")
        cells = {name: values[order] for name, values in cells.items()}
        step, names = step[order], names[order]
    prompt = codes(cells["prompt"])
    group = torch.from_numpy(codes(step * (prompt.max() + 1) + prompt))
    ones = torch.ones_like(group)
    columns: dict[str, Any] = {
        "length": ones,
        "rollout": torch.arange(rows),
        "rank": ones * 0,
        "text": group,
        **dict.fromkeys(of_kind("flag"), ones),
    }
    for name in {*cells} - {"step", "prompt", "reward", "advantage"}:
        is_label = name in of_kind("label", "index")
        values = codes(cells[name]) if is_label else cells[name].astype("int64")
        columns[name] = torch.from_numpy(values)
    columns |= {name: columns[name].bool() for name in of_kind("flag")}
    lengths = columns.pop("length")
    columns.setdefault("all_tokens", lengths)
    columns.setdefault("steps", columns.get("kept_steps", ones).clamp(min=1))
    columns.setdefault("kept_steps", columns["steps"])
    batch = LoggedBatch(
        prompt=group,
        reward=torch.from_numpy(cells["reward"].astype("float64")),
        mask=(lengths > 0)[:, None],
        lengths=lengths,
        step=torch.from_numpy(step),
        **columns,
    )
    advantage = cells.get("advantage", np.full(rows, np.nan)).astype("float64")
    labels = names[np.diff(step, prepend=-1) != 0]
    return LoggedSteps(batch, advantage, labels, frozenset(cells))
