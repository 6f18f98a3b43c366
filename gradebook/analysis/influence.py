"""Who moves whom: each row's reward changed, and every advantage again.

By a finite change, never by a derivative: a derivative is almost 0 where a
deviation saturates and explodes where rewards are equal. All changes of a
batch run as one, through stages that accept [..., R].

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


class Change(NamedTuple):
    """A row's advantage, or its KL gradient summed over its tokens, before
    and after a culprit's reward is `value`; `moved` is the map's cell."""

    before: float
    after: float
    value: float
    moved: float


class Totals(NamedTuple):
    """Leaked influence by row, float [R] each, and the rows with the most
    of it; none where nothing leaks."""

    victims: Tensor
    culprits: Tensor
    victim: int | None
    culprit: int | None


@dataclass(frozen=True, eq=False)
class Influences:
    """The influence maps of both engines on one batch, [R, R] each."""

    batch: Batch
    correct: Tensor
    faulty: Tensor
    size: Tensor  # float [R], the faulty advantages

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
        gap = (self.faulty - self.correct).nan_to_num(0, 0, 0)
        now = self.size[:, None].nan_to_num(0, 0, 0)
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
        return Totals(
            victims, culprits, int(victims.argmax()), int(culprits.argmax())
        )


def influences(engine: Engine, batch: Batch) -> Influences:
    """Both maps: of the correct engine and of the faulty `engine`."""
    reward = _replaced(batch)
    correct, _ = _map(CORRECT, batch, reward)
    faulty, size = _map(engine, batch, reward)
    return Influences(batch, correct, faulty, size)


def influence(engine: Engine, batch: Batch) -> Tensor:
    """A_i less A_i with reward j replaced (`replacements`). [R, R].

    NaN in the line of a row without an advantage (no transition left, or
    its group was dropped). A row at its siblings' mean has no influence.
    Raises GradebookError where the engine cannot run.
    """
    return _map(engine, batch, _replaced(batch))[0]


def _map(
    engine: Engine, batch: Batch, replaced: Tensor
) -> tuple[Tensor, Tensor]:
    """The influences [R, R] and the unchanged advantages [R], in one run
    of the rewards as they are and of every change."""
    reward = torch.cat((batch.reward[None], replaced))
    found = advantages(engine, batch, reward)
    return found[0, :, None] - found[1:].T, found[0]


def kl_influence(engine: Engine, batch: Batch) -> Tensor:
    """Sum over the row's tokens of |change of the KL part of d loss /
    d logp|, [R, R].

    Unsigned, so that tokens that move in opposite ways do not cancel. In
    the correct engine a reward that makes its group flat takes the KL part
    away; with zero-std KL no reward ever touches it. Raises GradebookError
    without logp.
    """
    if batch.logp is None:
        raise GradebookError(key="logp", expected="values", found="none")
    keep = batch.large_enough
    copies = _copies(_selected(batch, keep), _replaced(batch)[:, keep])
    now, then = (run(engine, one).kl_gradient for one in (batch, copies))
    assert now is not None and then is not None  # there is a logp
    change = torch.zeros((batch.rows, batch.rows), dtype=now.dtype)
    change[keep] = (now[keep] - then).abs().sum(-1).T
    return change


def changed(engine: Engine, batch: Batch, i: int, j: int) -> Change:
    """Row i's advantage before and after reward j is replaced: a run by
    itself, so that the map can be checked against it."""
    bare = _without_logp(batch)
    reward = _reward_without(batch, j)
    before = float(run(engine, bare).advantage[i])
    after = float(run(engine, replace(bare, reward=reward)).advantage[i])
    return Change(before, after, float(reward[j]), before - after)


def changed_kl(engine: Engine, batch: Batch, i: int, j: int) -> Change:
    """The same for the KL part of row i's gradient. Raises GradebookError
    without logp."""
    if batch.logp is None:
        raise GradebookError(key="logp", expected="values", found="none")
    reward = _reward_without(batch, j)
    batches = (batch, replace(batch, reward=reward))
    kl = [run(engine, one).kl_gradient for one in batches]
    before, after = (part[i] for part in kl if part is not None)
    moved = (after - before).abs().sum()
    found = (before.sum(), after.sum(), reward[j], moved)
    return Change(*(float(one) for one in found))


def _reward_without(batch: Batch, j: int) -> Tensor:
    """The rewards with reward j replaced. float [R]."""
    reward = batch.reward.clone()
    reward[j] = replacements(batch)[j]
    return reward


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
    """Advantages under changed rewards, both float [..., R], in one run."""
    keep = batch.large_enough
    bare = _without_logp(_selected(batch, keep))
    found = run(engine, _copies(bare, reward[..., keep])).advantage
    full = reward.new_full(reward.shape, torch.nan)
    found = found.expand(*reward.shape[:-1], -1)
    full[..., keep] = found.to(full.dtype)
    return full


def derivative(engine: Engine, batch: Batch) -> Tensor:
    """d A_i / d r_j by automatic differentiation, [R, R]: the lesson.

    NaN where the root of a deviation is at 0, as automatic differentiation
    gives it, and in the line of a row without an advantage. Where the NaN
    only comes from 0 times infinity, on a row that cannot move, it is 0. An
    engine that rounds has the derivative of its formula, without the steps
    of rounding.
    """
    keep = batch.large_enough
    bare = _without_logp(_selected(batch, keep))
    rows = bare.rows
    reward = bare.reward.expand(rows, rows).clone().requires_grad_()
    with torch.enable_grad():
        a = run(engine, _copies(bare, reward)).advantage
        a = a.expand(rows, rows).diagonal().nan_to_num(0, 0, 0).sum()
        if a.requires_grad:
            (found,) = torch.autograd.grad(a, reward)
        else:
            found = torch.zeros_like(reward)
    full = reward.new_full((batch.rows, batch.rows), torch.nan)
    full[keep] = 0
    full[keep.nonzero(), keep.nonzero().T] = found.detach()
    # A bug may round to 8 bits: a smaller change could seem to move nothing.
    h = torch.maximum(batch.reward.abs() / 16, _least(batch))
    still = _slope(engine, batch, h) == 0
    full = torch.where(full.isnan() & still, 0, full)
    full[(batch.kept_steps == 0) | ~keep] = torch.nan
    return full


def slope(engine: Engine, batch: Batch) -> Tensor:
    """(A_i at r_j + h less A_i at r_j - h) / 2h, [R, R], with h a
    thousandth of eps, or what rounding asks for: the derivative where it
    cannot be computed, 0.75 / eps in a flat group of four."""
    return _slope(engine, batch, _least(batch))


def _least(batch: Batch) -> Tensor:
    """The smallest change of each reward that is no rounding. float [R]."""
    reward = batch.reward
    rounding = reward.abs() * torch.finfo(reward.dtype).eps * 64
    return rounding.clamp(min=(batch.settings.eps or 1e-6) * 1e-3)


def _slope(engine: Engine, batch: Batch, h: Tensor) -> Tensor:
    """The slope [R, R] over a change of h, float [R], both ways."""
    reward = batch.reward
    up, down = reward + torch.diag(h), reward - torch.diag(h)
    gap = (up - down).diagonal()
    runs = advantages(engine, batch, torch.stack((up, down)))
    return ((runs[0] - runs[1]) / gap[:, None]).T


class _Copies(Batch):
    """A batch whose rewards are [..., R]: one copy for each change. Not
    checked again; logp, where there is one, is [..., R, T]."""

    @property
    def rows(self) -> int:
        """R, the rollouts of one copy."""
        return self.prompt.shape[0]


def _copies(batch: Batch, reward: Tensor) -> Batch:
    """`batch` under rewards float [..., R]. Past the door on purpose: a
    Batch takes one reward a row, and detaches it."""
    _ = batch.prompt_index  # worked out once, for every copy and engine
    copies = object.__new__(_Copies)
    vars(copies).update(vars(batch))
    vars(copies)["reward"] = reward
    if batch.logp is not None:
        shape = (*reward.shape, batch.logp.shape[-1])
        vars(copies)["logp"] = batch.logp.expand(shape)
    return copies


def _replaced(batch: Batch) -> Tensor:
    """Line j: the rewards with reward j replaced. float [R, R]."""
    reward = batch.reward.expand(batch.rows, -1).clone()
    reward.diagonal().copy_(replacements(batch))
    return reward


def _selected(batch: Batch, keep: Tensor) -> Batch:
    """The rows where `keep`; the batch itself where that is all."""
    return batch if bool(keep.all()) else batch.select(keep)


def _without_logp(batch: Batch) -> Batch:
    """The batch for its advantages alone: no loss is computed."""
    if batch.logp is None:
        return batch
    return replace(batch, logp=None, ref_logp=None)
