"""Sums and means over groups of rows, by one scatter. Rows that must not vote are sent
to segment 0, which stays empty."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradebook.core.batch import Batch

FLAT = 1e-8
"""A spread of at most this is zero (torch.isclose, as TRL tests it)."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Rows by segment. Segment 0 belongs to rows that are in no group."""

    of: Tensor  # int64 [R] the segment of each row
    counted: Tensor  # bool [R] the row enters its segment's statistics

    @cached_property
    def votes(self) -> Tensor:
        """int64 [R] the segment whose statistics the row enters, or 0."""
        return self.of * self.counted

    @cached_property
    def bins(self) -> int:
        """G + 1, segments with the empty one."""
        return int(self.of.max()) + 1 if self.of.numel() else 1

    @cached_property
    def n(self) -> Tensor:
        """int64 [G + 1] rows that vote in each segment."""
        return self.sum(torch.ones_like(self.of))

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the voting rows' values, [G + 1]."""
        total = values.new_zeros(self.bins).index_add_(0, self.votes, values)
        total[0] = 0
        return total

    def max(self, values: Tensor) -> Tensor:
        """Largest of the voting rows' values, -inf for none, [G + 1]."""
        lowest = values.new_full((self.bins,), -torch.inf)
        return lowest.scatter_reduce_(0, self.votes, values, "amax")

    def mean(self, values: Tensor) -> Tensor:
        """Mean of the voting rows' values, 0 for none, [G + 1]."""
        return self.sum(values) / self.n.clamp(min=1)

    def squares(self, values: Tensor) -> Tensor:
        """Sum of (value - mean)^2 over the voting rows, [G + 1]."""
        residual = values - self.at_rows(self.mean(values))
        return self.sum(residual * residual)

    def at_rows(self, per_segment: Tensor) -> Tensor:
        """Each row's segment value, [R]."""
        return per_segment.index_select(0, self.of)


def by_group(group: Tensor, counted: Tensor) -> Segments:
    """Group -1 is in no segment."""
    return Segments(group + 1, counted)


def all_rows(batch: Batch) -> Tensor:
    """True for every row. bool [R]."""
    return torch.ones(batch.rows, dtype=torch.bool)


def by_step(batch: Batch, counted: Tensor) -> Segments:
    return by_group(batch.step_index, counted)


@dataclass(frozen=True, eq=False)
class Others:
    """The votes of a row's group without the vote that speaks for the row:
    its own if the row counts, else that of its rollout; their number
    `n`, int64 [R], and their `sum`, [R]."""

    groups: Segments
    vote: Tensor  # int64 [R] the row whose vote speaks for the row
    left_out: Tensor  # bool [R] that vote is one of the group's

    @property
    def n(self) -> Tensor:
        return self.groups.at_rows(self.groups.n) - self.left_out.long()

    def sum(self, values: Tensor) -> Tensor:
        votes = torch.where(self.left_out, values[self.vote], 0)
        return self.groups.at_rows(self.groups.sum(values)) - votes


def others(batch: Batch, groups: Segments) -> Others:
    place = torch.arange(batch.rows)
    voter = first_row(batch.rollout_index, groups.counted)
    votes = groups.counted | (voter == batch.rows)
    vote = torch.where(votes, place, voter)
    return Others(groups, vote, groups.votes[vote] == groups.of)


def first_row(label: Tensor, candidates: Tensor) -> Tensor:
    """The first row among the rows `candidates`, bool [R], that shares the row's
    label, int64 [R] from 0 to R; R if there is none. int64 [R]."""
    rows = len(label)
    place = torch.where(candidates, torch.arange(rows), rows)
    lowest = place.new_full((rows + 1,), rows)
    return lowest.scatter_reduce_(0, label, place, "amin")[label]


def is_first(label: Tensor, candidates: Tensor) -> Tensor:
    """The row is the first of its label among the rows `candidates`. bool [R]."""
    return candidates & (first_row(label, candidates) == torch.arange(len(label)))


def weighted_mean(of: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """Weighted mean over the rows that share the number `of`, int64 [R].
    [R]; 0 if there is no weight."""
    sets = by_group(of, weight > 0)
    weight = weight.to(values.dtype)
    total = sets.sum(weight)
    mean = sets.sum(values * weight) / torch.where(total > 0, total, 1)
    return sets.at_rows(mean)
