"""Two policies trained side by side: same seeds, same luck, two engines.

A policy is two tables of logits, one for each prompt and place and one for
each place, which all prompts share; their sum counts. Every update samples
rollouts, lets the engine turn them into the gradient of its own loss, and
gives that gradient to an optimizer of torch. All seeds train at once: each
is a step of one batch.

Letters in shapes: S seeds, P prompts, G rollouts of one prompt, N = S P G
rollouts, R of them that arrive, T actions, L places, A actions to choose from.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradebook.bugs import swap
from gradebook.cases.scenario import bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, Engine, run
from gradebook.training.environments import MEASURES, PROMPTS
from gradebook.training.study import OPTIMIZERS, UPDATES, Run, study

EVERY = 5
"""Updates from one point of a curve to the next: 200 updates have 41 points, which are
drawn as a smooth line."""
LONGEST = 1.0
"""The longest gradient that an optimizer is given: the default of `max_grad_norm` in
Transformers' Trainer."""
REJECTED = 2.0
"""A sequence ratio above this, or below its inverse, rejects a rollout.
scenarios/README.md says so, too."""
AHEAD = 20
"""Updates whose luck is drawn at once: for 16 seeds it then takes 0.36 ms an update,
and 0.54 ms one by one (2026-11-28)."""


@dataclass(frozen=True)
class TabularCurves:
    """A run, from its start to its last update: for each measure its values
    [updates][engine][S]; NaN for a seed that diverged."""

    updates: list[int]  # 0, EVERY, 2 EVERY, ..
    values: Mapping[str, list[list[list[float]]]]


def trained(request: Run, updates: int = UPDATES) -> TabularCurves:
    """The run, of so many updates. Equal runs give equal curves. Raises GradebookError
    if an engine refuses a batch."""
    engines = CORRECT, swap(request.bug).engine
    both = [TabularTraining(request, engine, request.seeds) for engine in engines]
    luck = luck_of(both[0], range(request.seeds))
    measures = "success", both[0].study.measure
    values: dict[str, list] = {name: [] for name in measures}
    for update in range(updates + 1):
        if update:
            now = next(luck)
            for training in both:
                training.advance(now)
        if update % EVERY == 0:
            for name, points in values.items():
                points.append([training.measured(name) for training in both])
    return TabularCurves(list(range(0, updates + 1, EVERY)), values)


def rows_at(request: Run, seed: int, update: int) -> list[dict[str, Any]]:
    """The batch of one seed that the faulty engine trains on in this update, counted
    from 1, as rows of a scenario file. A prompt's name, A, B, .., is its place in the
    task. Raises GradebookError if the policy has diverged: it samples nothing."""
    training = TabularTraining(request, swap(request.bug).engine, 1)
    luck = luck_of(training, [seed])
    for now in islice(luck, update - 1):
        training.advance(now)
    batch, _ = training.batch(next(luck))
    if not batch.rows:
        raise GradebookError(
            "This seed's policy is not a number any more, so it samples no"
            " rollouts. Choose an earlier update or another seed"
        )
    usual = Batch(prompt=batch.prompt, reward=batch.reward)
    columns = {"prompt": [chr(ord("A") + prompt) for prompt in batch.prompt.tolist()]}
    for name in ("reward", "mask", "eos", "steps", "kept_steps", "scored", "rollout"):
        values = getattr(batch, name)
        if name in ("reward", "mask") or (values != getattr(usual, name)).any():
            columns[name] = values.tolist()
    for name in () if bug(request.bug).in_advantages else ("logp", "ref_logp"):
        if getattr(batch, name) is not None:
            # Enough for any number that a page shows, and a link stays short.
            columns[name] = getattr(batch, name).round(decimals=6).tolist()
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


class TabularTraining:
    """One engine's policy for all seeds, and its optimizer. Its tables are logits by
    prompt and place, float64 [S, P, L, A], and by place alone, [S, 1, L, A]."""

    def __init__(self, request: Run, engine: Engine, seeds: int) -> None:
        self.study = study(request.bug)
        self.task, self.conditions, self.settings = self.study.at(request.value)
        self.engine = engine
        self.seed = torch.arange(seeds).repeat_interleave(PROMPTS * self.study.rollouts)
        self.reference = self.task.chance.log()
        by_prompt = self.reference.repeat(seeds, 1, 1, 1)
        by_place = torch.zeros_like(by_prompt[:, :1])
        self.tables = [by_prompt.requires_grad_(), by_place.requires_grad_()]
        _, optimizer, rate = OPTIMIZERS[request.optimizer]
        self.optimizer = optimizer(self.tables, lr=rate)

    def logits(self) -> Tensor:
        """float64 [S, P, L, A]."""
        return self.tables[0] + self.tables[1]

    def measured(self, name: str) -> list[float]:
        """A measure of the policy, [S]."""
        policy = self.logits().detach().softmax(-1)
        return MEASURES[name].function(self.task, policy).tolist()

    def advance(self, luck: "TabularLuck") -> None:
        batch, logp = self.batch(luck)
        if not batch.rows:  # the policies of all seeds have diverged
            return
        self.optimizer.zero_grad()
        logp.backward(run(self.engine, batch).gradient)
        # Of one seed, as torch.nn.utils.clip_grad_norm_ does it, with its 1e-6.
        grads = [table.grad for table in self.tables if table.grad is not None]
        squares = torch.stack([grad.square().flatten(1).sum(-1) for grad in grads])
        factor = (LONGEST / (squares.sum(0).sqrt() + 1e-6)).clamp(max=1)
        for grad in grads:
            grad.mul_(factor[:, None, None, None])
        self.optimizer.step()

    def batch(self, luck: "TabularLuck") -> tuple[Batch, Tensor]:
        """The engine's batch, and its logp with their history, float64 [R, T]."""
        conditions, policy = self.conditions, self.logits().log_softmax(-1)
        sampler = policy.detach()
        finite = sampler.flatten(1).isfinite().all(-1)
        if conditions.sampler:
            sampler = (sampler + conditions.sampler * luck.normal).log_softmax(-1)
        prompt, logit, mask, final = self.rollouts(sampler, luck)
        chance = luck.uniform.flatten()
        arrived = (chance >= conditions.lost) & finite[self.seed]
        rows = arrived.nonzero().squeeze(-1)
        mask, logit = mask[rows], logit[rows]
        if conditions.cut:
            piece, mask, logit = _pieces(mask, logit, chance[rows] < conditions.cut)
            rows = rows[piece]
        logp, ref_logp = _taken(policy, logit), None
        if self.settings.beta:
            ref_logp = _taken(self.reference, logit % self.reference.numel())
        scored, steps = chance[rows] >= conditions.unscored, mask.sum(-1)
        reward = torch.where(scored, self.task.reward[final[rows]], 0)
        if conditions.sampler:
            log_ratio = torch.where(mask, logp.detach() - _taken(sampler, logit), 0)
            near = log_ratio.sum(-1).abs() <= math.log(REJECTED)
            reward = torch.where(near, reward, reward + conditions.bonus)
            mask = mask & near[:, None]
        batch = Batch(
            prompt=prompt[rows],
            reward=reward,
            mask=mask,
            eos=self.task.ends[final[rows]],
            step=self.seed[rows],
            steps=steps,
            scored=scored,
            rollout=rows,
            logp=logp,
            ref_logp=ref_logp,
            settings=self.settings,
        )
        return batch, logp

    def rollouts(self, sampler: Tensor, luck: "TabularLuck") -> tuple[Tensor, ...]:
        """Rollouts in batch order, of the sampler's log-probabilities, float64
        [S, P, L, A]: int64 [N] their prompts, int64 [N, T] the number of each action's
        logit in [S P L A], bool [N, T] the mask, and int64 [N] where each stopped."""
        task, (_, prompts, places, actions) = self.task, sampler.shape
        prompt = luck.order.repeat_interleave(self.study.rollouts, 1).flatten()
        first = (self.seed * prompts + prompt) * places
        table = sampler.float().reshape(-1, actions)
        state = torch.zeros_like(prompt)
        logit, mask = [], []
        for noise in luck.gumbel.flatten(1, 3):
            place = first + task.place[state]
            action = (table.index_select(0, place) + noise).max(-1).indices
            logit.append(place * actions + action)
            mask.append(~task.ends[state])
            state = task.after[prompt, state, action]
        return prompt, torch.stack(logit, -1), torch.stack(mask, -1), state


def _pieces(mask: Tensor, logit: Tensor, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rollouts as rows: one that is `cut`, bool [R], has a row for each token. int64
    [R'] the rollout of each row, and the rows' mask and logits, [R', T']."""
    begins = mask.clone()
    begins[~cut, 1:] = False
    rollout, token = begins.nonzero(as_tuple=True)
    width = 1 if bool(cut.all()) else mask.shape[1]
    tokens = torch.where(cut, 1, mask.sum(-1))[rollout]
    rows = logit[rollout, :width]
    rows[:, 0] = logit[rollout, token]
    return rollout, torch.arange(width) < tokens[:, None], rows


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """The values at these places among all values. float64 [R, T]."""
    # Its derivative is several times faster than the one of values[index].
    taken = values.reshape(-1).index_select(0, index.reshape(-1))
    return taken.reshape(index.shape)


class TabularLuck(NamedTuple):
    """What chance decides in one update, for both engines alike."""

    order: Tensor  # int64 [S, P] the prompt at each place of the batch
    gumbel: Tensor  # float32 [T, S, P, G, A] noise that chooses the actions
    uniform: Tensor  # float64 [S, P, G] is a rollout lost, scored, cut?
    normal: Tensor  # float64 [S, P, L, A] the noise of the sampler's logits


def luck_of(training: TabularTraining, seeds: Sequence[int]) -> Iterator[TabularLuck]:
    """What chance decides, update after update, in training of these seeds. Each has
    its own generator, so its luck does not depend on the number of seeds."""
    task, size = training.task, training.study.rollouts
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
        # [AHEAD, S, ..]
        order, noise, uniform, normal = (torch.stack(each, 1) for each in zip(*drawn))
        gumbel = noise.log_().neg_().log_().neg_().transpose(1, 2).contiguous()
        yield from map(TabularLuck, order, gumbel, uniform, normal)
