"""The order of the stages, in three chapters. One engine is one choice for each of
them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial

import torch
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import advantages, grouping, loss, tokens

Stage = Callable[..., Tensor]


@dataclass(frozen=True)
class Engine:
    """A stage function for every stage, in the order they run. CORRECT is
    the correct one; another engine swaps a stage of it.

    A stage's arguments are the batch and earlier stages' results, by name;
    its docstring says the shape of its result.

    >>> def scale(batch, score, counted, group, baseline):
    ...     return torch.full_like(score, 2.0)
    >>> halved = replace(CORRECT, scale=scale)
    >>> run(halved, Batch(prompt=[0, 0], reward=[1.0, 3.0])).advantage
    tensor([-0.5000,  0.5000], dtype=torch.float64)
    """

    # Rows: from a reward to an advantage.
    score: Stage
    credited: Stage
    counted: Stage
    group: Stage
    baseline: Stage
    scale: Stage
    standardized: Stage
    advantage: Stage
    trained: Stage
    # Tokens: from a row's number to its tokens.
    token_reward: Stage
    token_return: Stage
    token_advantage: Stage
    # The loss, token by token.
    learns: Stage
    log_ratio: Stage
    surrogate: Stage
    off_policy: Stage
    kl: Stage
    weight: Stage


STAGES = tuple(field.name for field in fields(Engine))
"""The stages' names, in order."""
CHAPTERS: Mapping[str, tuple[str, ...]] = {
    "rows": STAGES[:9],
    "tokens": STAGES[9:12],
    "loss": STAGES[12:],
}
"""The stages of each chapter. The loss is computed with logp only."""
SLOPES = ("log_ratio", "surrogate", "off_policy", "kl")
"""The stages whose slope matters beside their value (`Trace.slope`)."""

CORRECT = Engine(
    score=grouping.score,
    credited=grouping.credited,
    counted=grouping.counted,
    group=grouping.group,
    baseline=advantages.baseline,
    scale=advantages.scale,
    standardized=advantages.standardized,
    advantage=advantages.advantage,
    trained=grouping.trained,
    token_reward=tokens.token_reward,
    token_return=tokens.token_return,
    token_advantage=tokens.token_advantage,
    learns=loss.learns,
    log_ratio=loss.log_ratio,
    surrogate=loss.surrogate,
    off_policy=loss.off_policy,
    kl=loss.kl,
    weight=loss.weight,
)


@dataclass(frozen=True, eq=False)
class Trace:
    """Every stage's result, under the stage's name; those of the loss are None
    without logp. The stages' docstrings say what each result is.

    tokens    gives the results of the second chapter
    slopes    gives the slopes of the stages in SLOPES
    policy_loss, kl_loss          the two parts of each step's loss
    policy_gradient, kl_gradient  the two parts of `gradient`

    A row that is not in its step (grouping.present) has NaN, false, group
    -1 and gradient 0; a step without any row left has loss 0.

    >>> trace = run(CORRECT, Batch(prompt=[0, 0, 1], reward=[1, 3, 8]))
    >>> trace.group.tolist(), trace.baseline.tolist()
    ([0, 0, 1], [2.0, 2.0, 8.0])
    >>> trace.token_advantage.round(decimals=3).tolist()
    [[-0.707], [0.707], [0.0]]
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
    tokens: Callable[[], Mapping[str, Tensor]]  # the second chapter, once it is read
    learns: Tensor | None = None  # bool [R, T]
    log_ratio: Tensor | None = None  # float [R, T]
    surrogate: Tensor | None = None  # float [R, T]
    off_policy: Tensor | None = None  # float [R, T]
    kl: Tensor | None = None  # float [R, T]; None too if beta is 0
    weight: Tensor | None = None  # float64 [R]
    loss: Tensor | None = None  # float scalar, the sum over steps
    policy_loss: Tensor | None = None  # float [S]
    kl_loss: Tensor | None = None  # float [S]
    policy_gradient: Tensor | None = None  # float [R, T]
    kl_gradient: Tensor | None = None  # float [R, T]
    slopes: Callable[[], Mapping[str, Tensor]] = dict  # of SLOPES, once they are read

    @property
    def token_reward(self) -> Tensor:
        """What each token is paid. float [R, T]."""
        return self.tokens()["token_reward"]

    @property
    def token_return(self) -> Tensor:
        """What each token is owed. float [R, T]."""
        return self.tokens()["token_return"]

    @property
    def token_advantage(self) -> Tensor:
        """What each token is trained with. float [R, T]."""
        return self.tokens()["token_advantage"]

    @property
    def gradient(self) -> Tensor | None:
        """d loss / d logp: policy part + KL part. float [R, T]."""
        if self.policy_gradient is None or self.kl_gradient is None:
            return None
        return self.policy_gradient + self.kl_gradient

    def slope(self, stage: str) -> Tensor | None:
        """How the sum of a stage in SLOPES changes with each token's logp, float
        [R, T]; None for other stages, and for a stage that did not
        run."""
        return self.slopes().get(stage)


def run(engine: Engine, batch: Batch) -> Trace:
    """Every stage of `engine` on `batch`, without the rows that are not in their step
    (grouping.present). Raises GradebookError if a stage cannot be
    computed (whitening fewer than two tokens).

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
    tokens = cache(partial(_tokens, engine, batch, advantage, credited))
    rows = score, credited, counted, group, baseline, scale, standardized, advantage
    trace = Trace(*rows, trained, tokens)
    if batch.settings.credit != "row":
        tokens()  # it may raise
    return trace if batch.logp is None else _with_loss(engine, batch, trace)


def _tokens(
    engine: Engine, batch: Batch, advantage: Tensor, credited: Tensor
) -> Mapping[str, Tensor]:
    token_reward = engine.token_reward(batch, advantage)
    token_return = engine.token_return(batch, advantage, token_reward)
    token_advantage = engine.token_advantage(batch, token_return, credited)
    return {
        "token_reward": token_reward,
        "token_return": token_return,
        "token_advantage": token_advantage,
    }


def _with_loss(engine: Engine, batch: Batch, trace: Trace) -> Trace:
    beta, kl = batch.settings.beta, None
    learns = engine.learns(batch, trace.trained)
    advantage = torch.where(learns, trace.token_advantage, 0)
    logp = torch.where(learns, batch.logp, 0).requires_grad_()
    slope = partial(_slope, logp, learns)
    with torch.enable_grad():
        log_ratio = engine.log_ratio(batch, learns, logp)
        surrogate = engine.surrogate(batch, advantage, log_ratio, logp)
        off_policy = engine.off_policy(batch, learns, logp)
        if beta:
            kl = engine.kl(batch, learns, logp)
        weight = engine.weight(batch, learns)
        parts = loss.summed(batch, learns, surrogate * off_policy, kl, weight)
        gradients = [slope(part) for part in parts]
    of_policy, of_kl = (part.detach() for part in parts)
    stages = {"log_ratio": log_ratio, "surrogate": surrogate, "off_policy": off_policy}
    stages |= {} if kl is None else {"kl": kl}
    return replace(
        trace,
        learns=learns,
        log_ratio=log_ratio.detach(),
        surrogate=surrogate.detach(),
        off_policy=off_policy.detach(),
        kl=None if kl is None else kl.detach(),
        weight=weight,
        loss=(of_policy + of_kl).sum(),
        policy_loss=of_policy,
        kl_loss=of_kl,
        policy_gradient=gradients[0],
        kl_gradient=gradients[1],
        slopes=cache(lambda: {name: slope(v) for name, v in stages.items()}),
    )


def _slope(logp: Tensor, learns: Tensor, values: Tensor) -> Tensor:
    """d sum of the values / d logp at the tokens that learn, else 0. float [R, T]."""
    if not values.requires_grad:
        return torch.zeros_like(learns, dtype=logp.dtype)
    slope = torch.autograd.grad(values.sum(), logp, retain_graph=True)[0]
    return torch.where(learns, slope, 0)


GRADIENTS = ("policy_gradient", "kl_gradient")


def _put_back(trace: Trace, batch: Batch, keep: Tensor, kept: Batch) -> Trace:
    """A trace of the kept rows, spread over all rows, with the losses in the whole
    batch's order of steps, 0 for a step that lost every row."""

    def wide(values: Mapping[str, Tensor], zero: bool = False) -> dict[str, Tensor]:
        spread = {}
        for name, value in values.items():
            absent = torch.nan if value.is_floating_point() and not zero else 0
            absent = -1 if name == "group" else absent
            spread[name] = value.new_full((batch.rows, *value.shape[1:]), absent)
            spread[name][keep] = value
        return spread

    def there(names: tuple[str, ...]) -> dict[str, Tensor]:
        named = {name: getattr(trace, name) for name in names}
        return {name: value for name, value in named.items() if value is not None}

    by_row = wide(there((*CHAPTERS["rows"], *CHAPTERS["loss"])))
    gradients = wide(there(GRADIENTS), zero=True)
    step = batch.step_index[keep]
    of_step = there(("policy_loss", "kl_loss"))
    for name, value in of_step.items():
        of_step[name] = value.new_zeros(batch.step_count)
        of_step[name][step] = value[kept.step_index]
    return replace(
        trace,
        **by_row,
        **gradients,
        **of_step,
        tokens=cache(lambda: wide(trace.tokens())),
        slopes=cache(lambda: wide(trace.slopes(), zero=True)),
    )
