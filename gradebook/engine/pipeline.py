"""The order of the stages. One engine is one choice for each of them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import advantages, grouping, loss

Stage = Callable[..., Tensor]


@dataclass(frozen=True)
class Engine:
    """A stage function for every stage, in the order they run. CORRECT is
    the correct one; another engine swaps a stage of it.

    >>> def scale(batch, score, counted, group, baseline):
    ...     return torch.full_like(score, 2.0)
    >>> halved = replace(CORRECT, scale=scale)
    >>> run(halved, Batch(prompt=[0, 0], reward=[1.0, 3.0])).advantage
    tensor([-0.5000,  0.5000], dtype=torch.float64)
    """

    score: Stage
    credited: Stage
    counted: Stage
    group: Stage
    baseline: Stage
    scale: Stage
    standardized: Stage
    advantage: Stage
    trained: Stage
    loss: Callable[..., loss.Loss]


STAGES = tuple(field.name for field in fields(Engine))
"""The stages' names, in order: nine by row, then the loss."""

CORRECT = Engine(
    score=grouping.score,
    credited=grouping.credited,
    counted=grouping.counted,
    group=grouping.group,
    baseline=advantages.baseline,
    scale=advantages.scale,
    standardized=advantages.standardized,
    advantage=advantages.advantage,
    trained=loss.trained,
    loss=loss.loss,
)


@dataclass(frozen=True, eq=False)
class Trace:
    """Every stage's result. Without logp, no loss and no gradient.

    A row that is not in its step (grouping.present) has NaN, false, group
    -1 and gradient 0; a step without any row left has loss 0.

    >>> trace = run(CORRECT, Batch(prompt=[0, 0, 1], reward=[1, 3, 8]))
    >>> trace.group.tolist(), trace.baseline.tolist()
    ([0, 0, 1], [2.0, 2.0, 8.0])
    """

    score: Tensor  # float [R]
    credited: Tensor  # bool [R]
    counted: Tensor  # bool [R]
    group: Tensor  # int64 [R]
    baseline: Tensor  # float [R]
    scale: Tensor  # float [R]
    standardized: Tensor  # float [R]
    advantage: Tensor  # float [R]
    trained: Tensor  # bool [R]
    loss: Tensor | None = None  # float scalar, the sum over steps
    policy_loss: Tensor | None = None  # float [S]
    kl_loss: Tensor | None = None  # float [S]
    policy_gradient: Tensor | None = None  # float [R, T]
    kl_gradient: Tensor | None = None  # float [R, T]

    @property
    def gradient(self) -> Tensor | None:
        """d loss / d logp: policy part + KL part. float [R, T]."""
        if self.policy_gradient is None or self.kl_gradient is None:
            return None
        return self.policy_gradient + self.kl_gradient


def run(engine: Engine, batch: Batch) -> Trace:
    """Every stage of `engine` on `batch`, without the rows that are not in their step
    (grouping.present). Raises GradebookError where a stage cannot be computed
    (whitening fewer than two tokens).

    >>> run(CORRECT, Batch(prompt=[0, 0, 1], reward=[1, 3, 8])).baseline.tolist()
    [2.0, 2.0, 8.0]
    """
    keep = grouping.present(batch)
    if bool(keep.all()):
        return _stages(engine, batch)
    kept = batch.select(keep)
    return _put_back(_stages(engine, kept), batch, keep, kept)


def _stages(engine: Engine, batch: Batch) -> Trace:
    score = engine.score(batch)
    credited = engine.credited(batch)
    counted = engine.counted(batch, credited)
    group = engine.group(batch)
    baseline = engine.baseline(batch, score, counted, group)
    scale = engine.scale(batch, score, counted, group, baseline)
    standardized = engine.standardized(score, credited, baseline, scale)
    advantage = engine.advantage(batch, standardized, credited)
    trained = engine.trained(batch, score, counted, group)
    rows = score, credited, counted, group, baseline, scale, standardized, advantage
    if batch.logp is None:
        return Trace(*rows, trained)
    logp = batch.logp.detach().clone().requires_grad_()
    with torch.enable_grad():
        parts = engine.loss(batch, advantage, trained, logp)
        gradients = [
            torch.autograd.grad(part.sum(), logp, retain_graph=True)[0]
            if part.requires_grad
            else torch.zeros_like(logp)
            for part in parts
        ]
    policy, kl = (part.detach() for part in parts)
    return Trace(*rows, trained, (policy + kl).sum(), policy, kl, *gradients)


def _put_back(trace: Trace, batch: Batch, keep: Tensor, kept: Batch) -> Trace:
    """A trace of the kept rows, spread over all rows, with the losses in the whole
    batch's order of steps, 0 for a step that lost every row."""
    wide: dict[str, Tensor] = {}
    for name in (*STAGES[:-1], "policy_gradient", "kl_gradient"):
        value = getattr(trace, name)
        if value is not None:
            number = value.is_floating_point() and not name.endswith("gradient")
            absent = -1 if name == "group" else torch.nan if number else 0
            wide[name] = value.new_full((batch.rows, *value.shape[1:]), absent)
            wide[name][keep] = value
    step = batch.step_index[keep]
    for name in ("policy_loss", "kl_loss") if trace.loss is not None else ():
        wide[name] = getattr(trace, name).new_zeros(batch.step_count)
        wide[name][step] = getattr(trace, name)[kept.step_index]
    return replace(trace, **wide)
