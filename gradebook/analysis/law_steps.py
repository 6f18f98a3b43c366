"""What the laws ask of a training step, and what they answer with.

A step is a plain dict of columns, and nothing here imports Gradebook, because
an exported pytest file contains the source of these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Step: TypeAlias = dict[str, list[Any]]
Settings: TypeAlias = Mapping[str, Any]


class Change(NamedTuple):
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

    what: str
    step: dict[str, list[Any]]
    rows: list[int]
    keeps: list[int]
    equals: list[Any] = []
    times: float = 1.0
    slack: float = 0.0
    total: bool = False
    settings: dict[str, Any] = {}


def rows_of(step: Step) -> list[int]:
    """The rows 0, 1, .. of the step."""
    return list(range(len(step["reward"])))


def sampled(items: Iterable[Any], most: int = 32) -> list[Any]:
    """At most `most` of the items, evenly spread."""
    every = list(items)
    return every[:: max(1, -(-len(every) // most))]


def listed(step: Step, rows: list[int]) -> str:
    """'row 3', 'rows 3 and 4', 'rows 3, 4 and 5'."""
    names = [str(step["row"][row]) for row in rows]
    if len(names) > 12:
        names = [*names[:11], f"{len(names) - 11} more"]
    if len(names) < 2:
        return f"row {''.join(names)}"
    return f"rows {', '.join(names[:-1])} and {names[-1]}"


def grouped(keys: Iterable[Any]) -> list[list[int]]:
    """The rows that share a key, by first appearance."""
    found: dict[Any, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return list(found.values())


def prompts(step: Step) -> list[list[int]]:
    """The rows of each prompt."""
    return grouped(step["prompt"])


def rollouts(step: Step) -> list[list[int]]:
    """The rows of each rollout."""
    return grouped(zip(step["prompt"], step["rollout"]))


def other_prompts(step: Step, row: int) -> list[int]:
    """The rows of all prompts but the row's own."""
    own = step["prompt"][row]
    return [r for r, prompt in enumerate(step["prompt"]) if prompt != own]


def picked(step: Step, rows: Iterable[int]) -> Step:
    """A step with these rows, in this order."""
    kept = list(rows)
    return {name: [cells[r] for r in kept] for name, cells in step.items()}


def with_rewards(step: Step, new: Mapping[int, float]) -> Step:
    """The step with other rewards in some rows."""
    rewards = [new.get(row, old) for row, old in enumerate(step["reward"])]
    return {**step, "reward": rewards}


def other_rewards(step: Step, row: int, still: list[int]) -> Iterator[Change]:
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
                f"the reward of {listed(step, [row])} changes from {old:g}"
                f" to {new:g}"
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


def valued(step: Step, settings: Settings) -> list[bool]:
    """The row has an advantage: a transition is left of it, and its prompt
    has enough rows."""
    sizes = {rows[0]: len(rows) for rows in prompts(step)}
    size = {row: sizes[rows[0]] for rows in prompts(step) for row in rows}
    least = settings["min_group_size"]
    return [
        kept > 0 and size[row] >= least
        for row, kept in enumerate(step["kept_steps"])
    ]


def credited(step: Step, settings: Settings) -> list[bool]:
    """The row may earn an advantage: it has a token, a reward function
    scored it, and it ended where unfinished rows are masked."""
    unfinished_earn = not settings["mask_no_eos"]
    cells = zip(step["mask"], step["scored"], step["eos"])
    return [
        any(mask) and bool(scored) and (bool(eos) or unfinished_earn)
        for mask, scored, eos in cells
    ]


def votes(step: Step, settings: Settings, rows: list[int]) -> list[int]:
    """The first row with credit of each rollout among `rows`."""
    earns = credited(step, settings)
    first: dict[Any, int] = {}
    for row in rows:
        if earns[row]:
            first.setdefault(step["rollout"][row], row)
    return sorted(first.values())


def has_baseline(step: Step, settings: Settings, rows: list[int]) -> bool:
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


def deviation(values: list[float]) -> float:
    """The standard deviation of the values, 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return (squares / (len(values) - 1)) ** 0.5


def clipped(step: Step, settings: Settings, new: Mapping[int, float]) -> bool:
    """The clip cuts a reward of the step, old or new."""
    if settings["reward_clip"] is None:
        return False
    bias, times = settings["reward_bias"], settings["reward_scaling"]
    values = [*step["reward"], *new.values()]
    return any(
        abs((value + bias) * times) > settings["reward_clip"]
        for value in values
    )


def due(
    change: Change, before: list[Any], after: list[Any]
) -> Iterator[tuple[int, Any, Any]]:
    """What the law asks of a change, given the values of the unchanged and
    the changed step, a number or a list of numbers a row: triples of a place
    in `change.rows`, the value that is due, and the value that was found."""
    if change.total:
        yield 0, 0.0, sum(after[row] for row in change.rows)
        return
    for place, row in enumerate(change.rows):
        if change.keeps:
            value = before[change.keeps[place]]
            if isinstance(value, float):
                value *= change.times
            yield place, value, after[row]
        else:
            yield place, change.equals[place], after[row]
