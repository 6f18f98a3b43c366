"""Many small transformers as one: every weight has a leading axis of models.

A decoder of the usual kind: layer norm before attention and before the two linear maps
around a GELU, learned positions, no biases, an output layer of its own. The leading
axis is unusual: one batched product multiplies with the weights of all models at once.

Letters in shapes: M models, N sequences of each, n tokens, W words, D width,
H heads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gradebook.training.transformer.language import ANSWER, END, PROMPT, WORDS

LENGTH = PROMPT + ANSWER
"""Places of a sequence."""
ModelWeights = Mapping[str, Tensor]
"""Each [M, ...], by name."""


@dataclass(frozen=True)
class Shape:
    layers: int = 2
    width: int = 64
    heads: int = 4


def initial(shape: Shape, seeds: Sequence[int]) -> dict[str, Tensor]:
    """Random weights, float32. A seed gives the same model alone and among others."""
    models = [dict(_initial(shape, seed)) for seed in seeds]
    return {name: torch.stack([m[name] for m in models]) for name in models[0]}


def _initial(shape: Shape, seed: int) -> Iterator[tuple[str, Tensor]]:
    generator = torch.Generator().manual_seed(seed)

    def normal(deviation: float, *size: int) -> Tensor:
        return torch.randn(size, generator=generator) * deviation

    width, inner = shape.width, 4 * shape.width
    # Each layer adds twice to the stream; together they should not blow it up.
    adds = (2 * shape.layers) ** -0.5
    # 0.3, 0.1 and 0.5 follow from nothing: the shipped weights began with them.
    yield "words", normal(0.3, len(WORDS), width)
    yield "places", normal(0.1, LENGTH, width)
    for layer in range(shape.layers):
        yield f"attend {layer}", normal(width**-0.5, width, 3 * width)
        yield f"mix {layer}", normal(width**-0.5 * adds, width, width)
        yield f"up {layer}", normal(width**-0.5, width, inner)
        yield f"down {layer}", normal(inner**-0.5 * adds, inner, width)
    yield "next", normal(0.5 * width**-0.5, width, len(WORDS))


def parameters(weights: ModelWeights) -> int:
    """The number of parameters of one model."""
    return sum(weight[0].numel() for weight in weights.values())


class Cache:
    """Keys and values of the tokens so far, so that a sampler computes one place at a
    time. Float [2, M N, H, LENGTH, D / H] a layer."""

    def __init__(self, shape: Shape, sequences: int, like: Tensor) -> None:
        size = 2, sequences, shape.heads, LENGTH, shape.width // shape.heads
        self.layers = [like.new_empty(size) for _ in range(shape.layers)]


def logits(
    weights: ModelWeights,
    shape: Shape,
    tokens: Tensor,
    first: int = 0,
    cache: Cache | None = None,
) -> Tensor:
    """Of the word after each token, float [M, N, n, W].

    `tokens` int64 [M, N, n] are at the places from `first` on. Earlier tokens are in
    the cache, to which these are added.
    """
    models, sequences, count = tokens.shape
    flat = models, sequences * count
    # A row of the table for each token, as a product that all models share.
    one_hot = F.one_hot(tokens, len(WORDS)).to(weights["words"].dtype)
    stream = one_hot.view(*flat, -1) @ weights["words"]
    places = weights["places"][:, first : first + count]
    stream = stream + places.repeat(1, sequences, 1)
    for layer in range(shape.layers):
        heads = (normed(stream) @ weights[f"attend {layer}"]).view(
            models * sequences, count, 3, shape.heads, shape.width // shape.heads
        )
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        if cache is not None:
            kept = cache.layers[layer][:, :, :, : first + count]
            kept[:, :, :, first:] = torch.stack([key, value])
            key, value = kept
        seen = attended(query, key, value)
        seen = seen.transpose(1, 2).reshape(*flat, shape.width)
        stream = torch.baddbmm(stream, seen, weights[f"mix {layer}"])
        inner = F.gelu(normed(stream) @ weights[f"up {layer}"])
        stream = torch.baddbmm(stream, inner, weights[f"down {layer}"])
    after = normed(stream) @ weights["next"]
    return after.view(models, sequences, count, -1)


def normed(stream: Tensor) -> Tensor:
    return F.layer_norm(stream, stream.shape[-1:])


def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention: [M N, H, n, D / H]."""
    if query.shape[2] > 1:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    # One token attends to all before it: too small a product for the general function.
    weight = (query * key).sum(-1) * query.shape[-1] ** -0.5
    return (weight.softmax(-1)[..., None] * value).sum(-2, keepdim=True)


def log_chances(
    weights: ModelWeights, shape: Shape, prompts: Tensor, answers: Tensor
) -> Tensor:
    """The log-probability of each token of the answers, int64 [M, N, ANSWER], after
    their prompts, int64 [M, N, PROMPT]. Float [M, N, ANSWER]."""
    tokens = torch.cat([prompts, answers[..., :-1]], -1)
    after = logits(weights, shape, tokens)[:, :, PROMPT - 1 :]
    return after.log_softmax(-1).gather(-1, answers[..., None]).squeeze(-1)


@dataclass(frozen=True)
class Answers:
    """Sampled answers. After its end an answer is filled with END."""

    tokens: Tensor  # int64 [M, N, ANSWER]
    mask: Tensor  # bool [M, N, ANSWER] the token is the answer's own
    logp: Tensor  # float [M, N, ANSWER] by the sampler, with its noise


@torch.no_grad()
def sampled(
    weights: ModelWeights,
    shape: Shape,
    prompts: Tensor,
    gumbel: Tensor,
    noise: Tensor | None = None,
) -> Answers:
    """An answer to each prompt, int64 [M, N, PROMPT].

    The word with the largest sum of log-probability and Gumbel noise, float
    [ANSWER, M, N, W], is a sample; noise of 0 makes it the likeliest word.
    `noise`, of the same shape, is added to the sampler's logits.
    """
    models, sequences, _ = prompts.shape
    cache = Cache(shape, models * sequences, weights["words"])
    done = torch.zeros_like(prompts[..., 0], dtype=torch.bool)
    after = logits(weights, shape, prompts, 0, cache)[:, :, -1]
    tokens, mask, logp = [], [], []
    for place in range(ANSWER):
        if noise is not None:
            after = after + noise[place]
        chances = after.log_softmax(-1)
        word = (chances + gumbel[place]).argmax(-1)
        word = torch.where(done, END, word)
        tokens.append(word)
        mask.append(~done)
        logp.append(chances.gather(-1, word[..., None]).squeeze(-1))
        done = done | (word == END)
        if place + 1 < ANSWER:
            following = word[..., None]
            after = logits(weights, shape, following, PROMPT + place, cache)[:, :, -1]
    return Answers(*(torch.stack(each, -1) for each in (tokens, mask, logp)))


def gumbel_noise(generator: torch.Generator, sequences: int) -> Tensor:
    """Float32 [ANSWER, N, W]."""
    size = ANSWER, sequences, len(WORDS)
    # torch.rand gives 0 or at least 2 ** -24 = 6e-8: only 0, whose logarithm is
    # infinite, is replaced.
    uniform = torch.rand(size, generator=generator).clamp_(min=1e-12)
    return uniform.log_().neg_().log_().neg_()


def shorten(gradients: Sequence[Tensor], longest: float) -> None:
    """Shortens each model's gradient to this length, in place, as
    torch.nn.utils.clip_grad_norm_ does it for one model, with its 1e-6."""
    lengths = [torch.linalg.vector_norm(each.flatten(1), dim=1) for each in gradients]
    length = torch.linalg.vector_norm(torch.stack(lengths), dim=0)
    factor = (longest / (length + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))
