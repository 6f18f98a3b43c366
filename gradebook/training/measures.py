"""Exact figures of a policy: expectations over all its rollouts, computed
by dynamic programming over the automaton and not sampled.

A policy is a float64 tensor [..., P, L, A] of chances. Letters in shapes:
P prompts, L places, K states, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradebook.training.environments import Environment

MORE, LESS, SAME = "more", "less", "same"
"""What the faulty run's measure is, beside the correct one's."""
KINDS = (MORE, LESS, SAME)
"""In the order of a measure's choices."""


@dataclass(frozen=True)
class Measure:
    """A figure of a policy.

    function  float64 [...] of an environment and a policy
    title     the axis of the curves
    unit      what a difference is counted in, times `factor`
    reach     the lowest and the highest value of the axis
    question  what to predict, with {} for the faulty and the correct run
    more, less  what is said of the faulty run, the first {}, if its value is
              larger or smaller by the second {}
    choices   the answers for more, less and no difference
    """

    function: Callable[[Environment, Tensor], Tensor]
    title: str
    unit: str
    factor: float
    reach: tuple[float, float]
    question: str
    more: str
    less: str
    choices: tuple[str, str, str]


def success(environment: Environment, policy: Tensor) -> Tensor:
    """The chance that a rollout succeeds, mean over the prompts that can be
    solved. float64 [...]."""
    stops, _ = _rollout(environment, policy)
    chance = stops[..., environment.succeeds].sum(-1)
    return chance[..., environment.solvable].mean(-1)


def wasted_turns(environment: Environment, policy: Tensor) -> Tensor:
    """The expected number of actions of a rollout, mean over the prompts
    that cannot be solved. float64 [...]."""
    _, turns = _rollout(environment, policy)
    return turns[..., ~environment.solvable].mean(-1)


def letters_in_use(environment: Environment, policy: Tensor) -> Tensor:
    """The effective number of letters where any letter will do: exp of the
    entropy of the letter, given that it is one (the last action is EOS).
    Mean over prompts and places. float64 [...]."""
    letter = policy[..., list(environment.free), :-1]
    letter = letter / letter.sum(-1, keepdim=True)
    entropy = torch.special.entr(letter).sum(-1)
    return entropy.exp().mean((-1, -2))


def _rollout(environment: Environment, policy: Tensor) -> tuple[Tensor, Tensor]:
    """The chance of each state in which a rollout stops, float64
    [..., P, K], and the expected number of its actions, [..., P]."""
    after, ends = environment.after, environment.ends
    states = len(ends)
    acts = policy[..., environment.place, :]
    onward = torch.nn.functional.one_hot(after, states).to(policy.dtype)
    # float64 [..., P, K, K]: the chance to go from one state to another.
    move = torch.einsum("...pka,pkaj->...pkj", acts, onward)
    visits = policy.new_zeros(*move.shape[:-2], 1, states)
    visits[..., 0] = 1
    turns = policy.new_zeros(move.shape[:-2])
    for _ in range(environment.most):
        turns = turns + visits[..., 0, ~ends].sum(-1)
        visits = visits @ move
    return visits[..., 0, :], turns


MEASURES: Mapping[str, Measure] = {
    "success": Measure(
        success,
        "chance of success",
        "points",
        100,
        (0, 1),
        "is {} better or worse than {}?",
        "the success rate of {} is {} points higher",
        "the success rate of {} is {} points lower",
        ("better", "worse", "no difference"),
    ),
    "wasted_turns": Measure(
        wasted_turns,
        "turns on prompts that nobody can solve",
        "turns",
        1,
        (0, 8),
        "is {} better or worse than {}?",
        "{} wastes {} more turns",
        "{} wastes {} fewer turns",
        ("worse: it wastes more turns", "better", "no difference"),
    ),
    "letters_in_use": Measure(
        letters_in_use,
        "letters in use where any will do",
        "letters",
        1,
        (1, 7),
        "does {} keep more unscored letters in use than {}?",
        "{} keeps {} more letters in use",
        "{} keeps {} fewer letters in use",
        ("more", "fewer", "no difference"),
    ),
}
