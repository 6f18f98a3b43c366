"""Signal: is the run still learning? What the rewards of a log can still teach, step by
step. It is a fact about the run, and no verdict.

A prompt whose rewards are all equal has advantages of 0 under every computation that
compares within the prompt, so it teaches nothing. Letters: R rows, F reward functions,
S steps, G groups: the rows of one prompt in one step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from gradebook.core.formatting import DUST, counted, short
from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging.computation import DRAW, View
from gradebook.logs.judging.space import grouped
from gradebook.logs.logged_steps import LoggedSteps

FEW = 0.2
"""Fewer than this share of prompts that teach is worth a line: below it, a trainer pays
for more than five prompts to learn from one."""
CORRECTNESS = re.compile(r"acc|correct|exact|match|answer|solve|verif|pass", re.I)
"""How reward functions are called that say whether an answer is right."""
STEP_COUNTS = ("step", "prompts", "wrong", "right", "same", "teach", "single", "rows")
"""What `Signal.steps` has in a line."""


@dataclass(frozen=True, eq=False)
class Signal:
    """What the rewards of a log can still teach.

    steps      a line for each step, in order: step; prompts, how many have two rows or
               more; wrong, right and same, how many of those have equal rewards that
               are the log's lowest, its highest, or neither; teach, how many have
               rewards that differ; single, prompts of one row; rows
    size       rows of a prompt, as configured or as most prompts have
    small      prompts with fewer rows
    masked     share of the rows that the loss masks; None if the log does not say
    sizes      mean size of the advantages in the first and the last third of the
               steps, both of all steps if these are fewer than three; or None
    zeros      share of the last third's advantages that are 0
    functions  for several reward functions, what each adds: a line for each
    is_given   the size is what the person or the log configured
    by_visit   a prompt that comes again counts each time, in a log without steps
    """

    steps: pd.DataFrame
    size: int = 0
    small: int = 0
    is_given: bool = False
    masked: float | None = None
    sizes: tuple[float, float] | None = None
    zeros: float = 0.0
    functions: tuple[RewardFunction, ...] = ()
    by_visit: bool = False

    @property
    def has_thirds(self) -> bool:
        """Whether the run is long enough to compare its beginning with its end."""
        return len(self.steps) >= 3

    @property
    def last_third(self) -> pd.DataFrame:
        return self.steps[-max(1, len(self.steps) // 3) :]

    @property
    def shares(self) -> np.ndarray:
        """float64 [S] the share of each step's prompts that have equal rewards, NaN
        for a step of single rows."""
        prompts = self.steps["prompts"].to_numpy().astype(float)
        equal = prompts - self.steps["teach"].to_numpy()
        out: np.ndarray = np.divide(
            equal, prompts, out=np.full(len(prompts), np.nan), where=prompts > 0
        )
        return out

    @property
    def few_from(self) -> int | None:
        """The first line from which on fewer than FEW of each step's prompts teach;
        None if the last step's do."""
        few = 1 - np.nan_to_num(self.shares, nan=1.0) < FEW
        if not len(few) or not few[-1]:
            return None
        first = len(few) - int(np.argmin(few[::-1])) if not few.all() else 0
        return int(first)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The facts, a sentence each; the first one says the most."""
        return tuple(filter(None, (*self._equal(), *self._rest())))

    def _equal(self) -> list[str]:
        total = self.steps.drop(columns="step").sum()
        prompts, equal = int(total["prompts"]), int(total["prompts"] - total["teach"])
        if not prompts:
            return ["No prompt has two rows, so no rewards can be compared."]
        if not equal:
            where = (
                f"each of the {prompts:,} prompts" if prompts > 1 else "the one prompt"
            )
            return [f"Rewards differ in {where}."]
        have = "has" if equal == 1 else "have"
        sentences = [
            f"{equal:,} of {counted(prompts, 'prompt')} {have} equal rewards:"
            f" {'it teaches' if equal == 1 else 'they teach'} nothing."
        ]
        kinds = {"lowest": int(total["wrong"]), "highest": int(total["right"])}
        which = [
            f"in {n:,} every reward is the {kind} of the log"
            for kind, n in kinds.items()
            if n
        ]
        if which:
            sentences.append(f"Of these prompts, {' and '.join(which)}.")
        if self.has_thirds:
            last = self.last_third[["prompts", "teach"]].sum()
            flat, of = int(last["prompts"] - last["teach"]), int(last["prompts"])
            sentences.append(
                f"In the last third of the steps, {flat:,} of {counted(of, 'prompt')}"
                f" {'has' if flat == 1 else 'have'} no two rewards that differ."
            )
        if self.few_from is not None and self.few_from > 0:
            step = self.steps["step"].iloc[self.few_from]
            sentences.append(f"From step {step} on, fewer than one in five teach.")
        return sentences

    def _rest(self) -> list[str]:
        sentences = [each.sentence for each in self.functions]
        if self.by_visit:
            sentences.append(
                "Prompts come again, and the log does not say its steps: each run of"
                f" {self.size} rows of one prompt counts as a prompt here."
            )
        if self.small:
            most = "configured" if self.is_given else "that most prompts have"
            have = "has" if self.small == 1 else "have"
            sentences.append(
                f"{counted(self.small, 'prompt')} {have} fewer rows than the"
                f" {self.size} {most}."
            )
        if self.masked is not None:
            share = f"{self.masked:.1%}" if self.masked else "none"
            sentences.append(f"The loss masks {share} of the rows.")
        if self.sizes is not None:
            sentences.append(self._sizes_said(*self.sizes))
        return sentences

    def _sizes_said(self, first: float, last: float) -> str:
        zeros = f"{self.zeros:.0%}"
        if not self.has_thirds:
            return f"The mean size of an advantage is {short(last, 3)}; {zeros} are 0."
        return (
            f"The mean size of an advantage is {short(first, 3)} in the first third of"
            f" the steps and {short(last, 3)} in the last; {zeros} of the last are 0."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the sentences, and the counts of each step."""
        return {
            "sentences": self.sentences,
            "steps": self.steps.to_dict("records"),
            "group_size": self.size,
            "smaller_groups": self.small,
            "masked": self.masked,
            "advantage_sizes": self.sizes,
            "functions": [asdict(each) for each in self.functions],
        }


@dataclass(frozen=True)
class RewardFunction:
    """How one of several reward functions varies beside their sum.

    alone    prompts whose summed rewards are equal while this function's are not
    of       prompts whose summed rewards are equal
    missing  prompts whose summed rewards differ while this function's are equal
    teach    prompts whose summed rewards differ
    """

    name: str
    alone: int
    of: int
    missing: int
    teach: int

    @property
    def sentence(self) -> str:
        """In how many prompts this function varies and the sum does not; if it says
        whether an answer is right, in how many only other functions vary; else ""."""
        if self.alone:
            return (
                f"`{self.name}` differs in {self.alone:,} of the"
                f" {counted(self.of, 'prompt')} whose summed rewards are equal."
            )
        if self.missing and CORRECTNESS.search(self.name):
            return (
                f"In {self.missing:,} of the {counted(self.teach, 'prompt')} that"
                f" teach, only other rewards differ: `{self.name}` is the same for all"
                " rows."
            )
        return ""


def signal_of(
    steps: LoggedSteps,
    functions: np.ndarray | None = None,
    names: Sequence[str] = (),
    group_size: int | None = None,
    has_mask: bool = False,
    has_steps: bool = True,
) -> Signal:
    """The signal in logged steps.

    functions   float64 [R, F] the rewards of several functions, NaN for none, in the
                order of the steps' rows; None for one function
    names       the functions' names
    group_size  rows of a prompt, as configured
    has_mask    a column says which rows the loss masks
    has_steps   the log says which step a row belongs to
    """
    logged = steps
    if not has_steps:
        steps = _by_visit(steps)
    group, count = steps.prompt, len(steps.groups.size)
    scored = steps.batch.scored.numpy() if "scored" in steps.has else None
    counts = np.ones(steps.rows, dtype=bool) if scored is None else scored
    size = np.bincount(group[counts], minlength=count)
    low, high = _ends(steps.reward, group, counts, count)
    scale = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    flat = (high - low <= DUST * scale) & (size > 1)
    reward = steps.reward[counts]
    least, most = (reward.min(), reward.max()) if len(reward) else (0.0, 0.0)
    varies = most - least > DUST
    wrong, right = (
        flat & varies & (np.abs(low - end) <= DUST) for end in (least, most)
    )
    of_step = steps.groups.step

    def by_step(groups: np.ndarray) -> np.ndarray:
        return np.bincount(of_step[groups], minlength=steps.step_count)

    lines = pd.DataFrame(
        {
            "step": steps.labels,
            "prompts": by_step(size > 1),
            "wrong": by_step(wrong),
            "right": by_step(right),
            "same": by_step(flat & ~wrong & ~right),
            "teach": by_step((size > 1) & ~flat),
            "single": by_step(size == 1),
            "rows": np.bincount(steps.step_of, minlength=steps.step_count),
        }
    )
    whole = steps.groups.size
    usual = group_size or int(np.bincount(whole).argmax())
    masked = None
    if has_mask and "length" in steps.has:
        masked = float((steps.batch.tokens.numpy() <= 0).mean())
    return Signal(
        lines,
        usual,
        int((whole < usual).sum()),
        group_size is not None,
        masked,
        *_sizes(steps),
        functions=_functions(functions, names, group, counts, flat, size > 1),
        by_visit=steps is not logged,
    )


def _by_visit(steps: LoggedSteps) -> LoggedSteps:
    """The rows of a log without steps, each visit of a prompt as one of its own, if
    prompts come again: all runs of one prompt's rows have the same size."""
    run = grouped(steps, View(DRAW))
    size = np.bincount(run)
    several = len(size) > len(steps.groups.size)
    if not several or size.min() < 2 or size.min() < size.max():
        return steps
    return replace(steps, batch=replace(steps.batch, prompt=torch.from_numpy(run)))


def _ends(
    values: np.ndarray, group: np.ndarray, counts: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of each group, float64 [G], of the rows that
    count, bool [R]; infinite for a group without any."""
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group[counts], values[counts])
    np.maximum.at(high, group[counts], values[counts])
    is_empty = low > high
    return np.where(is_empty, 0.0, low), np.where(is_empty, 0.0, high)


def _sizes(steps: LoggedSteps) -> tuple[tuple[float, float] | None, float]:
    """The mean size of an advantage in the first and in the last third of the steps,
    both of all steps if there are fewer than three; and the share of the last that are
    0; None without advantages."""
    size = np.abs(steps.advantage)
    third = steps.step_count // 3 or steps.step_count
    parts = (steps.step_of < third, steps.step_of >= steps.step_count - third)
    first, last = (size[part & np.isfinite(size)] for part in parts)
    if not len(first) or not len(last):
        return None, 0.0
    return (float(first.mean()), float(last.mean())), float((last <= DUST).mean())


def _functions(
    rewards: np.ndarray | None,
    names: Sequence[str],
    group: np.ndarray,
    counts: np.ndarray,
    flat: np.ndarray,
    several: np.ndarray,
) -> tuple[RewardFunction, ...]:
    """A line for each of two or more functions; () for one. `flat` and `several`, bool
    [G]: the summed rewards are equal; the prompt has two rows or more."""
    if rewards is None or rewards.shape[1] < 2:
        return ()
    functions = []
    for name, column in zip(names, rewards.T):
        has_reward = counts & np.isfinite(column)
        low, high = _ends(column, group, has_reward, len(flat))
        varies = high - low > DUST * np.maximum(1.0, np.abs(high))
        teach = several & ~flat
        functions.append(
            RewardFunction(
                name,
                alone=int((flat & varies).sum()),
                of=int(flat.sum()),
                missing=int((teach & ~varies).sum()),
                teach=int(teach.sum()),
            )
        )
    return tuple(functions)
