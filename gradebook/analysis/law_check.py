"""Whether an engine, or any function from rewards to advantages, keeps a law.

`judge` tries one law on one training step and gives one of five answers. No
check compares two engines.

    step = step_of([[1.0, 0.0], [1.0, None]])        # groups of rewards
    values = on_groups(function)                     # groups in, groups out
    judge("shift", values, step, Settings(), 1e-5).answer    # 'holds'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import getdoc
from typing import Any

import torch

from gradebook.analysis.laws import (
    GRADIENT,
    LAWS,
    Change,
    Step,
    Values,
    grouped,
    picked,
    tried,
)
from gradebook.core.batch import Batch
from gradebook.core.differences import SHOWS, same
from gradebook.core.errors import GradebookError, choice
from gradebook.core.formatting import counted, digits_apart, settled, signed
from gradebook.core.settings import Settings
from gradebook.engine.grouping import present, score
from gradebook.engine.pipeline import CORRECT, Engine, run

HOLDS, BROKEN, REFUSED = "holds", "broken", "refused"
BY_CONVENTION, NOT_MEASURED = "by convention", "not measured"
CLEAREST = (BROKEN, HOLDS, REFUSED, BY_CONVENTION, NOT_MEASURED)
"""The answers of a law, the clearest first."""

COLUMNS = tuple(
    field.name for field in fields(Batch) if field.name not in ("step", "settings")
)
"""The columns of a step that make a batch."""

LARGEST_ROUNDING = 0.01
"""Where rounding may move an advantage by more, a law cannot be tested."""

Groups = Sequence[Sequence[float | None]]
Allowed = float | Callable[[Step], list[float]]


@dataclass(frozen=True)
class Outcome:
    """A law's answer on a step: HOLDS, BROKEN, REFUSED, BY_CONVENTION or
    NOT_MEASURED, and why.

    Where it is broken: the change that shows it (its `step` has the changed
    columns), the row's number (the first of the rows for a sum), the value
    that is due, and the value there.
    """

    answer: str
    sentence: str
    row: int = -1
    due: float = 0.0
    value: float = 0.0
    change: Change | None = None


def words(name: str) -> str:
    """The law of that name in words. Raises GradebookError for a name not in
    LAWS.

    >>> words("shift")
    'The same number added to all rewards of a prompt changes no advantage.'
    """
    return _paragraphs(name)[0]


def _paragraphs(name: str) -> list[str]:
    """What the law says, and what a step must have to test it."""
    paragraphs = (getdoc(LAWS[choice(name, LAWS, "laws")]) or "").split("\n\n")
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def couples_prompts(settings: Mapping[str, Any]) -> str:
    """The setting by which a trainer compares rows of all prompts by design,
    as 'baseline batch_mean'; '' where there is none."""
    if settings["baseline"] == "batch_mean":
        return "baseline batch_mean"
    if settings["scale"] in ("batch_std", "nonzero_share"):
        return f"scale {settings['scale']}"
    return "whiten_tokens" if settings["whiten_tokens"] else ""


def convention(name: str, settings: Mapping[str, Any]) -> str:
    """The setting by which a trainer breaks the law by design, or ''."""
    baseline, scale = settings["baseline"], settings["scale"]
    whitens = "whiten_tokens" if settings["whiten_tokens"] else ""
    if name == "padding" and settings["eos_by_width"]:
        return "eos_by_width"
    evaluated = settings["skip_flat"] == "training" and settings["evaluation"]
    if name == "flat_gradient" and (evaluated or settings["skip_flat"] == "never"):
        return f"skip_flat {settings['skip_flat']}"
    if name in ("order", "missing") and settings["evaluation"]:
        return "evaluation takes each prompt's first row"
    if name in ("other_prompts", "lost_row"):
        return couples_prompts(settings)
    if name == "shift":
        if baseline == "none":
            return "baseline none"
        return couples_prompts(settings)
    if name == "scale":
        if settings["reward_bias"] or settings["reward_clip"] is not None:
            return "reward_bias" if settings["reward_bias"] else "reward_clip"
        by_size = scale not in ("group_std", "none")
        return couples_prompts(settings) or (f"scale {scale}" if by_size else "")
    if name == "zero_sum":
        if baseline not in ("group_mean", "leave_one_out"):
            return f"baseline {baseline}"
        return "scale others_std" if scale == "others_std" else whitens
    if name == "flat":
        if baseline in ("none", "batch_mean"):
            return f"baseline {baseline}"
        no_eps = scale.endswith("_std") and not settings["eps"]
        return "eps 0" if no_eps else whitens
    return ""


def judge(
    name: str,
    values: Values,
    step: Step,
    settings: Mapping[str, Any],
    allowed: Allowed = 0.0,
    conventions: Mapping[str, str] | None = None,
) -> Outcome:
    """Whether a trainer keeps the law on a training step.

    values       the trainer: a number (or a list of numbers) a row, by step
                 and settings; a GradebookError is a refusal
    settings     its convention, all keys of Settings
    allowed      how far rounding may move a value: a number, or a function
                 from the step to a number a row
    conventions  laws that it breaks by design, with the reason; default: as
                 `convention` finds them in the settings

    Where several changes break the law, the largest violation is told.
    """
    by_design = (
        {name: convention(name, settings)} if conventions is None else conventions
    )
    if by_design.get(name):
        return Outcome(BY_CONVENTION, f"Broken by design: {by_design[name]}.")
    refusals: list[str] = []

    def safe(step: Step, settings: Mapping[str, Any]) -> list[Any] | None:
        try:
            return values(step, settings)
        except GradebookError as error:
            refusals.append(str(error))
            return None

    ways, largest, worst = 0, 0.0, None
    for change, compared in tried(LAWS[name], safe, step, settings):
        rows = change.step["row"]
        noise = dict(zip(rows, allowed(change.step))) if callable(allowed) else {}
        certain = False
        for row, due, value, size in compared:
            rounding = noise.get(row, 0.0) if callable(allowed) else allowed
            if rounding > LARGEST_ROUNDING:
                continue
            certain = True
            if change.total:  # as much as the sum of what is printed
                rounding = sum(noise.get(r, rounding) for r in change.rows)
            rounding += size * (SHOWS if change.total else change.slack)
            distance = abs(due - value)
            if same(due, value) or distance <= rounding:
                continue
            if worst is None or distance > largest:
                largest, worst = distance, (change, row, due, value)
        ways += certain
    if worst is not None:
        return _broken(*worst, name)
    if ways:
        return Outcome(HOLDS, f"Tried in {counted(ways, 'way')}.")
    if refusals:
        return Outcome(REFUSED, refusals[0])
    return Outcome(NOT_MEASURED, _paragraphs(name)[-1])


def _broken(change: Change, row: int, due: float, value: float, name: str) -> Outcome:
    """The counterexample in words."""
    due, value = settled(due), settled(value)
    gradient = LAWS[name] in GRADIENT
    digits = digits_apart(due, value, 5 if gradient else 3)
    asked, got = signed(due, digits), signed(value, digits)
    what = f"the {'gradient at a token' if gradient else 'advantage'} of row {row}"
    sentence = f"{what} is {got}, and must be {asked}"
    if change.total:
        sentence = f"the advantages of row {row}'s prompt add up to {got}"
    elif change.what and change.due is None and change.times == 1:
        sentence = f"{what} changes from {asked} to {got}"
    if change.what:
        sentence = f"When {change.what}, {sentence}"
    sentence = sentence[0].upper() + sentence[1:] + "."
    return Outcome(BROKEN, sentence, row, due, value, change)


# A function from groups of rewards to groups of advantages


def step_of(groups: Groups) -> Step:
    """Groups of rewards as a training step, a prompt a group. None is a
    missing reward."""
    rewards = [reward for group in groups for reward in group]
    places = list(range(len(rewards)))
    there = [reward is not None for reward in rewards]
    return {
        "row": places,
        "rollout": places,
        "prompt": [number for number, group in enumerate(groups) for _ in group],
        "reward": [0.0 if reward is None else float(reward) for reward in rewards],
        "credited": there,
        "counted": there,
        "valued": [True for _ in rewards],
    }


def groups_of(step: Step) -> list[list[float | None]]:
    """The step's rewards by prompt, in the order of its first row; None where
    a row has none."""
    return [
        [step["reward"][p] if step["credited"][p] else None for p in places]
        for places in grouped(step["prompt"])
    ]


def on_groups(
    function: Callable[[list[list[float | None]]], Sequence[Sequence[float]]],
) -> Values:
    """The values of a function that takes groups of rewards and gives groups
    of advantages."""

    def values(step: Step, settings: Mapping[str, Any]) -> list[float]:
        advantages = function(groups_of(step))
        by_place = {
            place: float(value)
            for places, group in zip(grouped(step["prompt"]), advantages, strict=True)
            for place, value in zip(places, group, strict=True)
        }
        return [by_place[place] for place in range(len(by_place))]

    return values


# An engine


def steps_of(batch: Batch) -> list[Step]:
    """The batch step by step, each as columns, with every default filled in.

    `row` numbers the rows in the batch. logp and ref_logp only where the
    batch has them.
    """
    credited = CORRECT.credited(batch)
    columns = {
        name: value.tolist()
        for name in COLUMNS
        if (value := getattr(batch, name)) is not None
    }
    columns |= {
        "row": list(range(batch.rows)),
        "mask": batch.mask.int().tolist(),
        "credited": credited.tolist(),
        "counted": CORRECT.counted(batch, credited).tolist(),
        "valued": ((batch.kept_steps > 0) & present(batch)).tolist(),
    }
    of = batch.step_index.tolist()
    return [
        picked(columns, [row for row, row_step in enumerate(of) if row_step == step])
        for step in range(batch.step_count)
    ]


def on_engine(engine: Engine, batch: Batch, gradient: bool = False) -> Values:
    """The advantages of an engine, or its gradients, a list of tokens a row.
    `batch` gives the float type."""

    def values(step: Step, settings: Mapping[str, Any]) -> list[Any]:
        trace = run(engine, batch_of(step, batch, settings, gradient))
        result = trace.gradient if gradient else trace.advantage
        return result.tolist() if result is not None else []

    return values


def batch_of(
    step: Step, like: Batch, settings: Mapping[str, Any], policies: bool = True
) -> Batch:
    """A training step as a batch; without `policies`, no log-probabilities."""
    left_out = ("reward",) if policies else ("reward", "logp", "ref_logp")
    columns = {n: step[n] for n in COLUMNS if n in step and n not in left_out}
    reward = torch.tensor(step["reward"], dtype=like.reward.dtype)
    return Batch(reward=reward, **columns, settings=Settings(**settings))


def check(name: str, engine: Engine, batch: Batch) -> Outcome:
    """Whether an engine keeps the law on a batch: the clearest answer of its
    training steps. Raises GradebookError as the engine does."""
    gradient = LAWS[name] in GRADIENT
    if not gradient:
        run(engine, batch)
    values = on_engine(engine, batch, gradient)

    def allowed(step: Step) -> list[float]:
        """How much rounding may move each row's advantage: that of its score,
        over what it is divided by."""
        changed = batch_of(step, batch, batch.settings, False)
        try:
            divisor = run(CORRECT, changed).scale
        except GradebookError:
            return [0.0] * changed.rows
        largest = score(changed).abs().amax().clamp(min=1)
        noise = 16 * torch.finfo(divisor.dtype).eps * largest / divisor
        if batch.settings.whiten_tokens:
            noise = noise * 1e4  # a variance of 0 is divided by the root of 1e-8
        return noise.nan_to_num(0, 0, 0).tolist()

    outcomes = [
        judge(name, values, step, batch.settings, allowed) for step in steps_of(batch)
    ]
    empty = Outcome(NOT_MEASURED, _paragraphs(name)[-1])
    return min(
        outcomes,
        key=lambda o: (CLEAREST.index(o.answer), -abs(o.due - o.value)),
        default=empty,
    )
