"""Who moves whom: each row's reward changed, and every advantage again.

By a finite change, never by a derivative: a derivative is almost 0 where a
deviation saturates and explodes where rewards are equal. All changes of a
batch run as one batch of copies, each with training steps of its own.

In every matrix [R, R] the first index is the victim, the second the culprit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.differences import same
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, Engine, run


@dataclass(frozen=True, eq=False)
class Influence:
    """How each row's number moves when another row's reward is replaced.

    before  float [R] the row's advantage, or its KL gradient summed over
            its tokens, with the rewards as they are
    after   float [R, R] the same with the culprit's reward replaced
            (`replacements`)
    moved   float [R, R] the map
    """

    before: Tensor
    after: Tensor
    moved: Tensor


class Totals(NamedTuple):
    """Leaked influence by row, float [R] each, and the rows with the most
    of it; none where nothing leaks."""

    victims: Tensor
    culprits: Tensor
    victim: int | None
    culprit: int | None


@dataclass(frozen=True, eq=False)
class Influences:
    """The influence of both engines on the advantages of one batch."""

    batch: Batch
    correct: Influence
    faulty: Influence

    @cached_property
    def leaked(self) -> Tensor:
        """Faulty minus correct influence where a row has none to have:
        across prompts, and in the column of a row without credit. Else 0,
        also where the change does not show in the printed advantage.
        float [R, R].

        The difference, since some estimators couple prompts by design;
        elsewhere the correct influence is exactly 0 there.
        """
        silent = ~CORRECT.credited(self.batch)
        suspect = ~own_prompt(self.batch) | silent
        gap = (self.faulty.moved - self.correct.moved).nan_to_num(0, 0, 0)
        now = self.faulty.before[:, None].nan_to_num(0, 0, 0)
        return torch.where(suspect & ~same(now, now - gap), gap, 0)

    @property
    def leaks(self) -> Tensor:
        """The cell is a leak of the faulty engine. bool [R, R]."""
        return self.leaked != 0

    @property
    def totals(self) -> Totals:
        """Sums of |leak| over the map's rows and columns."""
        size = self.leaked.abs()
        victims, culprits = size.sum(1), size.sum(0)
        if not bool(size.any()):
            return Totals(victims, culprits, None, None)
        return Totals(victims, culprits, int(victims.argmax()), int(culprits.argmax()))


def influences(engine: Engine, batch: Batch) -> Influences:
    """Both maps: of the correct engine and of the faulty `engine`."""
    return Influences(batch, influence(CORRECT, batch), influence(engine, batch))


def influence(engine: Engine, batch: Batch) -> Influence:
    """Of the rewards on the advantages; a cell is A_i less A_i with reward
    j replaced.

    NaN in the line of a row without an advantage (no transition left, or
    its group was dropped). A row at its siblings' mean has no influence.
    Raises GradebookError where the engine cannot run.
    """
    reward = torch.cat((batch.reward[None], _replaced(batch)))
    found = advantages(engine, batch, reward)
    before, after = found[0], found[1:].T
    return Influence(before, after, before[:, None] - after)


def kl_influence(engine: Engine, batch: Batch) -> Influence:
    """Of the rewards on the KL part of d loss / d logp; a cell is the sum
    over the row's tokens of |change|.

    Unsigned, so that tokens that move in opposite ways do not cancel. In
    the correct engine a reward that makes its group flat takes the KL part
    away; with zero-std KL no reward ever touches it. Raises GradebookError
    without logp.
    """
    if batch.logp is None:
        raise GradebookError(key="logp", expected="values", found="none")
    reward = torch.cat((batch.reward[None], _replaced(batch)))
    found = run(engine, _copies(batch, reward)).kl_gradient
    assert found is not None  # there is a logp
    found = found.unflatten(0, reward.shape)
    moved = (found[0] - found[1:]).abs().sum(-1).T
    return Influence(found[0].sum(-1), found[1:].sum(-1).T, moved)


def replacements(batch: Batch) -> Tensor:
    """What each reward is changed to: the mean of the raw rewards of its
    siblings (`siblings_of`); 0 for a row that has none.

    float [R]. Equal siblings give exactly their reward, without rounding.
    """
    if not batch.rows:
        return batch.reward
    siblings = siblings_of(batch)
    reward = batch.reward.double()
    others = torch.where(siblings, reward, 0)
    mean = others.sum(-1) / siblings.sum(-1).clamp(min=1)
    lowest = torch.where(siblings, reward, torch.inf).amin(-1)
    highest = torch.where(siblings, reward, -torch.inf).amax(-1)
    value = torch.minimum(torch.maximum(mean, lowest), highest)
    value = torch.where(siblings.any(-1), value, 0)
    return value.to(batch.reward.dtype)


def siblings_of(batch: Batch) -> Tensor:
    """[i, j]: j is another row of i's prompt and step, and counts in the
    correct engine. bool [R, R]."""
    counted = CORRECT.counted(batch, CORRECT.credited(batch))
    return own_prompt(batch).fill_diagonal_(False) & counted


def own_prompt(batch: Batch) -> Tensor:
    """Both rows are of one prompt and step: the true blocks. bool [R, R]."""
    return batch.prompt_index[:, None] == batch.prompt_index


def advantages(engine: Engine, batch: Batch, reward: Tensor) -> Tensor:
    """Advantages under N sets of rewards, both float [N, R], in one run."""
    found = run(engine, _copies(_without_logp(batch), reward)).advantage
    return found.reshape(reward.shape).to(reward.dtype)


def derivative(engine: Engine, batch: Batch) -> Tensor:
    """d A_i / d r_j by automatic differentiation, [R, R]: the lesson.

    NaN where the root of a deviation is at 0, as automatic differentiation
    gives it, and in the line of a row without an advantage. Where the NaN
    only comes from 0 times infinity, on a row that cannot move, it is 0. An
    engine that rounds has the derivative of its formula, without the steps
    of rounding.
    """
    keep = batch.large_enough
    bare = _without_logp(batch.select(keep))
    rows = bare.rows
    reward = bare.reward.repeat(rows, 1).requires_grad_()
    with torch.enable_grad():
        a = run(engine, _copies(bare, reward)).advantage
        a = a.reshape(rows, rows).diagonal().nan_to_num(0, 0, 0).sum()
        if a.requires_grad:
            (found,) = torch.autograd.grad(a, reward)
        else:
            found = torch.zeros_like(reward)
    full = batch.reward.new_zeros((batch.rows, batch.rows))
    full[keep.nonzero(), keep.nonzero().T] = found.detach()
    # A bug may round to 8 bits: a smaller change could seem to move nothing.
    least = (batch.settings.eps or 1e-6) * 1e-3
    h = torch.diag((batch.reward.abs() / 16).clamp(min=least))
    up, down = (advantages(engine, batch, batch.reward + x) for x in (h, -h))
    still = (up == down).T
    full = torch.where(full.isnan() & still, 0, full)
    full[(batch.kept_steps == 0) | ~keep] = torch.nan
    return full


def _copies(batch: Batch, reward: Tensor) -> Batch:
    """A copy of `batch` for each line of rewards, float [N, R]. The rewards
    are set without a Batch's checks, which would cut off their gradient."""
    copies = batch.copies(len(reward))
    object.__setattr__(copies, "reward", reward.reshape(-1))
    return copies


def _replaced(batch: Batch) -> Tensor:
    """Line j: the rewards with reward j replaced. float [R, R]."""
    reward = batch.reward.repeat(batch.rows, 1)
    reward.diagonal().copy_(replacements(batch))
    return reward


def _without_logp(batch: Batch) -> Batch:
    """The batch for its advantages alone: no loss is computed."""
    if batch.logp is None:
        return batch
    return replace(batch, logp=None, ref_logp=None)
