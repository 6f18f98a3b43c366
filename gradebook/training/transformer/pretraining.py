"""From random weights to a model that gets about half of the sums right.

The model learns to write the texts of language.py. It is stopped early, at the
first look at which ENOUGH of its answers to held-out prompts are right and
end: what is left to learn is for reinforcement.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gradebook.training.transformer import model
from gradebook.training.transformer.grpo import LONGEST
from gradebook.training.transformer.language import (
    ANSWER,
    PROMPT,
    Problem,
    Texts,
    is_success,
    problems,
)
from gradebook.training.transformer.model import ModelWeights, Shape

ENOUGH = 0.4
"""The share of right answers at which a model is kept. Groups of 8 then have right and
wrong answers, and more than half is left to learn. The four shipped models got 0.45 to
0.54 of 256 prompts right with other luck (2026-11-28)."""
LOOK = 25
"""Steps from one look to the next."""
LONGEST_TRAINING = 3000
"""Steps after which a model is kept as it is: ten times as many as two seeds of the
usual Shape needed (300 and 325, 16 s of one core each; 2026-11-28)."""
TEXTS = 128
"""Texts of a step, as many as an update of `grpo` has answers."""
LOOKED_AT = 256
"""Held-out prompts of a look: the share's standard error is at most 3.1 points."""
RATE, BETAS, WARM_UP = 1e-3, (0.9, 0.98), 50
"""Adam's learning rate, its betas (those of "Attention is all you need", section 5.3),
and the steps over which the rate rises."""
SHIPPED = Path(__file__).with_name("pretrained")
SHIPPED_SEEDS = range(4)
"""The seeds whose weights are shipped: a file each, float16, of a model of the usual
Shape, its weights one after the other in the order of `initial`."""
PAD = -1
"""A target that the loss passes over."""


def pretrained(
    shape: Shape,
    seeds: Sequence[int],
    device: str = "cpu",
    progress: Callable[[int, list[float]], object] = lambda step, rates: None,
) -> dict[str, Tensor]:
    """The weights of each seed as they were at its first look with ENOUGH, or after
    the longest training. `progress` is told the step and each seed's success rate."""
    start = model.initial(shape, seeds)
    weights = {name: w.to(device).requires_grad_() for name, w in start.items()}
    kept = {name: w.detach().clone() for name, w in weights.items()}
    waiting = set(range(len(seeds)))
    texts = [Texts(seed) for seed in seeds]
    luck = [torch.Generator().manual_seed(seed) for seed in seeds]
    adam = torch.optim.Adam(weights.values(), lr=RATE, betas=BETAS)
    step = 0
    while waiting and step < LONGEST_TRAINING:
        step += 1
        tokens = torch.tensor([_padded(each) for each in texts], device=device)
        adam.zero_grad()
        _losses(weights, shape, tokens).sum().backward()
        grads = [w.grad for w in weights.values() if w.grad is not None]
        model.shorten(grads, LONGEST)
        adam.param_groups[0]["lr"] = RATE * min(1, step / WARM_UP)
        adam.step()
        if step % LOOK == 0:
            rates = looked_at(weights, shape, luck)
            progress(step, rates)
            ready = {s for s in waiting if rates[s] >= ENOUGH}
            _keep(kept, weights, waiting if step == LONGEST_TRAINING else ready)
            waiting -= ready
    return kept


def _keep(kept: ModelWeights, weights: ModelWeights, places: Iterable[int]) -> None:
    """Copies the weights of the models at these places into `kept`."""
    for name, weight in weights.items():
        for place in places:
            kept[name][place] = weight.detach()[place]


def _losses(weights: ModelWeights, shape: Shape, tokens: Tensor) -> Tensor:
    """The mean cross entropy of the answers' tokens, of each model. float [M]

    tokens  int64 [M, TEXTS, PROMPT + ANSWER], PAD past a text's end
    """
    words, expected = tokens[..., :-1].clamp(min=0), tokens[..., PROMPT:]
    after = model.logits(weights, shape, words)[:, :, PROMPT - 1 :]
    loss = F.cross_entropy(
        after.flatten(0, 2),
        expected.flatten(),
        ignore_index=PAD,
        reduction="none",
    ).view(len(tokens), -1)
    return loss.sum(-1) / (expected != PAD).flatten(1).sum(-1)


def _padded(texts: Texts) -> list[list[int]]:
    """A step's texts, each of PROMPT + ANSWER tokens."""
    texts_of_step = [texts.next() for _ in range(TEXTS)]
    return [text + [PAD] * (PROMPT + ANSWER - len(text)) for text in texts_of_step]


def looked_at(
    weights: ModelWeights, shape: Shape, luck: Sequence[torch.Generator]
) -> list[float]:
    """The share of sampled answers to held-out prompts that are right and end, [M]."""
    device = weights["words"].device
    _, held_out = problems()
    problems_asked: list[Problem] = list(held_out[:LOOKED_AT])
    prompts = torch.tensor([p.tokens for p in problems_asked], device=device)
    noise = torch.stack([model.gumbel_noise(g, len(problems_asked)) for g in luck], 1)
    prompts = prompts.expand(len(luck), -1, -1)
    answers = model.sampled(weights, shape, prompts, noise.to(device)).tokens.tolist()
    return [
        sum(map(is_success, problems_asked, of_model)) / len(problems_asked)
        for of_model in answers
    ]


def shipped_weights(seeds: Sequence[int]) -> dict[str, Tensor]:
    """The pretrained weights of some of SHIPPED_SEEDS, float32 [S, ...]."""
    models = [_read(SHIPPED / f"seed-{seed}.f16") for seed in seeds]
    return {name: torch.stack([m[name] for m in models]) for name in models[0]}


def _read(path: Path) -> dict[str, Tensor]:
    every = torch.from_numpy(np.fromfile(path, "<f2").astype("f4"))
    like = {name: w[0] for name, w in model.initial(Shape(), [0]).items()}
    parts = every.split([weight.numel() for weight in like.values()])
    return {name: part.view_as(like[name]) for name, part in zip(like, parts)}


def ship(weights: Mapping[str, Tensor]) -> None:
    """Writes the files of the first models of these weights."""
    SHIPPED.mkdir(exist_ok=True)
    for seed in SHIPPED_SEEDS:
        flat = torch.cat([weight[seed].flatten() for weight in weights.values()])
        flat.half().numpy().astype("<f2").tofile(SHIPPED / f"seed-{seed}.f16")
