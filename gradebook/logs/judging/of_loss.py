"""What a recording says of its loss: whether the KL pulls toward the reference, whether
it has a gradient, and whether the ratio's anchor moves.

Each finding needs columns that a trainer hands to `gradebook.Recorder`, by hand:

* `logp`, `ref_logp`, `mask`, `loss` and `policy_loss`: the loss less its policy part is
  beta times the KL; if that number has the other sign, the KL is subtracted.
* The same log-probabilities, `grad_norm`, and a step whose advantages are all 0: there
  the KL alone moves the policy, so a norm of exactly 0 says that it has no gradient.
* `logp`, `old_logp` and `mini_batch`: after the first mini-batch of a step the policy
  has moved, so its ratio to the anchor cannot be 1 at every token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted, short
from gradebook.core.settings import CHOICES, Settings
from gradebook.core.tolerance import EXACT
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.judging.declaration import declaration_of

if TYPE_CHECKING:
    from gradebook.logs.recording import Recording

MOST_STEPS = 64
"""Steps of a recording that are looked at, from the first on. A step costs one engine
run for each estimator of the KL and each denominator, twelve in all. Two steps with a
KL tell beta, and one without advantages tells whether it has a gradient."""
CLOSE = 1e-3
"""The share by which beta, as each step's loss has it, may differ between steps, since
trainers log losses in float32 and sum them in another order. Of 300 made runs of eight
steps (2026-11-29) it kept the right estimator in 86 % and also another one in 7 %; ten
times as much kept 94 % and 60 %, a tenth 63 % and none."""
CLAMPED = 10.0
"""verl cuts a token's k3 off here (`kl_penalty` in its core_algos.py), and so does
NeMo-RL (`kl_output_clamp_value`; both read on 2026-11-29). That is a gap of 2.6 from
the reference: a step with a larger k3 says nothing about beta."""


@dataclass(frozen=True)
class LossFit:
    """An estimator and a denominator of the loss, and beta as each step has it."""

    estimator: str
    loss: str
    betas: tuple[float, ...]

    @property
    def beta(self) -> float:
        return float(np.median(self.betas))

    @property
    def spread(self) -> float:
        """The largest distance of a step's beta from the median, as a share of it."""
        gaps = (abs(beta - self.beta) for beta in self.betas)
        return max(gaps) / max(abs(self.beta), 1e-12)


def findings(recording: Recording, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with the recorded losses, a sentence for each finding. `settings`
    are the declared ones."""
    declared = replace(Settings(), **declaration_of(settings).settings)
    steps = [step for step, _ in zip(recording.losses(), range(MOST_STEPS))]
    sentences = turned(steps, declared), unmoved(steps), anchored(steps)
    return tuple(filter(None, sentences))


def turned(steps: list[dict[str, Any]], settings: Settings) -> str:
    """The sentence if the KL is subtracted from the loss, else ""."""
    losses = [s for s in steps if _has(s, "loss", "policy_loss", "logp", "ref_logp")]
    fits = [fit for fit in _fits(losses, settings) if fit.beta]
    close = [fit for fit in fits if fit.spread <= CLOSE and len(fit.betas) > 1]
    agree = close[:1] or fits
    if not agree or any(fit.beta > 0 or max(fit.betas) >= 0 for fit in agree):
        return ""
    if not close:
        return (
            "The KL is subtracted from the loss: in"
            f" {counted(len(losses), 'step')} the loss is on the wrong side of its"
            " policy part, whatever the KL's estimator."
        )
    fit = close[0]
    return (
        f"The KL is subtracted from the loss: in {counted(len(fit.betas), 'step')} the"
        f" loss less its policy part is {short(fit.beta, 4)} times the KL"
        f" ({fit.estimator}, summed as {fit.loss} does), and no beta is below 0."
    )


def _fits(steps: list[dict[str, Any]], settings: Settings) -> Iterator[LossFit]:
    """Beta as the steps have it, by each estimator and denominator; those that
    fit first, and of them the declared one."""
    fits = []
    for estimator in map(str, CHOICES["kl_estimator"]):
        for loss in map(str, CHOICES["loss"]):
            asked = replace(settings, beta=1.0, kl_estimator=estimator, loss=loss)
            betas = tuple(b for step in steps if (b := _beta(step, asked)) is not None)
            if betas:
                fits.append(LossFit(estimator, loss, betas))
    declared = settings.kl_estimator, settings.loss

    def far(fit: LossFit) -> tuple[bool, bool, float]:
        other = (fit.estimator, fit.loss) != declared
        return fit.spread > CLOSE, other, fit.spread

    yield from sorted(fits, key=far)


def _beta(step: dict[str, Any], settings: Settings) -> float | None:
    """What the step's KL is multiplied by in its loss; None if it has none."""
    gap = np.where(step["mask"], step["ref_logp"] - step["logp"], 0)
    if not (np.expm1(gap) - gap).max(initial=0) <= CLAMPED:
        return None
    columns = {n: step[n] for n in ("prompt", "reward", "mask", "logp", "ref_logp")}
    try:
        kl = run(CORRECT, Batch(**columns, settings=settings)).kl_loss
    except GradebookError:  # too few tokens to whiten, for example
        return None
    size = 0.0 if kl is None else float(kl.sum())
    return (step["loss"] - step["policy_loss"]) / size if abs(size) > EXACT else None


def unmoved(steps: list[dict[str, Any]]) -> str:
    """The sentence if the KL has no gradient, else ""."""
    flat = [
        step
        for step in steps
        if _has(step, "grad_norm", "logp", "ref_logp", "loss", "policy_loss")
        and not np.any(step["advantage"])
        and step["loss"] != step["policy_loss"]
    ]
    if not flat or any(step["grad_norm"] for step in flat):
        return ""
    return (
        f"The KL has no gradient: in {counted(len(flat), 'step')} all advantages are 0"
        " and the loss has a KL, but the norm of the gradient is exactly 0."
    )


def anchored(steps: list[dict[str, Any]]) -> str:
    """The sentence if the old log-probabilities are those of each mini-batch, else
    ""."""
    later = []
    for step in steps:
        if _has(step, "logp", "old_logp", "mini_batch"):
            number = np.asarray(step["mini_batch"])
            rows = number > number.min()
            here = step["mask"][rows]
            if here.any():
                same = step["logp"][rows][here] == step["old_logp"][rows][here]
                later.append(bool(same.all()))
    if not later or not all(later):
        return ""
    return (
        f"The ratio's anchor moves: in {counted(len(later), 'step')} `logp` is"
        " `old_logp` at every token after the first mini-batch too, so the ratio is"
        " always 1 and nothing is ever clipped (or the learning rate was 0)."
    )


def _has(step: dict[str, Any], *names: str) -> bool:
    """The step has these columns, and these numbers are not NaN."""
    cells = [step.get(name) for name in names]
    return all(
        cell is not None and not (isinstance(cell, float) and math.isnan(cell))
        for cell in cells
    )
