"""Logged steps: the rows of whole steps as one batch, with the advantages
that were logged. Letters: R rows, S steps, G groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gradebook.core.batch import Batch, codes, completed
from gradebook.core.columns import of_kind
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.tolerance import BASE, EXACT

PART = 50_000
"""About so many rows are computed at once: their temporaries stay small."""


@dataclass(frozen=True, eq=False)
class LoggedBatch(Batch):
    """Rows that are together by step, with how many unmasked tokens each has in
    place of a mask, int64 [R]: `lengths` is 0 if a row was rejected. Steps, and
    prompts within them, are numbered as they appear."""

    lengths: Any = None
    all_tokens: Any = None

    def __post_init__(self) -> None:
        """Checks nothing: the columns were checked when the log was read."""

    @property
    def step_index(self) -> Tensor:
        return self.step

    @property
    def prompt_index(self) -> Tensor:
        return self.prompt

    @property
    def has_tokens(self) -> Tensor:
        """A row may have a vote without a token to weigh, as a copy's rollout has."""
        return self.mask.any(-1)

    @property
    def tokens(self) -> Tensor:
        return self.lengths

    @cached_property
    def width(self) -> Tensor:
        """int64 [S] the step's padded width: its longest response."""
        longest = torch.ones_like(self.rows_per_step)
        return longest.scatter_reduce(0, self.step_index, self.tokens, "amax")

    def under(self, settings: Settings) -> Self:
        """The same rows with other settings; what was worked out of the rows alone
        is kept."""
        other = copy(self)
        object.__setattr__(other, "settings", settings)
        for name in ("group_size", "prompts_per_step", "micro_batch"):
            vars(other).pop(name, None)  # these were worked out of the settings too
        return other

    def select(self, keep: Any) -> Self:
        rows = super().select(keep)
        labels = rows.step.numpy(), rows.prompt.numpy()
        step, prompt = (torch.from_numpy(codes(label)) for label in labels)
        return replace(rows, step=step, prompt=prompt)


@dataclass(frozen=True)
class Several:
    """How the rewards of several functions were made into one before anything else:
    each normalized in its group, weighted and summed (GDPO).

    weights  one for each function
    eps      added to each function's deviation in its group (ddof 1)
    """

    weights: tuple[float, ...]
    eps: float


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
    advantage  float64 [R] as logged, NaN if the log has none
    labels     [S] the steps' own names
    has        the canonical columns that the log has
    several    how the reward was made of several, if that is more than a sum
    names      int64 [R] the log's prompt of each row, the same number in each step
    """

    batch: LoggedBatch
    advantage: np.ndarray
    labels: np.ndarray
    has: frozenset[str]
    several: Several | None = None
    names: np.ndarray | None = None

    @property
    def rows(self) -> int:
        return len(self.advantage)

    @property
    def step_count(self) -> int:
        return len(self.labels)

    @property
    def step_of(self) -> np.ndarray:
        """int64 [R], from 0."""
        return self.batch.step.numpy()

    @property
    def prompt(self) -> np.ndarray:
        """int64 [R], from 0 over all steps."""
        return self.batch.prompt.numpy()

    @property
    def reward(self) -> np.ndarray:
        return self.batch.reward.numpy()

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 [S] first row of each step."""
        return np.flatnonzero(np.diff(self.step_of, prepend=-1))

    @cached_property
    def groups(self) -> Groups:
        size = np.bincount(self.prompt)
        first = np.empty_like(size)
        first[self.prompt[::-1]] = np.arange(self.rows)[::-1]
        return Groups(first, size, self.step_of[first])

    @cached_property
    def quiet(self) -> np.ndarray:
        """bool [S]: the rewards of every prompt are equal, and all advantages
        are 0. Such a step fits every computation, so it decides nothing."""
        logged = np.nan_to_num(np.abs(self.advantage), nan=1.0)
        first = self.reward[self.groups.first][self.prompt]
        away = np.abs(self.reward - first) - DUST * np.abs(self.reward)
        return (self.worst(logged) <= BASE) & (self.worst(away) <= 0)

    @cached_property
    def has_zero_advantages(self) -> np.ndarray:
        """bool [S]: all advantages of the step are 0; of none is there one."""
        logged = np.nan_to_num(np.abs(self.advantage), nan=1.0)
        return self.worst(logged) <= EXACT

    def worst(self, values: np.ndarray) -> np.ndarray:
        """Largest of each step's values, [S]."""
        return np.maximum.reduceat(values, self.starts)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of each step's values, [S]; flags are counted."""
        return np.add.reduceat(values * 1, self.starts)

    def rows_of(self, steps: np.ndarray) -> Any:
        """The rows of `steps`, bool [S]: their numbers, or a slice where they stand
        together, which copies nothing."""
        edges = np.flatnonzero(np.diff(steps, prepend=False, append=False))
        if len(edges) == 2:
            return slice(*np.append(self.starts, self.rows)[edges].tolist())
        return np.flatnonzero(steps[self.step_of])

    def of_steps(self, steps: np.ndarray) -> LoggedSteps:
        """Only the rows of `steps`, bool [S]."""
        if steps.all():
            return self
        rows = self.rows_of(steps)
        batch = self.batch.select(rows)
        advantage, labels = self.advantage[rows], self.labels[steps]
        names = None if self.names is None else self.names[rows]
        changed = replace(self, batch=batch, advantage=advantage, labels=labels)
        return replace(changed, names=names)

    def of_rows(self, keep: np.ndarray) -> LoggedSteps:
        """Only the rows `keep`, bool [R], at least one."""
        rows = np.flatnonzero(keep)
        return replace(
            self,
            batch=self.batch.select(torch.from_numpy(rows)),
            advantage=self.advantage[rows],
            labels=self.labels[np.unique(self.step_of[rows])],
            names=None if self.names is None else self.names[rows],
        )

    def parts(self) -> Iterator[np.ndarray]:
        """Neighbouring steps of about PART rows, bool [S], together all."""
        part = self.starts // PART
        return (part == each for each in np.unique(part))


def to_logged(table: Mapping[str, Any] | pd.DataFrame) -> LoggedSteps:
    """Canonical columns, their cells checked and the rows of a step together, as
    logged steps, of one row or more. Raises GradebookError without prompts."""
    cells = {name: np.asarray(table[name]) for name in table}
    if "prompt" not in cells:
        expected = "a column of prompts or group ids, or a group size"
        raise GradebookError(key="prompt", expected=expected, found="none")
    rows = len(cells["reward"])
    names = cells.get("step", np.zeros(rows, dtype="int64"))
    step, prompt = codes(names), codes(cells["prompt"])
    columns = {
        "prompt": codes(step * (prompt.max() + 1) + prompt),
        "step": step,
        "reward": cells["reward"].astype("float64"),
    }
    flags = of_kind("flag")
    for name in {*cells} - {"step", "prompt", "reward", "advantage"}:
        if name in of_kind("label", "index"):
            columns[name] = codes(cells[name])
        else:
            columns[name] = cells[name].astype(bool if name in flags else "int64")
    tensors = {name: torch.from_numpy(values) for name, values in columns.items()}
    lengths = tensors.pop("length", torch.tensor(1).expand(rows))
    whole = tensors.pop("all_tokens", lengths)
    tensors["mask"] = (lengths > 0)[:, None]
    of_batch: dict[str, Any] = dict(completed(tensors))
    batch = LoggedBatch(**of_batch, lengths=lengths, all_tokens=whole)
    advantage = cells.get("advantage", np.full(rows, np.nan)).astype("float64")
    labels = names[np.diff(step, prepend=-1) != 0]
    return LoggedSteps(batch, advantage, labels, frozenset(cells), names=prompt)
