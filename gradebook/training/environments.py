"""The tasks that the small policies are trained on, as finite automata; and exact
figures of a policy: expectations over all its rollouts, by dynamic programming.

A policy is a float64 tensor [..., P, L, A] of chances. Letters in shapes:
P prompts, L places, K states, A actions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

PROMPTS = 8
"""Of every task. They differ in how hard they are, so that of a batch with 8 rollouts
of each, some groups are flat and some are not."""


@dataclass(frozen=True, eq=False)
class Environment:
    """One automaton for each prompt. Every rollout starts in state 0. In the last two
    states it has ended, and stays: without a success, and with one.

    A policy does not see the whole state, only its place: the position in
    the word, for example.
    """

    after: Tensor  # int64 [P, K, A] the state after an action
    place: Tensor  # int64 [K] what the policy sees of a state
    reward: Tensor  # float64 [K] what a rollout earns that stops in this state
    chance: Tensor  # float64 [P, L, A] the reference policy, where training starts
    most: int  # actions after which a rollout is cut
    free: tuple[int, ...] = ()  # places where any letter will do
    solvable: Tensor = torch.ones(PROMPTS, dtype=torch.bool)  # [P] at all

    @cached_property
    def ends(self) -> Tensor:
        """bool [K] a rollout has ended in this state."""
        return torch.arange(len(self.place)) >= len(self.place) - 2


WORDS = ((4, 3), (0, 2), (1, 2), (6, 3), (4, 5), (2, 0), (1, 5), (2, 4))
"""Two of seven letters for each prompt. Prompts learn from each other's letters."""


def spell(free: int = 0, wrong: float = 0.0) -> Environment:
    """Write the prompt's word of two letters, then EOS: eight tokens.

    The exact word earns 1, all else `wrong`. The reference policy's chance of
    each right token falls from 0.9 to 0.2 over the prompts, that of the three tokens
    from 0.73 to 0.008. `free` more letters, which may be any, come between the word and
    EOS; there the reference policy writes each letter with equal chance, and EOS with
    chance 0.02, so that most rollouts come to the end.

    States: right so far, by position; wrong, by position; ended wrong;
    ended right. The place is the position.
    """
    eos, word = 7, 2
    length = word + free
    off, missed, done = length + 1, 2 * length + 2, 2 * length + 3
    after = torch.full((PROMPTS, done + 1, eos + 1), missed)
    after[:, done] = after[:, length, eos] = done
    for place in range(length):
        after[:, off + place, :eos] = off + place + 1
        after[:, place, :eos] = place + 1 + (off if place < word else 0)
    chance = torch.zeros(PROMPTS, length + 1, eos + 1, dtype=torch.float64)
    chance[:, word:length] = _chances(eos + 1, {eos: 0.02})
    for prompt, sure in enumerate(_falling(0.9, 0.2)):
        for place, letter in enumerate(WORDS[prompt]):
            after[prompt, place, letter] = place + 1
            chance[prompt, place] = _chances(eos + 1, {letter: sure})
        chance[prompt, length] = _chances(eos + 1, {eos: sure})
    return Environment(
        after,
        place=torch.tensor([*range(off), *range(off), 0, 0]),
        reward=torch.tensor([wrong] * done + [1.0], dtype=torch.float64),
        chance=chance,
        most=length + 1,
        free=tuple(range(word, length)),
    )


def lock(failure: float = 0.0, unsolvable: int = 0) -> Environment:
    """Open a lock with one to three right actions.

    Each place has one right action out of five; a wrong one wastes the
    turn. A sixth action quits, and there are eight turns at most. Opening
    the lock earns 1, quitting `failure`, and running out of turns twice as
    much. The last `unsolvable` prompts have no right action. The reference
    policy's chance of the right action falls from 0.85 to 0.35 over the prompts. It
    quits with chance 0.05: of eight turns in a third of all cases, so that quitting,
    which `failure` prices, can be learned.

    States: zero, one or two right actions so far; quit; open.
    """
    wrong, quit, opened = 5, 3, 4
    after = torch.zeros((PROMPTS, opened + 1, wrong + 1), dtype=torch.int64)
    after[:, quit], after[:, opened] = quit, opened
    chance = torch.zeros(PROMPTS, 3, wrong + 1, dtype=torch.float64)
    solvable = torch.arange(PROMPTS) < PROMPTS - unsolvable
    for prompt, sure in enumerate(_falling(0.85, 0.35)):
        turns = 1 + prompt % 3
        for place in range(3):
            right = (prompt + 2 * place) % wrong
            after[prompt, place] = place
            after[prompt, place, wrong] = quit
            if solvable[prompt]:
                after[prompt, place, right] = place + 1 if place + 1 < turns else opened
            chance[prompt, place] = _chances(wrong + 1, {right: sure, wrong: 0.05})
    late = 2 * failure
    return Environment(
        after,
        place=torch.tensor([0, 1, 2, 0, 0]),
        reward=torch.tensor([late, late, late, failure, 1.0], dtype=torch.float64),
        chance=chance,
        most=8,
        solvable=solvable,
    )


def ramble(unfinished: float = 1.0) -> Environment:
    """Say the answer, then stop.

    Six tokens: EOS, the prompt's answer and four others; at most eight of
    them. A rollout that said the answer earns 1. If it was cut without EOS, it earns
    `unfinished` times as much. A success has said the answer and has ended. The
    reference policy's chance of the answer falls from 0.4 to 0.1 over the prompts; its
    chance of EOS is 0.12, so that 0.88 ** 8 = 36 % of the rollouts are cut.

    States: not said; said; ended without it; ended with it.
    """
    eos = 5
    after = torch.zeros((PROMPTS, 4, eos + 1), dtype=torch.int64)
    after[:, 2], after[:, 3] = 2, 3
    chance = torch.zeros(PROMPTS, 2, eos + 1, dtype=torch.float64)
    after[:, 1] = 1
    after[:, 0, eos], after[:, 1, eos] = 2, 3
    for prompt, sure in enumerate(_falling(0.4, 0.1)):
        answer = prompt % eos
        after[prompt, 0, answer] = 1
        chance[prompt, :] = _chances(eos + 1, {answer: sure, eos: 0.12})
    return Environment(
        after,
        place=torch.tensor([0, 1, 0, 0]),
        reward=torch.tensor([0.0, unfinished, 0.0, 1.0], dtype=torch.float64),
        chance=chance,
        most=8,
    )


def _falling(first: float, last: float) -> list[float]:
    return torch.linspace(first, last, PROMPTS, dtype=torch.float64).tolist()


def _chances(actions: int, fixed: Mapping[int, float]) -> Tensor:
    """These chances; the other actions share the rest. float64 [A]."""
    rest = (1 - sum(fixed.values())) / (actions - len(fixed))
    chances = [fixed.get(action, rest) for action in range(actions)]
    return torch.tensor(chances, dtype=torch.float64)


Task = Callable[..., Environment]
ENVIRONMENTS: Mapping[str, Task] = {"spell": spell, "lock": lock, "ramble": ramble}


# Figures of a policy


@dataclass(frozen=True)
class Measure:
    """A figure of a policy, and its words."""

    function: Callable[[Environment, Tensor], Tensor]
    title: str  # the axis of the curves
    unit: str  # what a difference is counted in, times `factor`
    factor: float
    reach: tuple[float, float]  # the lowest and the highest value of the axis
    result: str  # {} for the faulty run, for how much it is off, and for the way
    ways: tuple[str, str]  # larger, smaller
    choices: tuple[str, str, str]  # the answers for more, less, no difference
    question: str = "is {} better or worse than {}?"  # the faulty, the correct run


def success(environment: Environment, policy: Tensor) -> Tensor:
    """The chance that a rollout succeeds, mean over solvable prompts. float64 [...]."""
    stops, _ = _rollout(environment, policy)
    return stops[..., environment.solvable, -1].mean(-1)


def wasted_turns(environment: Environment, policy: Tensor) -> Tensor:
    """The expected number of actions of a rollout, mean over prompts that cannot be
    solved. float64 [...]."""
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
    ends, states = environment.ends, len(environment.ends)
    acts = policy[..., environment.place, :]
    onward = torch.nn.functional.one_hot(environment.after, states).to(policy.dtype)
    # float64 [..., P, K, K]: the chance to go from one state to another.
    move = torch.einsum("...pka,pkaj->...pkj", acts, onward)
    visits = torch.zeros_like(move[..., 0, :])
    visits[..., 0] = 1
    turns = torch.zeros_like(visits[..., 0])
    for _ in range(environment.most):
        turns = turns + visits[..., ~ends].sum(-1)
        visits = torch.einsum("...k,...kj->...j", visits, move)
    return visits, turns


MEASURES: Mapping[str, Measure] = {
    "success": Measure(
        success,
        "chance of success",
        "points",
        100,
        (0, 1),
        "the success rate of {} is {} points {}",
        ("higher", "lower"),
        ("better", "worse", "no difference"),
    ),
    "wasted_turns": Measure(
        wasted_turns,
        "turns on prompts that nobody can solve",
        "turns",
        1,
        (0, 8),
        "{} wastes {} {} turns",
        ("more", "fewer"),
        ("worse: it wastes more turns", "better", "no difference"),
    ),
    "letters_in_use": Measure(
        letters_in_use,
        "letters in use where any will do",
        "letters",
        1,
        (1, 7),
        "{} keeps {} {} letters in use",
        ("more", "fewer"),
        ("more", "fewer", "no difference"),
        "does {} keep more unscored letters in use than {}?",
    ),
}
