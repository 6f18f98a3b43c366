"""What the laws ask of a training step, and what they answer with.

A step is a plain dict of columns. An exported pytest file contains the source
of what stands here, so nothing here imports Gradebook, and all annotations
but the names below are builtins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

Step: TypeAlias = dict[str, list]
Settings: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Callable[[Step, Settings], list]


class Change:
    """A changed training step, and the values that its rows must have.

    what      the change in words, '' where nothing changes
    step      the changed step
    rows      the rows of the changed step that are looked at
    keeps     for each, the row of the unchanged step whose value it keeps
    equals    or, where `keeps` is empty, the value that it must have
    times     what the kept value is multiplied by
    slack     the share of a value that eps may account for
    total     the sum of the rows is looked at, which must be 0
    settings  settings that change
    """

    def __init__(
        self,
        what: str,
        step: Step,
        rows: list,
        keeps: list,
        equals: list | tuple = (),
        times: float = 1.0,
        slack: float = 0.0,
        total: bool = False,
        settings: Settings | None = None,
    ) -> None:
        self.what = what
        self.step = step
        self.rows = rows
        self.keeps = keeps
        self.equals = equals
        self.times = times
        self.slack = slack
        self.total = total
        self.settings = settings or {}


Changes: TypeAlias = Iterator[Change]
Law: TypeAlias = Callable[[Step, Settings], Changes]


def rows_of(step: Step) -> list:
    """The rows 0, 1, .. of the step."""
    return list(range(len(step["reward"])))


def sampled(items: list, most: int = 32) -> list:
    """At most `most` of the items, evenly spread."""
    return items[:: max(1, -(-len(items) // most))]


def listed(step: Step, rows: list) -> str:
    """'row 3', 'rows 3 and 4', 'rows 3, 4 and 5'."""
    names = [str(step["row"][row]) for row in rows]
    if len(names) > 12:
        names = [*names[:11], f"{len(names) - 11} more"]
    if len(names) < 2:
        return f"row {''.join(names)}"
    return f"rows {', '.join(names[:-1])} and {names[-1]}"


def grouped(keys: list) -> list:
    """The rows that share a key, by first appearance."""
    found: dict = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return list(found.values())


def prompts(step: Step) -> list:
    """The rows of each prompt."""
    return grouped(step["prompt"])


def rollouts(step: Step) -> list:
    """The rows of each rollout."""
    return grouped(list(zip(step["prompt"], step["rollout"])))


def other_prompts(step: Step, row: int) -> list:
    """The rows of all prompts but the row's own."""
    own = step["prompt"][row]
    return [r for r, prompt in enumerate(step["prompt"]) if prompt != own]


def picked(step: Step, rows: list) -> Step:
    """A step with these rows, in this order."""
    return {name: [cells[r] for r in rows] for name, cells in step.items()}


def with_rewards(step: Step, new: dict) -> Step:
    """The step with other rewards in some rows."""
    rewards = [new.get(row, old) for row, old in enumerate(step["reward"])]
    return {**step, "reward": rewards}


def other_rewards(step: Step, row: int, still: list) -> Changes:
    """Other rewards in the row, which must not move the rows `still`: the
    mean of its siblings, one more, and one less than every reward."""
    rewards = step["reward"]
    own = step["prompt"][row]
    siblings = [
        reward
        for r, (prompt, reward) in enumerate(zip(step["prompt"], rewards))
        if prompt == own and r != row
    ]
    mean = sum(siblings) / len(siblings) if siblings else 0.0
    old = rewards[row]
    for new in (mean, old + 1, min(rewards) - 1):
        if new != old:
            what = (
                f"the reward of {listed(step, [row])} changes from {old:g} to {new:g}"
            )
            yield Change(what, with_rewards(step, {row: new}), still, still)


def couples_prompts(settings: Settings) -> str:
    """The setting by which a trainer compares rows of all prompts by design,
    as 'baseline batch_mean'; '' where there is none."""
    if settings["baseline"] == "batch_mean":
        return "baseline batch_mean"
    if settings["scale"] in ("batch_std", "nonzero_share"):
        return f"scale {settings['scale']}"
    return "whiten_tokens" if settings["whiten_tokens"] else ""


def valued(step: Step, settings: Settings) -> list:
    """The row has an advantage: a transition is left of it, and its prompt
    has enough rows."""
    sizes = {rows[0]: len(rows) for rows in prompts(step)}
    size = {row: sizes[rows[0]] for rows in prompts(step) for row in rows}
    least = settings["min_group_size"]
    return [
        kept > 0 and size[row] >= least for row, kept in enumerate(step["kept_steps"])
    ]


def credited(step: Step, settings: Settings) -> list:
    """The row may earn an advantage: it has a token, a reward function
    scored it, and it ended where unfinished rows are masked."""
    unfinished_earn = not settings["mask_no_eos"]
    cells = zip(step["mask"], step["scored"], step["eos"])
    return [
        any(mask) and bool(scored) and (bool(eos) or unfinished_earn)
        for mask, scored, eos in cells
    ]


def votes(step: Step, settings: Settings, rows: list) -> list:
    """The first row with credit of each rollout among `rows`."""
    earns = credited(step, settings)
    first: dict = {}
    for row in rows:
        if earns[row]:
            first.setdefault(step["rollout"][row], row)
    return sorted(first.values())


def has_baseline(step: Step, settings: Settings, rows: list) -> bool:
    """The rows, a prompt, are compared with their own mean."""
    count = len(votes(step, settings, rows))
    return count > (settings["lone_row"] == "raw")


def whitens_to_zero(step: Step, settings: Settings) -> bool:
    """Equal rewards give every row the same score before the whitening, and
    there are tokens enough to whiten."""
    if settings["scale"] != "none":
        return False
    earns = credited(step, settings)
    counts = [len(votes(step, settings, rows)) for rows in prompts(step)]
    lone = {count == 1 for count in counts if count}
    mixed = settings["lone_row"] == "raw" and len(lone) > 1
    tokens = sum(sum(m) for m, earn in zip(step["mask"], earns) if earn)
    return not mixed and tokens > settings["whiten_ddof"]


def deviation(values: list) -> float:
    """The standard deviation of the values, 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return (squares / (len(values) - 1)) ** 0.5


def clipped(step: Step, settings: Settings, new: dict) -> bool:
    """The clip cuts a reward of the step, old or new."""
    if settings["reward_clip"] is None:
        return False
    bias, times = settings["reward_bias"], settings["reward_scaling"]
    values = [*step["reward"], *new.values()]
    return any(
        abs((value + bias) * times) > settings["reward_clip"] for value in values
    )


def due(change: Change, before: list, after: list) -> list:
    """What a law asks of a change, given the values of the unchanged and the
    changed step, a number or a list of numbers a row: triples of a place in
    `change.rows`, the value that is due, and the value that was found."""
    if change.total:
        return [(0, 0.0, sum(after[row] for row in change.rows))]
    found = []
    for place, row in enumerate(change.rows):
        if change.keeps:
            value = before[change.keeps[place]]
            value = value * change.times if change.times != 1 else value
        else:
            value = change.equals[place]
        found.append((place, value, after[row]))
    return found


def gap(a: float | list, b: float | list) -> float:
    """How far two numbers, or lists of them, lie apart, as a share of their
    size, from 1 up. Infinite where only one of them is a finite number."""
    if isinstance(a, list) and isinstance(b, list):
        return max((gap(x, y) for x, y in zip(a, b)), default=0.0)
    if isinstance(a, list) or isinstance(b, list):
        return math.inf
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))


def worst(law: Law, values: Values, steps: list, settings: Settings) -> tuple:
    """The largest violation of a law over training steps, and what it is.

    `values` gives a number or a list of numbers a row, by step and settings.
    """
    most, said = 0.0, ""
    for step in steps:
        changes = list(law(step, settings))
        before = values(step, settings) if changes else []
        for change in changes:
            after = values(change.step, {**settings, **change.settings})
            for place, expected, found in due(change, before, after):
                size = gap(expected, found) - change.slack
                if size > most:
                    row = change.step["row"][change.rows[place]]
                    most = size
                    said = f"row {row} has {found}, and {expected} is due"
                    said += f", when {change.what}" if change.what else ""
    return most, said


def the_correct_numbers(expected: list) -> Law:
    """The values that the correct computation gives, under these settings."""

    def law(step: Step, settings: Settings) -> Changes:
        equals = [expected[row] for row in step["row"]]
        yield Change("", step, rows_of(step), [], equals)

    return law
