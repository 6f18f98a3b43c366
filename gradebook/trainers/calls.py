"""How groups of rewards reach the trainers' functions, and what the table of
adapters says of each. A call takes a cut function, rows and settings, and gives
advantages [R]."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradebook.trainers.batches import Rewards
from gradebook.trainers.cut import Cut, Files, Module, NotCut, Silent
from gradebook.trainers.releases import numbers


class Rows:
    """A step's rewards in the shapes that trainers take.

    groups   rewards by prompt: a number, None, or a list, one for each function
    size     the configured group size: that of the largest group
    prompt   each row's prompt, a whole number
    weights  one for each reward function
    """

    def __init__(
        self,
        groups: Rewards,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.groups, self.dtype = groups, dtype
        self.size = max(map(len, groups))
        self.prompt = [number for number, group in enumerate(groups) for _ in group]
        rows = [row for group in groups for row in group]
        values = [r if isinstance(r, (list, tuple)) else [r] for r in rows]
        self.each = [[math.nan if v is None else float(v) for v in r] for r in values]
        self.weights = torch.tensor(weights or [1.0] * len(self.each[0]))

    def functions(self) -> torch.Tensor:
        """Rewards [R, functions], NaN where one is missing."""
        return torch.tensor(self.each, dtype=self.dtype)

    def rewards(self) -> torch.Tensor:
        """Rewards [R] of the one function."""
        if len(self.each[0]) > 1:
            raise TypeError("one reward function")
        return self.functions()[:, 0]

    def lists(self) -> list[list[float]]:
        """Rewards by prompt, NaN where one is missing."""
        return self.by_prompt(self.rewards().double().tolist())

    def by_prompt(self, rows: Sequence[Any]) -> list[list[Any]]:
        """What each row has, by prompt."""
        values = iter(rows)
        return [[next(values) for _ in group] for group in self.groups]

    def tokens(self) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Rewards on the last of four tokens [R, 4], a full mask, prompts."""
        rewards = self.rewards()
        scores = torch.zeros(len(rewards), 4, dtype=self.dtype)
        scores[:, -1] = rewards
        mask = torch.ones(len(rewards), 4, dtype=torch.int64)
        return scores, mask, np.array(self.prompt)


LATEST = "9999"
"""Before it is every version."""


@dataclass(frozen=True)
class Function:
    """One function of a trainer, under one choice of its settings.

    setting    what was chosen, in the trainer's own words
    places     "file name" where it has stood, or "file name after before" for
               statements of it; the first that is there counts
    call       how it is called: cut function, rows, settings -> advantages [R]
    declared   the computation that its documentation asks for
    reached    the settings that reach it
    default    whether a user meets it without choosing it
    settings   what `call` is given beside the rows
    since, before  the versions it is good for
    untold     laws that these numbers cannot tell, as what stands for a
               missing library rounds differently
    """

    setting: str
    places: tuple[str, ...]
    call: Callable[..., Any]
    declared: Mapping[str, Any]
    reached: str
    default: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    since: str = "0"
    before: str = LATEST
    untold: tuple[str, ...] = ()

    def cut(self, files: Files, version: str) -> Cut:
        """The function in a release's files. Raises NotCut."""
        if not numbers(self.since) <= numbers(version) < numbers(self.before):
            raise NotCut(f"not in {version}")
        for place in self.places:
            path, name, *ends = place.split()
            with suppress(NotCut):
                module = Module(path, files)
                reach = module.statements if ends else module.method
                run, line = reach(name, *ends)
                return Cut(run, module, f"{path}:{line}", name.lstrip("."))
        raise NotCut(f"none of {', '.join(self.places)}")

    def run(
        self,
        cut: Cut,
        groups: Rewards,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> list[list[float]]:
        """Its advantages for rewards by prompt, as float64."""
        rows = Rows(groups, weights, dtype)
        advantages = self.call(cut, rows, **self.settings)
        if isinstance(advantages, torch.Tensor):
            advantages = advantages.double()
        values = np.asarray(advantages, dtype=np.float64)
        if values.shape != (len(rows.prompt),):
            shape = " by ".join(map(str, values.shape))
            raise ValueError(f"{len(rows.prompt)} rows in, {shape} advantages out")
        return rows.by_prompt(values.tolist())


@dataclass(frozen=True)
class Adapter:
    trainer: str
    package: str
    functions: tuple[Function, ...]


# One group at a time


def each_group(cut: Cut, rows: Rows, **trainer: Any) -> list[float]:
    """With what the trainer holds before the rewards, where it is a method."""
    owner = [cut.trainer(**trainer)] if trainer else []
    return [a for rewards in rows.lists() for a in cut.run(*owner, rewards)]


def trl_worker(cut: Cut, rows: Rows) -> list[float]:
    worker, advantages = cut.trainer(reward_weights=rows.weights), []
    for group in rows.by_prompt(rows.functions().double().tolist()):
        columns = [list(column) for column in zip(*group)]
        advantages += cut.run(self=worker, all_rewards=columns)["advantages"].tolist()
    return advantages


def trinity_task(cut: Cut, rows: Rows) -> list[float]:
    algorithm = cut.trainer(
        epsilon=1e-6, std_threshold=None, rank_penalty=None, std_cal_level="group"
    )
    advantages = []
    for group in rows.lists():
        mask = torch.ones(4)
        experiences = [SimpleNamespace(reward=r, action_mask=mask) for r in group]
        cut.run(algorithm, "task", experiences)
        advantages += [float(each.advantages[-1]) for each in experiences]
    return advantages


# All groups, by prompt


def by_id(cut: Cut, rows: Rows, **settings: Any) -> torch.Tensor:
    """verl and its descendants: rewards on the last token, prompt ids."""
    if "config" not in inspect.signature(cut.run).parameters:
        settings.pop("config", None)
    return cut.run(*rows.tokens(), **settings)[0][:, -1]


def trinity_batch(cut: Cut, rows: Rows) -> torch.Tensor:
    rewards, mask, index = rows.tokens()
    batch = {"token_level_rewards": rewards, "response_mask": mask}
    step = SimpleNamespace(batch=batch, non_tensor_batch={"uid": index})
    cut.run(cut.trainer(epsilon=1e-6), step)
    return batch["advantages"][:, -1]


def swift_dynamic(cut: Cut, rows: Rows) -> torch.Tensor:
    prompts, requests = map(str, rows.prompt), map(str, range(len(rows.prompt)))
    return cut.run(rows.functions(), rows.weights, list(prompts), list(requests))[0]


def tinker(cut: Cut, rows: Rows) -> torch.Tensor:
    groups = [
        SimpleNamespace(get_total_rewards=lambda rewards=rewards: rewards)
        for rewards in rows.lists()
    ]
    return torch.cat(cut.run(groups))


class Trajectories(list):
    """Of one prompt, as OpenPipe ART has them."""

    @property
    def trajectories(self) -> Trajectories:
        return self


def art(cut: Cut, rows: Rows) -> list[float]:
    empty: dict[str, Any] = {"exchanges": [], "tools": None, "additional_histories": []}
    groups = [
        Trajectories(
            SimpleNamespace(reward=reward, messages_and_choices=[], **empty)
            for reward in rewards
        )
        for rewards in rows.lists()
    ]
    advantages: dict[int, float] = {}

    def keep(*values: Any, **named: Any) -> list[Any]:
        arguments = (*values, *named.values())
        (trajectory,) = (a for a in arguments if hasattr(a, "messages_and_choices"))
        place = id(trajectory.messages_and_choices)
        advantages[place] = named["advantage"] if named else values[2]
        return []

    for name in ("tokenize_trajectory", "assemble_vllm_training_sequences"):
        cut.module[name] = keep
    cut.module["History"] = cut.module["LegacyHistory"] = SimpleNamespace
    parameters = inspect.signature(cut.run).parameters
    scaled = {"scale_rewards": True} if "scale_rewards" in parameters else {}
    list(cut.run(None, groups, True, **scaled))
    places = [id(each.messages_and_choices) for group in groups for each in group]
    return [advantages.get(place, 0.0) for place in places]


# All rows, in groups of one size by position


def trl(cut: Cut, rows: Rows, **settings: Any) -> torch.Tensor:
    trainer = cut.trainer(
        "args",
        num_generations=rows.size,
        reward_weights=rows.weights,
        reward_funcs=[None] * len(rows.weights),
        reward_clip_range=None,
        beta=0.0,
        **{"multi_objective_aggregation": "sum_then_normalize"} | settings,
    )
    variables = {"num_generations": rows.size, "mode": "train", "device": "cpu"}
    variables |= {"rewards_per_func": rows.functions()}
    return cut.run(self=trainer, **variables)["advantages"]


def swift(cut: Cut, rows: Rows, **settings: Any) -> torch.Tensor:
    if cut.name == "compute_advantages":
        return cut.run(rows.functions(), rows.weights, rows.size, **settings)[0]
    trainer = cut.trainer(
        "args accelerator model",
        **settings,
        num_generations=rows.size,
        reward_weights=rows.weights,
        reward_func_names=[],
        device="cpu",
        training=True,
        kl_in_reward=False,
        dynamic_num_samples=False,
        _metrics=Silent(),
        _logs=Silent(),
    )
    if cut.name == "_compute_advantages":
        more: list[Any] = [[]] * (cut.run.__code__.co_argcount - 3)  # 3.8 takes none
        return cut.run(trainer, [], rows.functions(), *more)
    # Statements of releases up to 3.7.
    trainer.scale_rewards = bool(settings["scale_rewards"])
    rewards = (rows.functions() * rows.weights).nansum(1)
    variables = {"rewards": rewards, "rewards_per_func": rows.functions()}
    return cut.run(self=trainer, device="cpu", **variables)["advantages"]


def openrlhf(cut: Cut, rows: Rows, estimator: str) -> torch.Tensor:
    """One experience of all rows."""
    maker = cut.trainer(
        "args strategy rollout reward algo advantage kl_ctl",
        estimator=estimator,
        advantage_estimator=estimator,
        n_samples_per_prompt=rows.size,
        gamma=1.0,
        value=0.0,
        no_std_norm=False,
        no_advantage_std_norm=False,
        clip_range=None,
        reward_clip_range=None,
        overlong_buffer_len=None,
        stop_properly_penalty_coef=None,
        packing_samples=False,
    )
    rewards, mask = rows.rewards(), torch.ones(len(rows.prompt), 4, dtype=torch.bool)
    step = SimpleNamespace(
        index=list(range(len(rewards))),
        rewards=rewards,
        action_mask=mask,
        kl=torch.zeros(mask.shape),  # log-probabilities are float32
        info={"reward": rewards, "num_actions": mask.shape[1]},
    )
    step.to_device = lambda device: step
    parameters = inspect.signature(cut.run).parameters
    old = {"gamma": 1.0, "lambd": 1.0} if "kwargs" in parameters else {}  # up to 0.7
    result = cut.run(maker, [step], **old)
    return result[1][0] if isinstance(result, tuple) else step.advantages[:, -1]


def areal(cut: Cut, rows: Rows, **levels: Any) -> torch.Tensor:
    """The class that normalizes rewards."""
    config = cut.trainer(**levels, std_unbiased=True, group_size=rows.size, eps=1e-5)
    return cut.run(config)(rows.rewards())


def miles(cut: Cut, rows: Rows, grpo_std_normalization: bool) -> list[float]:
    manager = cut.trainer(
        "args",
        advantage_estimator="grpo",
        rewards_normalization=True,
        grpo_std_normalization=grpo_std_normalization,
        n_samples_per_prompt=rows.size,
        rollout_batch_size=len(rows.groups),
        custom_reward_post_process_func=None,
    )
    samples = [
        SimpleNamespace(get_reward_value=lambda args, value=value: value)
        for group in rows.lists()
        for value in group
    ]
    return cut.run(manager, samples)[1]


def skyrl_agent(cut: Cut, rows: Rows) -> list[float]:
    rewards = [reward for group in rows.lists() for reward in group]
    return cut.run(rewards, group_size=rows.size, normalize=True)


def oat(cut: Cut, rows: Rows, critic_type: str) -> torch.Tensor:
    learner = cut.trainer(
        "args", num_samples=rows.size, critic_type=critic_type, remove_std_bias=False
    )
    masks = [None] * (cut.run.__code__.co_argcount - 2)  # 0.0.9 takes none
    return cut.run(learner, rows.rewards()[:, None], *masks)


def rlinf(cut: Cut, rows: Rows) -> torch.Tensor:
    mask = torch.ones(4, len(rows.prompt), dtype=torch.bool)
    return cut.run(rewards=rows.rewards(), loss_mask=mask, group_size=rows.size)[0][-1]


def unsloth(cut: Cut, rows: Rows, scale: str) -> np.ndarray:
    weights = rows.weights.tolist()
    return cut.run(rows.functions().numpy(), weights, rows.size, scale)[0]


def torchtune(cut: Cut, rows: Rows) -> torch.Tensor:
    return cut.run(
        rewards=rows.rewards().reshape(-1, rows.size),
        batch_size=len(rows.prompt) // rows.size,
        grpo_size=rows.size,
        responses=None,
    )["advantages"]


def tunix(cut: Cut, rows: Rows) -> np.ndarray:
    """NumPy stands for JAX."""
    return cut.run(rows.rewards().numpy(), rows.size)
