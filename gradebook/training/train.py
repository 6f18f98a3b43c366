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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradebook.bugs import swap
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.training.environments import MEASURES, PROMPTS, Environment
from gradebook.training.study import OPTIMIZERS, UPDATES, Run, study

EVERY = 5
"""Updates from one point of a curve to the next."""
LONGEST = 1.0
"""The longest gradient that an optimizer is given."""
REJECTED = 2.0
"""A sequence ratio above this, or below its inverse, rejects a rollout."""
AHEAD = 20
"""Updates whose luck is drawn at once."""


@dataclass(frozen=True)
class Curves:
    """A run, from its start to its last update.

    updates  0, EVERY, 2 EVERY, ..
    values   for each measure [updates][E][S]; NaN for a seed that diverged
    """

    updates: list[int]
    values: Mapping[str, list[list[list[float]]]]


def trained(request: Run, updates: int = UPDATES) -> Curves:
    """The run, of so many updates. Equal runs give equal curves.

    Raises GradebookError where an engine refuses a batch.
    """
    training = Training(request, range(request.seeds))
    measured = [training.measured()]
    for update in range(1, updates + 1):
        training.advance()
        if update % EVERY == 0:
            measured.append(training.measured())
    values = {name: [now[name] for now in measured] for name in measured[0]}
    return Curves(list(range(0, updates + 1, EVERY)), values)


def rows_at(request: Run, seed: int, update: int) -> list[dict[str, Any]]:
    """The batch of one seed that the faulty engine trains on in this update, counted
    from 1, as rows of a scenario file. A prompt's name, A, B, .., is its place in the
    task. Raises GradebookError where the policy has diverged: it samples nothing."""
    training = Training(request, [seed])
    for _ in range(update - 1):
        training.advance()
    policy = training.logits().detach().log_softmax(-1)
    batch, _ = training.batches(policy, next(training.luck))[1]
    if not batch.rows:
        raise GradebookError(
            "This seed's policy is not a number any more, so it samples no"
            " rollouts. Choose an earlier update or another seed"
        )
    usual, rows = Batch(prompt=batch.prompt, reward=batch.reward), len(batch.prompt)
    columns = {"prompt": [chr(ord("A") + prompt) for prompt in batch.prompt.tolist()]}
    for name in ("reward", "mask", "eos", "steps", "kept_steps", "scored", "rollout"):
        values = getattr(batch, name)
        if name in ("reward", "mask") or (values != getattr(usual, name)).any():
            columns[name] = values.tolist()
    if batch.settings.beta:
        for name in ("logp", "ref_logp"):
            columns[name] = getattr(batch, name).round(decimals=6).tolist()
    return [{name: columns[name][row] for name in columns} for row in range(rows)]


class Rollouts(NamedTuple):
    """The rollouts of both engines, in batch order.

    logit    int64 [E, N, T] the number of each action's logit, [E S P L A]
    prompt   int64 [N]
    mask     bool [E, N, T]
    final    int64 [E, N] the state in which each stopped
    """

    logit: Tensor
    prompt: Tensor
    mask: Tensor
    final: Tensor


class Training:
    """The tables of both policies for all seeds, and their optimizer.

    tables  logits by prompt and place, float64 [E, S, P, L, A], and by place
            alone, [E, S, 1, L, A]
    luck    what chance decides, update after update
    """

    def __init__(self, request: Run, seeds: Sequence[int]) -> None:
        self.study = study(request.bug)
        self.task, self.conditions, self.settings = self.study.at(request.value)
        self.engines = CORRECT, swap(request.bug).engine
        self.seeds, size = len(seeds), self.study.rollouts
        self.seed = torch.arange(self.seeds).repeat_interleave(PROMPTS * size)
        self.luck = luck_of(self.task, size, seeds)
        self.reference = self.task.chance.log()
        by_prompt = self.reference.repeat(2, self.seeds, 1, 1, 1)
        by_place = torch.zeros_like(by_prompt[:, :, :1])
        self.tables = [by_prompt.requires_grad_(), by_place.requires_grad_()]
        optimizer = OPTIMIZERS[request.optimizer]
        self.optimizer = optimizer.kind(self.tables, lr=optimizer.rate)

    def logits(self) -> Tensor:
        """Of both policies, float64 [E, S, P, L, A]."""
        return self.tables[0] + self.tables[1]

    def measured(self) -> dict[str, list[list[float]]]:
        """Where both policies stand: each measure [E][S]."""
        policy = self.logits().detach().softmax(-1)
        return {
            name: MEASURES[name].function(self.task, policy).tolist()
            for name in dict.fromkeys(("success", self.study.measure))
        }

    def advance(self) -> None:
        learned, gradients = [], []
        batches = self.batches(self.logits().log_softmax(-1), next(self.luck))
        for engine, (batch, logp) in zip(self.engines, batches):
            if batch.rows:
                learned.append(logp)
                gradients.append(run(engine, batch).gradient)
        if not learned:  # the policies of all seeds have diverged
            return
        self.optimizer.zero_grad()
        torch.autograd.backward(learned, gradients)
        # Of one engine and seed, as torch.nn.utils.clip_grad_norm_ does it.
        grads = [table.grad for table in self.tables if table.grad is not None]
        squares = torch.stack([grad.square().flatten(2).sum(-1) for grad in grads])
        factor = (LONGEST / (squares.sum(0).sqrt() + 1e-6)).clamp(max=1)
        for grad in grads:
            grad.mul_(factor[..., None, None, None])
        self.optimizer.step()

    def batches(self, policy: Tensor, luck: Luck) -> list[tuple[Batch, Tensor]]:
        """The batch that each engine trains on, and its log-probabilities
        with their history, float64 [R, T].

        policy  log-probabilities, float64 [E, S, P, L, A]
        """
        sampler, conditions = policy.detach(), self.conditions
        if conditions.sampler:
            noise = conditions.sampler * luck.normal
            sampler = (sampler + noise).log_softmax(-1)
        rollouts = self.rollouts(sampler, luck)
        chance = luck.uniform.reshape(-1)
        finite = policy.detach().flatten(2).isfinite().all(-1)
        batches = []
        for engine in range(2):
            arrived = (chance >= conditions.lost) & finite[engine][self.seed]
            rows = arrived.nonzero().squeeze(-1)
            mask = rollouts.mask[engine].index_select(0, rows)
            logit = rollouts.logit[engine].index_select(0, rows)
            if conditions.cut:
                cut = chance[rows] < conditions.cut
                rollout, mask, logit = _pieces(mask, logit, cut)
                rows = rows[rollout]
            final = rollouts.final[engine][rows]
            logp = _taken(policy, logit)
            scored = chance[rows] >= conditions.unscored
            reward = torch.where(scored, self.task.reward[final], 0)
            steps, ref_logp = mask.sum(-1), None
            if self.settings.beta:
                ref_logp = _taken(self.reference, logit % self.reference.numel())
            if conditions.sampler:
                log_ratio = torch.where(mask, logp.detach() - _taken(sampler, logit), 0)
                near = log_ratio.sum(-1).abs() <= math.log(REJECTED)
                reward = torch.where(near, reward, reward + conditions.bonus)
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
            batches.append((batch, logp))
        return batches

    def rollouts(self, sampler: Tensor, luck: Luck) -> Rollouts:
        """Rollouts of both engines under the same luck. All states of all
        engines, seeds and prompts have one numbering, [E S P K].

        sampler  log-probabilities, float64 [E, S, P, L, A]
        """
        prompts, states, actions = self.task.after.shape
        copies = torch.arange(2 * self.seeds * prompts)[:, None]
        after = (
            self.task.after.repeat(2 * self.seeds, 1, 1) + states * copies[..., None]
        )
        after = after.reshape(-1)
        first_logit = (copies * self.reference.shape[1] + self.task.place) * actions
        ends = self.task.ends.repeat(len(copies))

        prompt = luck.order.repeat_interleave(self.study.rollouts, 1).reshape(-1)
        seed = torch.arange(2)[:, None] * self.seeds + self.seed
        state = ((seed * prompts + prompt) * states).reshape(-1)
        table = sampler[..., self.task.place, :].reshape(-1, actions).float()
        visited, taken = [], []
        for noise in luck.gumbel.flatten(1, 3):
            logits = table.index_select(0, state)
            noisy = logits.reshape(2, -1, actions) + noise
            action = noisy.max(-1).indices.reshape(-1)
            visited.append(state)
            taken.append(action)
            state = after.index_select(0, state * actions + action)
        shape = 2, len(prompt), len(taken)
        visits = torch.stack(visited, -1).reshape(shape)
        return Rollouts(
            _taken(first_logit, visits) + torch.stack(taken, -1).reshape(shape),
            prompt,
            ~_taken(ends, visits),
            (state % states).reshape(2, -1),
        )


def _pieces(mask: Tensor, logit: Tensor, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rollouts with mask and logits [R, T] as rows: one that is `cut`,
    bool [R], has a row for each of its tokens, the others one. int64 [R']
    the rollout of each row, and the rows' mask and logits, [R', T'], where
    T' is 1 if all are cut."""
    tokens = mask.sum(-1)
    rows = torch.where(cut, tokens, 1)
    rollout = torch.arange(len(mask)).repeat_interleave(rows)
    token = torch.arange(len(rollout)) - (rows.cumsum(0) - rows)[rollout]
    width = 1 if bool(cut.all()) else mask.shape[1]
    left = torch.where(cut, 1, tokens)[rollout]
    first = logit[rollout, token]
    logit = logit[rollout, :width]
    logit[:, 0] = first
    return rollout, torch.arange(width) < left[:, None], logit


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """The values at these places among all values. float64 [R, T].

    By index_select, whose derivative is several times faster than the one
    of values[index].
    """
    taken = values.reshape(-1).index_select(0, index.reshape(-1))
    return taken.reshape(index.shape)


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
            shape = AHEAD, prompts, places, actions
            normal = torch.randn(shape, generator=g, dtype=kind)
            drawn.append((order, noise, uniform, normal))
        order, noise, uniform, normal = (
            torch.stack(each, 1) for each in zip(*drawn)
        )  # [AHEAD, S, ..]
        gumbel = noise.log_().neg_().log_().neg_().transpose(1, 2).contiguous()
        yield from map(Luck, order, gumbel, uniform, normal)
