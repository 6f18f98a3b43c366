"""One batch under every estimator, through both engines: which of them let
the bug through."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, OF_ESTIMATOR
from gradebook.engine.pipeline import CORRECT, Engine, run


@dataclass(frozen=True, eq=False)
class Line:
    """A batch under one estimator; `wrong` where it cannot be computed."""

    estimator: str
    comparison: Comparison | None
    wrong: GradebookError | None = None

    @property
    def correct(self) -> Tensor:
        """The correct engine's advantages. float [R], empty when wrong."""
        return self._advantage("correct")

    @property
    def faulty(self) -> Tensor:
        """The faulty engine's advantages. float [R], empty when wrong."""
        return self._advantage("faulty")

    @property
    def rows(self) -> list[int]:
        """The rows whose advantage differs, in order."""
        if self.comparison is None:
            return []
        return _where(self.comparison.differs("advantage"))

    @property
    def flips(self) -> list[int]:
        """The rows whose advantage has the other sign, in order."""
        return [] if self.comparison is None else _where(self.comparison.flips)

    @property
    def gradient_rows(self) -> list[int]:
        """The rows whose gradient differs, in order; none without logp."""
        if self.comparison is None:
            return []
        return _where(self.comparison.gradient_differs)

    @property
    def largest(self) -> float:
        """The largest difference of an advantage, 0 where none differs;
        infinite where one engine has no value for a row."""
        apart = (self.faulty - self.correct).abs()[self.rows]
        sizes = apart.nan_to_num(nan=math.inf, posinf=math.inf).tolist()
        return max(sizes, default=0.0)

    @property
    def leaks(self) -> bool:
        """The bug shows: an advantage, the loss or a gradient differs."""
        return self.comparison is not None and not self.comparison.agree

    def _advantage(self, side: str) -> Tensor:
        if self.comparison is None:
            return torch.zeros(0)
        return getattr(self.comparison, side).advantage


def matrix(
    batch: Batch, faulty: Engine, estimators: Iterable[str] = ESTIMATORS
) -> tuple[Line, ...]:
    """`batch` under each named estimator; what an estimator does not set
    stays as the batch has it. One run an estimator and side."""
    return tuple(_line(batch, faulty, name) for name in estimators)


def _line(batch: Batch, faulty: Engine, estimator: str) -> Line:
    chosen = {name: ESTIMATORS[estimator][name] for name in OF_ESTIMATOR}
    try:
        under = batch.under(replace(batch.settings, **chosen))
        traces = run(CORRECT, under), run(faulty, under)
    except GradebookError as error:
        return Line(estimator, None, error)
    return Line(estimator, Comparison(under, *traces))


def _where(rows: Tensor) -> list[int]:
    return rows.nonzero().flatten().tolist()
