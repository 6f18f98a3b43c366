"""The push on a token worked out with its numbers, for both engines.

push = -N * weight * (surrogate slope * off_policy + surrogate * off_policy slope
                      + beta * kl slope)

N are the unmasked tokens of the step. A slope says how a stage's number changes with
the token's logp; a number that an engine holds constant has slope 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradebook.analysis.comparison import Comparison, push
from gradebook.analysis.formula import MOST_TERMS, Line, Part
from gradebook.analysis.laws import listed
from gradebook.analysis.token_credit import (
    earned,
    earned_in_push,
    number_part,
)
from gradebook.core.batch import Batch
from gradebook.core.formatting import plain, same, settled, short, signed
from gradebook.engine.pipeline import Trace


@dataclass(frozen=True)
class Factors:
    """What the push of a token is made of, in one engine."""

    trains: bool  # it enters the loss
    praise: float  # minus the surrogate's slope
    off_policy: float
    from_weight: float  # minus surrogate times the off-policy weight's slope
    leash: float  # beta times the slope of the KL
    share: float  # tokens of the step times the token's weight
    push: float


def worked_token(comparison: Comparison, row: int, token: int) -> list[list[Line]]:
    """The formula of a token with its numbers, correct and faulty: lines of parts."""
    batch, traces = comparison.batch, (comparison.correct, comparison.faulty)
    if batch.logp is None:
        return [earned(comparison, trace, row, token) for trace in traces]
    both = [factors(batch, trace, row, token) for trace in traces]
    sides: list[list[Line]] = []
    for number, (trace, this) in enumerate(zip(traces, both)):
        other = both[1 - number]
        if not this.trains:
            why = _why_not(batch, trace, row, token)
            sides.append([(Part("0.000", other.trains), Part(f": {why}"))])
            continue
        lines = [tuple(_product(this, other)), (Part(_names(this, other)),)]
        lines += ((Part(text),) for text in _details(batch, trace, row, token))
        sides.append([*lines, *earned_in_push(comparison, trace, row, token)])
    return sides


def factors(batch: Batch, trace: Trace, row: int, token: int) -> Factors:
    """The factors of a token's push. Raises ValueError without logp."""
    pushes = push(batch, trace)
    if pushes is None or trace.learns is None or trace.weight is None:
        raise ValueError("a batch without logp has no push")

    def at(stage: str, slope: bool = False) -> float:
        values = trace.slope(stage) if slope else getattr(trace, stage)
        return 0.0 if values is None else float(values[row, token])

    step = batch.step == batch.step[row]
    tokens = int(batch.mask[step].sum())
    return Factors(
        trains=bool(trace.learns[row, token]),
        praise=-at("surrogate", slope=True),
        off_policy=at("off_policy"),
        from_weight=-at("surrogate") * at("off_policy", slope=True),
        leash=batch.settings.beta * at("kl", slope=True),
        share=tokens * float(trace.weight[row]),
        push=float(pushes[row, token]),
    )


def _product(this: Factors, other: Factors) -> Iterator[Part]:
    """(praise * weight + from the weight - leash) * share = push, without factors that
    are neutral in both engines."""
    terms = list(_terms(this, other))
    shared = not (bool(same(this.share, 1.0)) and bool(same(other.share, 1.0)))
    several = len(terms) > 1 and shared
    if several:
        yield Part("(")
    for place, (sign, parts) in enumerate(terms):
        if place or sign == "−":
            yield Part(f" {sign} " if place else sign)
        yield from parts
    if several:
        yield Part(")")
    if shared:
        yield Part(" × ")
        yield number_part(this.share, other.share, "weight")
    yield Part(" = ")
    yield number_part(this.push, other.push, "push", sign=True)


def _terms(this: Factors, other: Factors) -> Iterator[tuple[str, list[Part]]]:
    weighted = not all(bool(same(side.off_policy, 1.0)) for side in (this, other))
    parts = [number_part(this.praise, other.praise, "surrogate")]
    if weighted:
        parts += [
            Part(" × "),
            number_part(this.off_policy, other.off_policy, "off_policy"),
        ]
    yield "+", parts
    rest = (("from_weight", "+", "off_policy"), ("leash", "−", "kl"))
    for name, sign, stage in rest:
        value, twin = getattr(this, name), getattr(other, name)
        if settled(value) or settled(twin):
            turned = value < 0
            mark = {"+": "−", "−": "+"}[sign] if turned else sign
            size = number_part(abs(value), abs(twin), stage)
            differs = size.differs or turned != (twin < 0)
            yield mark, [size._replace(differs=differs)]


def _names(this: Factors, other: Factors) -> str:
    """What the numbers of the product are."""
    both = (this, other)
    words = "push of the surrogate"
    if not all(bool(same(side.off_policy, 1.0)) for side in both):
        words += " × off-policy weight"
    if any(settled(side.from_weight) for side in both):
        words += ", with what the weight's own slope adds"
    if any(settled(side.leash) for side in both):
        words += ", minus beta × slope of the KL"
    if not all(bool(same(side.share, 1.0)) for side in both):
        several = "," in words or "×" in words
        words += ", all" * several + " × tokens of the step × weight of a token"
    return words


def _details(batch: Batch, trace: Trace, row: int, token: int) -> Iterator[str]:
    """Where the factors come from."""
    settings, logp = batch.settings, float(batch.logp[row, token])
    advantage = float(trace.token_advantage[row, token])
    of_surrogate = f"advantage {signed(settled(advantage))}"
    if batch.old_logp is not None and trace.log_ratio is not None:
        ratio = float(trace.log_ratio[row, token].exp())
        of_surrogate += f", ratio {plain(ratio)}"
        slope = trace.slope("surrogate")
        if slope is not None and not settled(float(slope[row, token])) and advantage:
            of_surrogate += ", clipped"
    yield of_surrogate
    yield from _shared_advantage(batch, trace, row, token)
    yield from _weight_slope(trace, row, token)
    if settings.beta and batch.ref_logp is not None:
        gap = logp - float(batch.ref_logp[row, token])
        slope = trace.slope("kl")
        size = 0.0 if slope is None else float(slope[row, token])
        yield (
            f"KL ({settings.kl_estimator}): logp − ref logp = {short(gap, 4)}, slope"
            f" {signed(settled(size))}, beta {short(settings.beta)}"
        )
    weight = float(trace.weight[row]) if trace.weight is not None else 0.0
    step = batch.step == batch.step[row]
    if weight:
        tokens = int(batch.mask[step].sum())
        share = f"1 / {short(1 / weight)}"
        yield f"tokens of the step: {tokens}, weight of a token: {share}"


def _shared_advantage(
    batch: Batch, trace: Trace, row: int, token: int
) -> Iterator[str]:
    """The advantages at the token's position in its pass, if the surrogate is made of
    their sum and not of the token's own advantage."""
    s = batch.settings
    if s.surrogate != "ppo" or trace.surrogate is None or trace.log_ratio is None:
        return
    ratio = float(trace.log_ratio[row, token].exp())
    if not 1 - s.clip_low <= ratio <= 1 + s.clip_high:
        return
    used = -float(trace.surrogate[row, token]) / ratio
    if same(used, float(trace.token_advantage[row, token])):
        return
    of_pass = batch.within_step(batch.place // batch.micro_batch[batch.step_index])
    learns = torch.zeros_like(batch.mask) if trace.learns is None else trace.learns
    rows = (learns[:, token] & (of_pass == of_pass[row])).nonzero().flatten().tolist()
    numbers = [settled(float(trace.token_advantage[r, token])) for r in rows]
    if not same(used, sum(numbers)):
        return
    text = f"trained with the sum of the advantages of {listed(rows)} at token {token}:"
    if len(rows) <= MOST_TERMS:
        text += f" {signed(numbers[0])}"
        for x in numbers[1:]:
            text += f" {'−' if x < 0 else '+'} {plain(abs(x))}"
        text += " ="
    yield f"{text} {signed(settled(used))}"


def _weight_slope(trace: Trace, row: int, token: int) -> Iterator[str]:
    """What the off-policy weight's own slope adds to the push, if it has one."""
    slope = trace.slope("off_policy")
    if slope is None or trace.surrogate is None:
        return
    surrogate, of_weight = (float(x[row, token]) for x in (trace.surrogate, slope))
    if settled(surrogate * of_weight):
        product = f"{plain(surrogate)} × {plain(of_weight)}"
        yield (
            "the weight's own slope adds −(surrogate × slope of the weight) ="
            f" −({product}) = {signed(-surrogate * of_weight)}"
        )


def _why_not(batch: Batch, trace: Trace, row: int, token: int) -> str:
    if not bool(batch.mask[row, token]):
        return "the token is masked"
    if not bool(trace.trained[row]):
        return "this engine does not train the row"
    if not int(batch.kept_steps[row]):
        return "no transition of the row is kept"
    return "the token is rejected as too far off policy"
