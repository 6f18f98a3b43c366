"""Two traces of one batch: the stages in which they differ, the rows that flip, and
how far each row's reward moves each advantage."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.bugs import Swap, swapped
from gradebook.cases.state import State
from gradebook.core import formatting
from gradebook.core.batch import Batch
from gradebook.core.vocabulary import BASELINES, NOTHING, STEP
from gradebook.engine.pipeline import CHAPTERS, CORRECT, SLOPES, Engine, Trace, run

ROW_STAGES = CHAPTERS["rows"]
"""The stages of a row, in order."""


def same(a: Tensor, b: Tensor) -> Tensor:
    """Elementwise: the same flag or number, or floats that print alike
    (`gradebook.core.formatting`). bool."""
    return formatting.same(a, b) if a.is_floating_point() else a == b


@dataclass(frozen=True, eq=False)
class Comparison:
    """A batch through both engines, as `gradebook.compare` makes it.

    correct, faulty  each engine's Trace, with every stage's result

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
        """The stage's results differ, or at a token its slopes. bool [R]; bool
        scalar for a loss."""
        differs = self._differs(
            getattr(self.correct, stage), getattr(self.faulty, stage)
        )
        if stage in SLOPES:
            slopes = self.correct.slope(stage), self.faulty.slope(stage)
            return differs | self._differs(*slopes)
        return differs

    def _differs(self, a: Tensor | None, b: Tensor | None) -> Tensor:
        if a is None or b is None:
            return torch.zeros(self.batch.rows, dtype=torch.bool)
        differs = ~same(a, b)
        return differs.any(-1) if differs.dim() == 2 else differs

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages to show, in order: those of rows; those of tokens, if tokens of a
        row have different numbers; those of the loss, with logp."""
        stages = ROW_STAGES
        by_token = self.differs("token_advantage") & ~self.differs("advantage")
        if self.batch.settings.credit != "row" or bool(by_token.any()):
            stages += CHAPTERS["tokens"]
        if self.correct.loss is None:
            return stages
        of_loss = [s for s in CHAPTERS["loss"] if getattr(self.correct, s) is not None]
        return (*stages, *of_loss)

    @cached_property
    def diverging(self) -> tuple[str, ...]:
        """The stages whose results differ, in order."""
        return tuple(s for s in self.stages if bool(self.differs(s).any()))

    @property
    def agree(self) -> bool:
        """Both engines give the same advantages, of rows and tokens, loss and
        gradient."""
        results = ("advantage", "token_advantage", "loss", "gradient")
        return not any(bool(self.differs(name).any()) for name in results)


def compare(bug: Swap, batch: Batch) -> Comparison:
    """Both engines on `batch`. Raises GradebookError if one cannot."""
    return Comparison(batch, run(CORRECT, batch), run(bug.engine, batch))


def voters(batch: Batch, trace: Trace, row: int) -> list[int]:
    """The rows whose scores entered the row's baseline, in order. If the row is
    left out, so is the vote that speaks for it: its own, or that of its rollout."""
    baseline = BASELINES[batch.settings.baseline]
    if baseline.compares == NOTHING:
        return []
    if baseline.compares == STEP:
        peers = batch.step_index == batch.step_index[row]
    elif int(trace.group[row]) < 0:
        return []
    else:
        peers = trace.group == trace.group[row]
    peers = peers & trace.counted
    if baseline.others and bool(trace.counted[row]):
        peers = peers & (torch.arange(batch.rows) != row)
    elif baseline.others:
        peers = peers & (batch.rollout_index != batch.rollout_index[row])
    return peers.nonzero().flatten().tolist()


def by_row(batch: Batch, trace: Trace, stage: str) -> Tensor:
    """A stage's result for each row, of a stage of tokens the sum over the row's
    unmasked tokens: of numbers float, of flags int64. [R]."""
    value = getattr(trace, stage)
    if value.dim() == 1:
        return value
    return torch.where(batch.mask, value, 0).sum(-1)


def push(batch: Batch, trace: Trace) -> Tensor:
    """How strongly a step pushes each token: minus the gradient of the loss, times
    the unmasked tokens of the token's step, counted before any stage. Above 0 the
    token is made more likely. Without logp it is the token's advantage. float [R, T].

    The number of tokens is the same for both engines, so that two denominators can
    be told apart. On policy, if the loss is a mean over those tokens, the push is the
    advantage.

    >>> batch = Batch([0, 0], [1, 0], logp=[[-1.0], [-1.0]])
    >>> push(batch, run(CORRECT, batch)).round(decimals=3).tolist()
    [[0.707], [-0.707]]
    """
    if trace.gradient is None:
        return trace.token_advantage
    steps = torch.zeros(batch.step_count, dtype=torch.int64)
    steps = steps.index_add(0, batch.step_index, batch.tokens)
    return -trace.gradient * steps[batch.step_index][:, None]


def furthest(both: Comparison) -> tuple[int, int]:
    """The row and the token of it on which the engines are furthest apart: of rows by
    the advantage if it differs, else by the push on their tokens."""
    gap = (both.correct.advantage - both.faulty.advantage).abs().nan_to_num(0, 0, 0)
    correct, faulty = (push(both.batch, t) for t in (both.correct, both.faulty))
    tokens = (correct - faulty).abs().nan_to_num(0, 0, 0)
    row = int((gap if both.differs("advantage").any() else tokens.amax(-1)).argmax())
    return row, int(tokens[row].argmax())


def compared(state: State) -> Comparison:
    """Both engines on the state's batch. Raises GradebookError if one cannot."""
    return compare(swapped(state.bugs), state.batch())


# Who moves whom: each row's reward changed, and every advantage again. By a finite
# change: a derivative is almost 0 if a deviation saturates, and explodes if rewards are
# equal. In a matrix [R, R] the first index is the row that moves, the second the row
# whose reward is replaced.


class Influences(NamedTuple):
    """Of both engines, how each row's advantage moves when another row's reward is
    replaced: the advantage less the one with the other reward, NaN in the line of a
    row without an advantage; and what of it is a leak. float [R, R]."""

    correct: Tensor
    faulty: Tensor
    leaked: Tensor


def influences(engine: Engine, batch: Batch) -> Influences:
    """Raises GradebookError if the correct engine or `engine` cannot run."""
    correct, _ = influence(CORRECT, batch)
    faulty, advantage = influence(engine, batch)
    return Influences(correct, faulty, leaks(batch, faulty - correct, advantage))


def leaks(batch: Batch, gap: Tensor, advantage: Tensor) -> Tensor:
    """The gap, faulty minus correct influence, across prompts and in the column of a
    row without credit; 0 elsewhere, and for a gap too small to show in the printed
    faulty advantage, float [R]. float [R, R].

    It is the difference, since some estimators couple prompts by design.
    """
    suspect = ~own_prompt(batch) | ~CORRECT.credited(batch)
    gap, now = gap.nan_to_num(0, 0, 0), advantage[:, None].nan_to_num(0, 0, 0)
    return torch.where(suspect & ~same(now, now - gap), gap, 0)


def influence(engine: Engine, batch: Batch) -> tuple[Tensor, Tensor]:
    """The map, float [R, R], and the advantages as they are, float [R]."""
    rewards = batch.reward.repeat(batch.rows + 1, 1)
    rewards[1:].diagonal().copy_(replacements(batch))
    bare = batch.of_rows().copies(batch.rows + 1)
    advantage = run(engine, replace(bare, reward=rewards.reshape(-1))).advantage
    advantage = advantage.reshape(rewards.shape).to(rewards.dtype)
    return advantage[0][:, None] - advantage[1:].T, advantage[0]


def replacements(batch: Batch) -> Tensor:
    """What each reward is changed to: the mean of the raw rewards of its siblings, the
    other rows of its prompt and step that count in the correct engine, and exactly
    their reward if they are equal; 0 without siblings. float [R]."""
    if not batch.rows:
        return batch.reward
    counted = CORRECT.counted(batch, CORRECT.credited(batch))
    siblings = own_prompt(batch).fill_diagonal_(False) & counted
    reward = batch.reward.double()
    mean = torch.where(siblings, reward, 0).sum(-1) / siblings.sum(-1).clamp(min=1)
    lowest = torch.where(siblings, reward, torch.inf).amin(-1)
    value = mean.clamp(lowest, torch.where(siblings, reward, -torch.inf).amax(-1))
    return torch.where(siblings.any(-1), value, 0).to(batch.reward.dtype)


def own_prompt(batch: Batch) -> Tensor:
    """Both rows are of one prompt and step: the true blocks. bool [R, R]."""
    return batch.prompt_index[:, None] == batch.prompt_index
