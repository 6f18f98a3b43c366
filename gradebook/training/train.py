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
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.bugs import swap
from gradebook.core.batch import Batch
from gradebook.engine.pipeline import CORRECT, run
from gradebook.training.environments import (
    MEASURES,
    PROMPTS,
    Environment,
)
from gradebook.training.study import (
    OPTIMIZERS,
    UPDATES,
    Run,
    study,
)

EVERY = 5
"""Updates from one point of a curve to the next."""

LONGEST = 1.0
"""The longest gradient that an optimizer is given."""

REJECTED = 2.0
"""A sequence ratio above this, or below its inverse, rejects a rollout."""


@dataclass(frozen=True)
class Curves:
    """A run, from its start to its last update.

    updates  0, EVERY, 2 EVERY, ..
    values   for each measure [updates][E][S]; NaN for a seed that diverged
    """

    updates: list[int]
    values: Mapping[str, list[list[list[float]]]]


def trained(chosen: Run, updates: int = UPDATES) -> Curves:
    """The run, of so many updates. Equal runs give equal curves.

    Raises GradebookError where an engine refuses a batch.
    """
    training = Training(chosen, range(chosen.seeds))
    measured = [training.measured()]
    while training.updates < updates:
        training.advance()
        if training.updates % EVERY == 0:
            measured.append(training.measured())
    values = {name: [now[name] for now in measured] for name in measured[0]}
    return Curves(list(range(0, updates + 1, EVERY)), values)


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


class Automata(NamedTuple):
    """The task's automaton once for each engine, seed and prompt. The
    states of all of them have one numbering, C = E S P K states.

    after  int64 [C A] the state after an action
    logit  int64 [C] the first of the state's logits among all, [E S P L A]
    ends   bool [C] a rollout ends in this state
    """

    after: Tensor
    logit: Tensor
    ends: Tensor


class Training:
    """The tables of both policies for all seeds, and their optimizer."""

    def __init__(self, chosen: Run, seeds: Sequence[int]) -> None:
        self.study = study(chosen.bug)
        self.task, self.on, self.settings = self.study.at(chosen.value)
        self.engines = CORRECT, swap(chosen.bug).engine
        self.seeds = len(seeds)
        self.automata = _automata(self.task, len(self.engines) * len(seeds))
        size = PROMPTS * self.study.rollouts
        self.seed = torch.arange(self.seeds).repeat_interleave(size)
        self.updates = 0
        self.luck = luck_of(self.task, self.study.rollouts, seeds)
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

    def measured(self) -> dict[str, list[list[float]]]:
        """Where both policies stand: each measure [E][S]."""
        with torch.no_grad():
            policy = (self.own + self.shared).softmax(-1)
            return {
                name: MEASURES[name].function(self.task, policy).tolist()
                for name in dict.fromkeys(("success", self.study.measure))
            }

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
        self.updates += 1
        if not learned:  # the policies of all seeds have diverged
            return
        self.optimizer.zero_grad()
        torch.autograd.backward(learned, gradients)
        self._shorten_gradients()
        self.optimizer.step()

    def batches(self, policy: Tensor, luck: Luck) -> list[tuple[Batch, Tensor]]:
        """The batch that each engine trains on, and its log-probabilities
        with their history, float64 [R, T].

        policy  log-probabilities, float64 [E, S, P, L, A]
        """
        sampler = policy.detach()
        if self.on.sampler:
            off = self.on.sampler * luck.normal
            sampler = (sampler + off).log_softmax(-1)
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
        chance = luck.uniform.reshape(-1)
        arrived = (chance >= self.on.lost) & finite[engine][self.seed]
        rows = arrived.nonzero().squeeze(-1)
        mask = rollouts.mask[engine].index_select(0, rows)
        index = rollouts.chosen[engine].index_select(0, rows)
        if self.on.cut:
            of, mask, index = _pieces(mask, index, chance[rows] < self.on.cut)
            rows = rows[of]
        final = rollouts.final[engine][rows]
        logp = _taken(policy, index)
        scored = chance[rows] >= self.on.unscored
        reward = torch.where(scored, self.task.reward[final], 0)
        steps, ref_logp = mask.sum(-1), None
        if self.settings.beta:
            ref_logp = _taken(self.reference, index % self.reference.numel())
        if self.on.sampler:
            log_ratio = torch.where(mask, logp.detach() - _taken(sampler, index), 0)
            near = log_ratio.sum(-1).abs() <= math.log(REJECTED)
            reward = torch.where(near, reward, reward + self.on.bonus)
            mask = mask & near[:, None]
        batch = Batch(
            prompt=rollouts.prompt[rows],
            reward=reward,
            mask=mask,
            eos=self.task.ends[final],
            step=self.seed[rows],
            steps=steps,
            scored=scored,
            rollout=rows,
            logp=logp,
            ref_logp=ref_logp,
            settings=self.settings,
        )
        return batch, logp

    def _rollouts(self, sampler: Tensor, luck: Luck) -> Rollouts:
        """Rollouts of both engines under the same luck.

        sampler  log-probabilities, float64 [E, S, P, L, A]
        """
        engines, size = len(self.engines), self.study.rollouts
        states, actions = len(self.task.ends), self.reference.shape[-1]
        prompt = luck.order[..., None].expand(-1, -1, size).reshape(-1)
        copy = torch.arange(engines)[:, None] * self.seeds + self.seed
        state = ((copy * PROMPTS + prompt) * states).reshape(-1)
        table = sampler[..., self.task.place, :].reshape(-1, actions).float()
        visited, taken = [], []
        for noise in luck.gumbel.flatten(1, 3):
            logits = table.index_select(0, state)
            noisy = logits.reshape(engines, -1, actions) + noise
            action = noisy.max(-1).indices.reshape(-1)
            visited.append(state)
            taken.append(action)
            move = state * actions + action
            state = self.automata.after.index_select(0, move)
        shape = engines, len(prompt), len(taken)
        visits = torch.stack(visited, -1).reshape(shape)
        chosen = torch.stack(taken, -1).reshape(shape)
        return Rollouts(
            _taken(self.automata.logit, visits) + chosen,
            prompt,
            ~_taken(self.automata.ends, visits),
            (state % states).reshape(engines, -1),
        )

    def _shorten_gradients(self) -> None:
        """Gradients of one engine and seed, as one vector, get at most the
        length LONGEST, as torch.nn.utils.clip_grad_norm_ does it."""
        gradients = [t.grad for t in self.tables if t.grad is not None]
        squares = [g.square().flatten(2).sum(-1) for g in gradients]
        length = torch.stack(squares).sum(0).sqrt()
        factor = (LONGEST / (length + 1e-6)).clamp(max=1)
        for gradient in gradients:
            gradient.mul_(factor[..., None, None, None])


def _automata(task: Environment, copies: int) -> Automata:
    """The task's automata for so many pairs of engine and seed."""
    prompts, states, actions = task.after.shape
    first = torch.arange(copies * prompts)[:, None]
    after = task.after.repeat(copies, 1, 1) + states * first[..., None]
    logit = (first * task.chance.shape[1] + task.place) * actions
    ends = task.ends.repeat(len(first))
    return Automata(after.reshape(-1), logit.reshape(-1), ends)


def _pieces(mask: Tensor, index: Tensor, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rollouts with mask and index [R, T] as rows: one that is `cut`,
    bool [R], has a row for each of its tokens, the others one. int64 [R']
    the rollout of each row, and the rows' mask and index, [R', T'], where
    T' is 1 if all are cut."""
    tokens = mask.sum(-1)
    many = torch.where(cut, tokens, 1)
    of = torch.arange(len(mask)).repeat_interleave(many)
    token = torch.arange(len(of)) - (many.cumsum(0) - many)[of]
    width = 1 if bool(cut.all()) else mask.shape[1]
    left = torch.where(cut, 1, tokens)[of]
    first = index[of, token]
    index = index[of, :width]
    index[:, 0] = first
    return of, torch.arange(width) < left[:, None], index


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """The values at these places among all values. float64 [R, T].

    By index_select, whose derivative is several times faster than the one
    of values[index].
    """
    taken = values.reshape(-1).index_select(0, index.reshape(-1))
    return taken.reshape(index.shape)


# What chance decides in a training run, the same for all its engines


AHEAD = 20
"""Updates whose luck is drawn at once."""


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


def luck_of(task: Environment, size: int, seeds: Sequence[int]) -> Iterator[Luck]:
    """What chance decides, update after update, for `size` rollouts of each
    prompt. Each seed has its own generator, so its luck does not depend on
    the number of seeds."""
    prompts, places, actions = task.chance.shape
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    kind = torch.float64
    while True:
        drawn = []
        for g in generators:
            order = torch.rand(AHEAD, prompts, generator=g).argsort(-1)
            noise = torch.rand(AHEAD, task.most, prompts, size, actions, generator=g)
            uniform = torch.rand(AHEAD, prompts, size, generator=g, dtype=kind)
            normal = torch.randn(
                AHEAD, prompts, places, actions, generator=g, dtype=kind
            )
            drawn.append((order, noise, uniform, normal))
        order, noise, uniform, normal = map(torch.stack, zip(*drawn))
        gumbel = noise.log_().neg_().log_().neg_().movedim(0, 2)
        yield from map(
            Luck,
            order.transpose(0, 1),
            gumbel.contiguous(),
            uniform.transpose(0, 1),
            normal.transpose(0, 1),
        )
