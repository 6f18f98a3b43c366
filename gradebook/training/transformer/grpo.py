"""The update of GRPO, with an engine of this project in the loop.

Every update samples rollouts from the policy, pays them, hands them to an
engine, and lets the engine's own gradient flow back through the policy to its
weights. Then Adam takes one step. The models of several arms and seeds train
as one; a seed has the same prompts and the same luck in every arm.

Letters in shapes: A arms, S seeds, M = A S models, N rollouts of a model and
update, T = ANSWER tokens, R rows of a batch.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import Engine, Trace, run
from gradebook.training.transformer import model
from gradebook.training.transformer.language import (
    ANSWER,
    Problem,
    ends,
    is_success,
    problems,
    says_sum,
)
from gradebook.training.transformer.model import Shape

PROMPTS = 16
"""Prompts of an update: with 8 rollouts of each, 128 answers."""
RATE, WARM_UP, LONGEST = 2e-4, 10, 1.0
"""Adam's learning rate, the updates over which it rises, and the longest gradient (the
default of Transformers' Trainer). The runs in `measured/` were trained with them, and
have to be made anew with others."""
REJECTED = 2.0
"""A sequence ratio above this, or below its inverse, rejects a rollout, as in the small
policies' runs (`train.REJECTED`)."""


@dataclass(frozen=True, kw_only=True)
class TransformerConditions:
    """What a rollout earns, and what happens to it on its way to the trainer.

    A right sum earns 1: of any answer, or (`must_end`) of one that ends. The earning of
    an unfinished answer is multiplied by `unfinished`. All else earns `failure`, and
    `late` times as much if it is unfinished.
    """

    must_end: bool = True
    unfinished: float = 1.0
    failure: float = 0.0
    late: float = 1.0
    meaningless: float = 0.0  # share of prompts to which no answer is right
    lost: float = 0.0  # share of the rollouts that never arrive
    unscored: float = 0.0  # share without a score; their reward is a filler, 0
    sampler: float = 0.0  # deviation of the noise of the sampler's logits
    bonus: float = 0.0  # added to the reward of a rejected rollout
    cut: int = 0  # tokens of a row, if a rollout is cut into several
    ungrouped: float = 1.0  # times the gradient of a row that is in no group


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One engine under some conditions."""

    engine: Engine
    settings: Settings
    conditions: TransformerConditions
    rollouts: int = 8  # of one prompt


@dataclass(frozen=True)
class TransformerLuck:
    """What chance decides for one seed in one update, alike in every arm."""

    prompts: list[Problem]  # one a rollout, in batch order
    gumbel: Tensor  # float32 [T, N, W] chooses the words
    noise: Tensor | None  # float32 [T, N, W], normal: the sampler's
    chance: Tensor  # float64 [N]: is a rollout lost, or not scored?


class Chances:
    """The luck of one seed, update after update."""

    def __init__(self, seed: int, arm: Arm, prompts: int) -> None:
        self.arm, self.prompts = arm, prompts
        self.random = random.Random(f"prompts {seed}")
        # One generator for each use, so that an arm that needs more of one use leaves
        # the others as they are.
        generators = [torch.Generator().manual_seed(3 * seed + n) for n in range(3)]
        self.words, self.fates, self.noises = generators

    def next(self) -> TransformerLuck:
        conditions, sums = self.arm.conditions, problems()[0]
        prompts, noise = [], None
        for _ in range(self.prompts):
            problem = self.random.choice(sums)
            meaning = self.random.random() >= conditions.meaningless
            problem = Problem(problem.left, problem.right, meaning)
            prompts += [problem] * self.arm.rollouts
        gumbel = model.gumbel_noise(self.words, len(prompts))
        if conditions.sampler:
            noise = torch.randn(gumbel.shape, generator=self.noises)
        kind = torch.float64
        chance = torch.rand(len(prompts), generator=self.fates, dtype=kind)
        return TransformerLuck(prompts, gumbel, noise, chance)


class TransformerTraining:
    """Arms trained side by side from the same pretrained weights, [S, ...]. The arms
    ask for the same number of rollouts and of meaningless prompts."""

    def __init__(
        self,
        arms: Sequence[Arm],
        start: Mapping[str, Tensor],
        shape: Shape,
        seeds: Sequence[int],
        prompts: int = PROMPTS,
    ) -> None:
        self.arms, self.start, self.shape, self.seeds = arms, start, shape, seeds
        self.weights = {
            name: weight.float()
            .repeat(len(arms), *[1] * (weight.dim() - 1))
            .requires_grad_()
            for name, weight in start.items()
        }
        self.adam = torch.optim.Adam(self.weights.values(), lr=RATE)
        self.chances = [Chances(seed, arms[0], prompts) for seed in seeds]
        self.updates = 0

    @property
    def device(self) -> torch.device:
        return self.weights["words"].device

    def advance(self) -> None:
        """One update of every model."""
        luck = [chances.next() for chances in self.chances]
        prompts = torch.tensor([[p.tokens for p in draw.prompts] for draw in luck])
        prompts = prompts.repeat(len(self.arms), 1, 1).to(self.device)
        answers = self.sampled(prompts, luck)
        tokens = answers.tokens
        logp = model.log_chances(self.weights, self.shape, prompts, tokens)
        reference = self.reference(prompts, tokens)
        gradients = []
        for number, arm in enumerate(self.arms):
            mine = slice(number * len(self.seeds), (number + 1) * len(self.seeds))
            rollouts = Rollouts(
                luck,
                tokens[mine].cpu(),
                answers.mask[mine].cpu(),
                logp[mine].detach().double().cpu(),
                answers.logp[mine].double().cpu(),
                None if reference is None else reference[mine].double().cpu(),
            )
            gradients.append(rollouts.gradient(arm))
        self.adam.zero_grad()
        logp.backward(torch.cat(gradients).to(logp))
        weights = self.weights.values()
        model.shorten([w.grad for w in weights if w.grad is not None], LONGEST)
        self.updates += 1
        self.adam.param_groups[0]["lr"] = RATE * min(1, self.updates / WARM_UP)
        self.adam.step()

    def sampled(
        self, prompts: Tensor, luck: Sequence[TransformerLuck]
    ) -> model.Answers:
        arms, noise = len(self.arms), None
        gumbel = torch.stack([draw.gumbel for draw in luck], 1).to(self.device)
        if luck[0].noise is not None:
            normal = torch.stack(
                [n for draw in luck if (n := draw.noise) is not None], 1
            )
            deviations = torch.tensor([arm.conditions.sampler for arm in self.arms])
            deviations = deviations.repeat_interleave(len(luck))[:, None, None]
            noise = (normal.repeat(1, arms, 1, 1) * deviations).to(self.device)
        gumbel = gumbel.repeat(1, arms, 1, 1)
        return model.sampled(self.weights, self.shape, prompts, gumbel, noise)

    @torch.no_grad()
    def reference(self, prompts: Tensor, tokens: Tensor) -> Tensor | None:
        """The log-probabilities of the policy before the first update; None unless an
        engine's loss has a KL term."""
        if not any(arm.settings.beta for arm in self.arms):
            return None
        parts = [
            model.log_chances(self.start, self.shape, *both)
            for both in zip(prompts.chunk(len(self.arms)), tokens.chunk(len(self.arms)))
        ]
        return torch.cat(parts)


@dataclass(frozen=True)
class Rollouts:
    """One arm's rollouts of one update, of all seeds. All but the luck is [S, N, T]."""

    luck: Sequence[TransformerLuck]
    tokens: Tensor  # int64
    mask: Tensor  # bool
    logp: Tensor  # float64, by the policy
    sampler: Tensor  # float64, by what sampled
    reference: Tensor | None  # float64, by the policy before the first update

    def gradient(self, arm: Arm) -> Tensor:
        """The engine's d loss / d logp, float64 [S, N, T]; one call of the engine."""
        batch, rows = self.batch(arm)
        trace = run(arm.engine, batch)
        whole = torch.zeros_like(self.logp).view(-1, batch.mask.shape[-1])
        whole[rows] = _gradient(trace, arm.conditions.ungrouped)
        return whole.view_as(self.logp)

    def batch(self, arm: Arm) -> tuple[Batch, Tensor]:
        """The rows that arrive, each seed a step, and bool [S N pieces] which they
        are: a rollout is one row, or is cut into pieces of so many tokens."""
        conditions = arm.conditions
        width = conditions.cut or ANSWER
        chance = torch.stack([draw.chance for draw in self.luck])
        reward, has_end = self.paid(conditions)
        scored = chance >= conditions.unscored
        reward = torch.where(scored, reward, 0.0)
        mask, steps = self.mask, self.mask.sum(-1)
        if conditions.sampler:
            ratio = torch.where(mask, self.logp - self.sampler, 0).sum(-1)
            near = ratio.abs() <= math.log(REJECTED)
            reward = torch.where(near, reward, reward + conditions.bonus)
            mask = mask & near[..., None]
        pieces = ANSWER // width
        # A piece without a token of the answer is no row; a rejected rollout is one.
        begins = self.mask.view(-1, width)[:, 0]
        arrived = (chance >= conditions.lost).flatten().repeat_interleave(pieces)
        rows = begins & arrived
        rollout = torch.arange(chance.numel()).repeat_interleave(pieces)[rows]
        seeds, size = chance.shape

        def cells(of_token: Tensor) -> Tensor:
            return of_token.reshape(-1, width)[rows]

        weighs = arm.settings.off_policy != "none"
        batch = Batch(
            prompt=rollout % size // arm.rollouts,
            reward=reward.flatten()[rollout],
            mask=cells(mask),
            eos=has_end.flatten()[rollout],
            step=rollout // size,
            steps=steps.flatten()[rollout],
            scored=scored.flatten()[rollout],
            rollout=rollout,
            logp=cells(self.logp),
            ref_logp=None if self.reference is None else cells(self.reference),
            behaviour_logp=cells(self.sampler) if weighs else None,
            settings=arm.settings,
        )
        return batch, rows

    def paid(self, conditions: TransformerConditions) -> tuple[Tensor, Tensor]:
        """What each rollout earns, float64 [S, N], and bool [S, N] whether it ends."""
        is_right = is_success if conditions.must_end else says_sum
        rewards, finished = [], []
        for draw, answers in zip(self.luck, self.tokens.tolist()):
            for problem, answer in zip(draw.prompts, answers):
                finished.append(ends(answer))
                if is_right(problem, answer):
                    rewards.append(1.0 if finished[-1] else conditions.unfinished)
                else:
                    late = 1.0 if finished[-1] else conditions.late
                    rewards.append(conditions.failure * late)
        shape = self.tokens.shape[:2]
        reward = torch.tensor(rewards, dtype=torch.float64).view(shape)
        return reward, torch.tensor(finished).view(shape)


def _gradient(trace: Trace, ungrouped: float) -> Tensor:
    """The loss's gradient; that of rows in no group is multiplied by `ungrouped`."""
    gradient = trace.gradient
    assert gradient is not None  # the batch has logp
    share = torch.where(trace.group < 0, ungrouped, 1.0)
    return gradient * share[:, None]
