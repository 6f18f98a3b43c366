"""Two policies trained side by side: same seeds, same luck, two engines.

A policy is two tables of logits, one for each prompt and place and one for
each place, which all prompts share; their sum counts. Every update samples
rollouts, lets the engine turn them into the gradient of its own loss, and
gives that gradient to an optimizer of torch. All seeds train at once: each
is a step of one batch.

Letters in shapes: E engines, S seeds, P prompts, G rollouts of one prompt,
N = S P G rollouts of one engine, R of them that arrive, T actions, L
places, A actions to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.analysis.consequences.environments import PROMPTS
from gradebook.analysis.consequences.measures import MEASURES
from gradebook.analysis.consequences.study import (
    OPTIMIZERS,
    UPDATES,
    Run,
    study,
)
from gradebook.bugs import swap
from gradebook.core.batch import Batch
from gradebook.engine.grouping import has_tokens
from gradebook.engine.pipeline import CORRECT, Engine, run

EVERY = 5
"""Updates from one frame to the next."""

AHEAD = 20
"""Updates whose luck is drawn at once."""

LONGEST = 1.0
"""The longest gradient that an optimizer is given."""

REJECTED = 2.0
"""A sequence ratio above this, or below its inverse, rejects a rollout."""


@dataclass(frozen=True)
class Frame:
    """Where both policies stand after `update` updates.

    values  for each measure [E][S]; NaN for a seed that diverged
    """

    update: int
    values: Mapping[str, list[list[float]]]


def frames(chosen: Run) -> Iterator[Frame]:
    """The run from its start to its last update, a frame every EVERY
    updates. Equal runs give equal frames.

    Raises GradebookError where an engine refuses a batch.
    """
    training = Training(chosen, range(chosen.seeds))
    yield training.frame()
    for update in range(1, UPDATES + 1):
        training.advance()
        if update % EVERY == 0:
            yield training.frame()


def batch_at(chosen: Run, seed: int, update: int) -> Batch:
    """The batch of one seed that the faulty engine trains on in this
    update, counted from 1."""
    training = Training(chosen, [seed])
    for _ in range(update - 1):
        training.advance()
    policy = (training.own + training.shared).detach().log_softmax(-1)
    return training.batches(policy, next(training.luck))[1][0]


def engines(chosen: Run) -> tuple[Engine, ...]:
    """The correct and the faulty engine of a training run, and where it is
    chosen the faulty one without advantages for rows in no group.

    No trainer leaves the rows of a flat group out of its loss, so all
    engines train every row that has tokens; except where the bug is about
    just that stage.
    """
    swapped = swap(chosen.bug)
    found = [CORRECT, swapped.engine]
    if chosen.third:
        found.append(replace(swapped.engine, baseline=_own_score_outside))
    if swapped.stage == "trained":
        return tuple(found)
    return tuple(replace(one, trained=_every_row) for one in found)


def _own_score_outside(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """The correct baseline; for a row in no group its own score, so that
    its advantage is 0. float [R]."""
    found = CORRECT.baseline(batch, score, counted, group)
    return torch.where(group < 0, score, found)


def _every_row(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """The row's tokens enter the loss: it has some. bool [R]."""
    return has_tokens(batch)


class Luck(NamedTuple):
    """What chance decides in one update, for both engines alike.

    order    int64 [S, P] the prompt at each place of the batch
    gumbel   float32 [T, S, P, G, A] noise that chooses the actions
    uniform  float64 [S, P, G] decides whether a rollout is lost, scored
             and cut
    normal   float64 [S, P, L, A] what the sampler's logits are off by
    """

    order: Tensor
    gumbel: Tensor
    uniform: Tensor
    normal: Tensor


class Rollouts(NamedTuple):
    """The rollouts of both engines, in batch order.

    chosen   int64 [E, N, T] the logit's number among all, [E S P L A]
    prompt   int64 [N]
    mask     bool [E, N, T]
    final    int64 [E, N] the state that each stopped in
    """

    chosen: Tensor
    prompt: Tensor
    mask: Tensor
    final: Tensor


class Training:
    """The tables of both policies for all seeds, and their optimizer."""

    def __init__(self, chosen: Run, seeds: Sequence[int]) -> None:
        self.study = study(chosen.bug)
        self.task, self.on, self.settings = self.study.at(chosen.value)
        self.engines = engines(chosen)
        self.seeds = len(seeds)
        self.updates = 0
        self.luck = self._luck(seeds)
        self.reference = self.task.chance.log()
        shape = len(self.engines), self.seeds, *self.reference.shape
        self.own = self.reference.expand(shape).clone().requires_grad_()
        shared = torch.zeros_like(self.own[:, :, :1])
        self.shared = shared.requires_grad_()
        tables, chosen_one = self.tables, OPTIMIZERS[chosen.optimizer]
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self.optimizer = kinds[chosen_one.kind](tables, lr=chosen_one.rate)

    @property
    def tables(self) -> list[Tensor]:
        """Logits by prompt and place, float64 [E, S, P, L, A], and by place
        alone, [E, S, 1, L, A]."""
        return [self.own, self.shared]

    def frame(self) -> Frame:
        """Where both policies stand."""
        with torch.no_grad():
            policy = (self.own + self.shared).softmax(-1)
            values = {
                name: MEASURES[name].function(self.task, policy).tolist()
                for name in dict.fromkeys(("success", self.study.measure))
            }
        return Frame(self.updates, values)

    def advance(self) -> None:
        """One update of both policies."""
        policy = (self.own + self.shared).log_softmax(-1)
        learned, gradients = [], []
        for engine, (batch, logp) in zip(
            self.engines, self.batches(policy, next(self.luck))
        ):
            if batch.rows:
                learned.append(logp)
                gradients.append(run(engine, batch).gradient)
        self.optimizer.zero_grad()
        torch.autograd.backward(learned, gradients)
        self._shorten_gradients()
        self.optimizer.step()
        self.updates += 1

    def batches(
        self, policy: Tensor, luck: Luck
    ) -> list[tuple[Batch, Tensor]]:
        """The batch that each engine trains on, and its log-probabilities
        with their history, float64 [R, T].

        policy  log-probabilities, float64 [E, S, P, L, A]
        """
        off = self.on.sampler * luck.normal
        sampler = (policy.detach() + off).log_softmax(-1)
        rollouts = self._rollouts(sampler, luck)
        finite = policy.detach().flatten(2).isfinite().all(-1)
        return [
            self._batch(engine, policy, sampler, rollouts, luck, finite)
            for engine in range(len(self.engines))
        ]

    def _batch(
        self,
        engine: int,
        policy: Tensor,
        sampler: Tensor,
        rollouts: Rollouts,
        luck: Luck,
        finite: Tensor,
    ) -> tuple[Batch, Tensor]:
        """The rollouts that arrive, of seeds whose policy is `finite`,
        bool [E, S]."""
        seed = torch.arange(self.seeds).repeat_interleave(
            len(rollouts.prompt) // self.seeds
        )
        arrived = luck.uniform.reshape(-1) >= self.on.lost
        arrived &= finite[engine][seed]
        rows = arrived.nonzero().squeeze(-1)
        mask = rollouts.mask[engine].index_select(0, rows)
        chance = luck.uniform.reshape(-1)
        if self.on.cut:
            rows, mask = _pieces(rows, mask, (chance < self.on.cut)[rows])
        index = rollouts.chosen[engine].index_select(0, rows)
        final = rollouts.final[engine][rows]
        logp = _taken(policy, index)
        scored = chance[rows] >= self.on.unscored
        reward = torch.where(scored, self.task.reward[final], 0)
        steps = mask.sum(-1)
        if self.on.sampler:
            near = _near(logp.detach(), _taken(sampler, index), mask)
            reward = torch.where(near, reward, reward + self.on.bonus)
            mask = mask & near[:, None]
        batch = Batch(
            prompt=rollouts.prompt[rows],
            reward=reward,
            mask=mask,
            eos=self.task.ends[final],
            step=seed[rows],
            steps=steps,
            scored=scored,
            rollout=rows,
            logp=logp,
            ref_logp=self._reference(index) if self.settings.beta else None,
            settings=self.settings,
        )
        return batch, logp

    def _reference(self, index: Tensor) -> Tensor:
        """The reference policy's log-probabilities of the actions with
        these indices, int64 [R, T]. float64 [R, T]."""
        return _taken(self.reference, index % self.reference.numel())

    def _rollouts(self, sampler: Tensor, luck: Luck) -> Rollouts:
        """Rollouts of both engines under the same luck.

        sampler  log-probabilities, float64 [E, S, P, L, A]
        """
        task, (places, actions) = self.task, self.reference.shape[1:]
        engines, size = len(self.engines), luck.gumbel.shape[3]
        prompt = luck.order[..., None].expand(-1, -1, size).reshape(-1)
        # The first of the rollout's rows in a table by seed, prompt and
        # state, and in one by prompt and state.
        states = len(task.ends)
        tables = torch.arange(engines * self.seeds).reshape(engines, -1)
        seed = tables.repeat_interleave(len(prompt) // self.seeds, dim=-1)
        first = (seed * PROMPTS + prompt) * states
        automaton = prompt * states
        table = sampler[..., task.place, :].reshape(-1, actions).float()
        after = task.after.reshape(-1)
        state = torch.zeros_like(first)
        visited, taken = [], []
        for noise in luck.gumbel.reshape(task.most, -1, actions):
            row = (first + state).reshape(-1)
            logits = table.index_select(0, row).reshape(*first.shape, -1)
            action = (logits + noise).max(-1).indices
            visited.append(state)
            taken.append(action)
            state = after[(automaton + state) * actions + action]
        at = torch.stack(visited, -1)
        row = (seed * PROMPTS + prompt)[..., None] * places + task.place[at]
        return Rollouts(
            row * actions + torch.stack(taken, -1),
            prompt,
            ~task.ends[at],
            state,
        )

    def _shorten_gradients(self) -> None:
        """Gradients of one engine and seed, as one vector, get at most the
        length LONGEST, as torch.nn.utils.clip_grad_norm_ does it."""
        found = [t.grad for t in self.tables if t.grad is not None]
        squares = [g.square().flatten(2).sum(-1) for g in found]
        length = torch.stack(squares).sum(0).sqrt()
        factor = (LONGEST / (length + 1e-6)).clamp(max=1)
        for gradient in found:
            gradient.mul_(factor[..., None, None, None])

    def _luck(self, seeds: Sequence[int]) -> Iterator[Luck]:
        """What chance decides, update after update. Each seed has its own
        generator, so its luck does not depend on the number of seeds."""
        prompts, places, actions = self.reference.shape
        size, most = self.study.rollouts, self.task.most
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        kind = torch.float64
        while True:
            drawn = []
            for g in generators:
                order = torch.rand(AHEAD, prompts, generator=g).argsort(-1)
                noise = torch.rand(
                    AHEAD, most, prompts, size, actions, generator=g
                )
                uniform = torch.rand(
                    AHEAD, prompts, size, generator=g, dtype=kind
                )
                normal = torch.randn(
                    AHEAD, prompts, places, actions, generator=g, dtype=kind
                )
                drawn.append((order, noise, uniform, normal))
            order, noise, uniform, normal = map(torch.stack, zip(*drawn))
            gumbel = noise.log_().neg_().log_().neg_()
            for update in range(AHEAD):
                yield Luck(
                    order[:, update],
                    gumbel[:, update].transpose(0, 1),
                    uniform[:, update],
                    normal[:, update],
                )


def _pieces(rows: Tensor, mask: Tensor, cut: Tensor) -> tuple[Tensor, Tensor]:
    """Rollouts, int64 [R], as rows: one that is `cut`, bool [R], has a row
    for each of its tokens, the others one. int64 [R'] the rollout of each
    row, and bool [R', T] its mask."""
    many = torch.where(cut, mask.sum(-1), 1)
    of = torch.arange(len(rows)).repeat_interleave(many)
    nth = torch.arange(len(of)) - (many.cumsum(0) - many)[of]
    alone = torch.arange(mask.shape[1]) == nth[:, None]
    return rows[of], mask[of] & (alone | ~cut[of, None])


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """The values at these places among all values. float64 [R, T].

    By index_select, whose derivative is several times faster than the one
    of values[index].
    """
    found = values.reshape(-1).index_select(0, index.reshape(-1))
    return found.reshape(index.shape)


def _near(logp: Tensor, sampler: Tensor, mask: Tensor) -> Tensor:
    """The sequence ratio of policy to sampler, both float64 [R, T], is in
    the accepted band. bool [R]."""
    log_ratio = torch.where(mask, logp - sampler, 0).sum(-1)
    return log_ratio.abs() <= math.log(REJECTED)
