"""What chance decides in a training run, the same for all its engines.

Letters in shapes: S seeds, P prompts, G rollouts of one prompt, T actions,
L places, A actions to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.training.environments import Environment

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
