"""Who moves whom: each row's reward changed, and every advantage again.

By a finite change: a derivative is almost 0 where a deviation saturates and
explodes where rewards are equal. In every matrix [R, R] the first index is the row
that moves, the second the row whose reward is replaced.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.formatting import same
from gradebook.engine.pipeline import CORRECT, Engine, run


class Influences(NamedTuple):
    """Of both engines, how each row's advantage moves when another row's reward is
    replaced: the advantage less the one with the other reward, NaN in the line of a
    row without an advantage; and what of it is a leak. float [R, R]."""

    correct: Tensor
    faulty: Tensor
    leaked: Tensor


def influences(engine: Engine, batch: Batch) -> Influences:
    """Raises GradebookError where the correct engine or `engine` cannot run."""
    correct, _ = influence(CORRECT, batch)
    faulty, advantage = influence(engine, batch)
    return Influences(correct, faulty, leaks(batch, faulty - correct, advantage))


def leaks(batch: Batch, gap: Tensor, advantage: Tensor) -> Tensor:
    """The gap, faulty minus correct influence, across prompts and in the column of a
    row without credit; 0 elsewhere, and where it does not show in the printed faulty
    advantage, float [R]. float [R, R].

    It is the difference, since some estimators couple prompts by design.
    """
    suspect = ~own_prompt(batch) | ~CORRECT.credited(batch)
    gap, now = gap.nan_to_num(0, 0, 0), advantage[:, None].nan_to_num(0, 0, 0)
    return torch.where(suspect & ~same(now, now - gap), gap, 0)


def influence(engine: Engine, batch: Batch) -> tuple[Tensor, Tensor]:
    """The map, float [R, R], and the advantages as they are, float [R]."""
    rewards = batch.reward.repeat(batch.rows + 1, 1)
    rewards[1:].diagonal().copy_(replacements(batch))
    bare = replace(batch, logp=None, ref_logp=None).copies(batch.rows + 1)
    advantage = run(engine, replace(bare, reward=rewards.reshape(-1))).advantage
    advantage = advantage.reshape(rewards.shape).to(rewards.dtype)
    return advantage[0][:, None] - advantage[1:].T, advantage[0]


def replacements(batch: Batch) -> Tensor:
    """What each reward is changed to: the mean of the raw rewards of its siblings, the
    other rows of its prompt and step that count in the correct engine, and exactly
    their reward where they are equal; 0 without siblings. float [R]."""
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
