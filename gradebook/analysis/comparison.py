"""Two traces of one batch: where they differ, and which rows flip."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradebook.bugs import Swap, swapped
from gradebook.cases.state import State
from gradebook.core import formatting
from gradebook.core.batch import Batch
from gradebook.engine.loss import learning_tokens, token_weight
from gradebook.engine.pipeline import CORRECT, STAGES, Trace, run

ROW_STAGES = STAGES[:-1]
"""The stages with one result a row, in order."""


def same(a: Tensor, b: Tensor) -> Tensor:
    """Elementwise: the same flag or number, or floats that print alike
    (`gradebook.core.formatting`). bool."""
    return formatting.same(a, b) if a.is_floating_point() else a == b


@dataclass(frozen=True, eq=False)
class Comparison:
    """A batch through both engines.

    >>> batch = Batch(prompt=[0, 0, 1, 1, 1], reward=[1, 3, 9, 10, 30])
    >>> compare(swapped(["whole_batch"]), batch).flips.tolist()
    [False, True, False, False, False]
    """

    batch: Batch
    correct: Trace
    faulty: Trace

    @property
    def flips(self) -> Tensor:
        """The faulty advantage has the other sign. bool [R]."""
        return formatting.flips(self.correct.advantage, self.faulty.advantage)

    def differs(self, stage: str) -> Tensor:
        """The stage's results differ, or the gradient at a token. bool [R]; bool
        scalar for a loss."""
        a, b = getattr(self.correct, stage), getattr(self.faulty, stage)
        if a is None or b is None:
            return torch.zeros(self.batch.rows, dtype=torch.bool)
        differs = ~same(a, b)
        return differs.any(-1) if differs.dim() == 2 else differs

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that ran, in order: the loss only with logp."""
        return ROW_STAGES if self.correct.loss is None else STAGES

    @cached_property
    def diverging(self) -> tuple[str, ...]:
        """The stages whose results differ, in order."""
        return tuple(s for s in self.stages if bool(self.differs(s).any()))

    @property
    def agree(self) -> bool:
        """Both engines give the same advantages, loss and gradient."""
        results = ("advantage", "loss", "gradient")
        return not any(bool(self.differs(name).any()) for name in results)


def compare(bug: Swap, batch: Batch) -> Comparison:
    """Both engines on `batch`. Raises GradebookError where one cannot."""
    return Comparison(batch, run(CORRECT, batch), run(bug.engine, batch))


def voters(batch: Batch, trace: Trace, row: int) -> list[int]:
    """The rows whose scores entered the row's baseline, in order. Where the row is
    left out, so is the vote that speaks for it: its own, or that of its rollout."""
    baseline = batch.settings.baseline
    if baseline == "batch_mean":
        peers = batch.step_index == batch.step_index[row]
        return (peers & trace.counted).nonzero().flatten().tolist()
    if baseline == "none" or int(trace.group[row]) < 0:
        return []
    peers = (trace.group == trace.group[row]) & trace.counted
    if baseline == "leave_one_out" and bool(trace.counted[row]):
        peers = peers & (torch.arange(batch.rows) != row)
    elif baseline == "leave_one_out":
        peers = peers & (batch.rollout_index != batch.rollout_index[row])
    return peers.nonzero().flatten().tolist()


def row_weight(batch: Batch, trace: Trace, row: int) -> float:
    """How much each trained token of the row weighs in the loss; 0 for a row that
    has no advantage."""
    here = ~trace.advantage.isnan()
    if not bool(here[row]):
        return 0.0
    within = batch.select(here)
    learns = learning_tokens(within, trace.trained[here])
    place = int(here[:row].sum())
    return float(token_weight(within, learns, within.step_index)[place])


def compared(state: State) -> Comparison:
    """Both engines on the state's batch. Raises GradebookError where one cannot."""
    return compare(swapped(state.bugs), state.batch())
