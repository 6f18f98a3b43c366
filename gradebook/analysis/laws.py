"""The laws: what holds of a trainer without a bug.

A law takes one training step and the settings, and yields changes: the changed
step, and the values that its rows must have then. It calls no trainer, so one law
judges an engine on a page, a probed function, and a trainer in an exported pytest
file, which holds the source of these functions: they import nothing of Gradebook.

A step is a plain dict of columns, lists by name. The laws read `row` (the
row's number), `prompt`, `rollout`, `reward`, `credited` (the row may earn an
advantage), `counted` (the row enters the statistics of its prompt) and
`valued` (the row gets an advantage); the laws of COLUMNS read more.

A law's docstring says the law first, and then what a step must have, or else the
law yields nothing. A new law stands in EIGHT (page and probe ask it, and the table once
the releases are measured again) or in COLUMNS (asked where a bug's record names
it); what breaks it by design stands in `law_check.convention`. An exported test
asks the laws that the bug's record names, and the bug must break each of them on
one of its cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Step: TypeAlias = dict[str, list]
Settings: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Callable[[Step, Settings], "list | None"]


@dataclass(frozen=True)
class Change:
    """A changed training step, and what its rows must have.

    what      the change in words, '' for the step as it is
    step      the changed step; a row that is added has a new number
    rows      the numbers of the rows that are looked at
    due       the value that each of them must have; None: the one it had
    times     what a value that is kept is multiplied by
    slack     the share of a value that eps may account for
    total     the sum of the rows is looked at, which must be 0
    settings  settings that change
    """

    what: str
    step: Step
    rows: list
    due: list | None = None
    times: float = 1.0
    slack: float = 0.0
    total: bool = False
    settings: Mapping = field(default_factory=dict)


Changes: TypeAlias = Iterator[Change]
Law: TypeAlias = Callable[[Step, Settings], Changes]


def places_of(step: Step) -> list:
    return list(range(len(step["reward"])))


def sampled(items: list, most: int = 16) -> list:
    return items[:: max(1, -(-len(items) // most))]


def grouped(keys: list) -> list:
    """The places that share a key, by first appearance."""
    groups: dict = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def picked(step: Step, places: list) -> Step:
    return {name: [cells[p] for p in places] for name, cells in step.items()}


def numbers(step: Step, places: list) -> list:
    return [step["row"][place] for place in places]


def listed(step: Step, places: list) -> str:
    """'row 3', 'rows 3 and 4', 'rows 3, 4 and 5'."""
    names = [str(number) for number in numbers(step, places)]
    if len(names) > 12:
        names = [*names[:11], f"{len(names) - 11} more"]
    if len(names) < 2:
        return f"row {''.join(names)}"
    return f"rows {', '.join(names[:-1])} and {names[-1]}"


def with_rewards(step: Step, new: dict) -> Step:
    rewards = [new.get(place, old) for place, old in enumerate(step["reward"])]
    return {**step, "reward": rewards}


def in_other_prompts(step: Step, place: int) -> list:
    """The numbers of the rows of all prompts but that of the row there."""
    prompt = step["prompt"][place]
    return [n for n, other in zip(step["row"], step["prompt"]) if other != prompt]


def with_baseline(step: Step, settings: Settings) -> list:
    """The places of each prompt that has a mean of its own to compare with."""
    least = 2 if settings["lone_row"] == "raw" else 1
    prompts = grouped(step["prompt"])
    return [p for p in prompts if sum(step["counted"][i] for i in p) >= least]


def clipped(settings: Settings, rewards: list) -> bool:
    most = settings["reward_clip"]
    bias, times = settings["reward_bias"], settings["reward_scaling"]
    return most is not None and any(abs((r + bias) * times) > most for r in rewards)


# The eight laws of a group-relative advantage


def order(step: Step, settings: Settings) -> Changes:
    """The order of the rows changes no advantage.

    It needs two rollouts.
    """
    rollouts = grouped(list(zip(step["prompt"], step["rollout"])))
    for what, places in (
        ("the rows come in reverse order", rollouts[::-1]),
        ("every second row comes first", rollouts[1::2] + rollouts[::2]),
    ):
        if len(rollouts) > 1:
            mixed = picked(step, [place for rows in places for place in rows])
            yield Change(what, mixed, step["row"])


def other_prompts(step: Step, settings: Settings) -> Changes:
    """A change of a row's reward changes no advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    for place in sampled(places_of(step)):
        old, still = step["reward"][place], in_other_prompts(step, place)
        siblings = [
            reward
            for p, reward in enumerate(step["reward"])
            if step["prompt"][p] == step["prompt"][place] and p != place
        ]
        mean = sum(siblings) / len(siblings) if siblings else 0.0
        for new in (mean, old + 1, min(step["reward"]) - 1):
            if still and new != old:
                what = f"the reward of {listed(step, [place])} changes from {old:g}"
                changed = with_rewards(step, {place: new})
                yield Change(f"{what} to {new:g}", changed, still)


def shift(step: Step, settings: Settings) -> Changes:
    """The same number added to all rewards of a prompt changes no advantage.

    It needs a baseline from the prompt's own rows (a lone row has none where
    `lone_row` is raw), and rewards that no clip cuts.
    """
    far = 100 * max([1.0, *map(abs, step["reward"])])
    for places in sampled(with_baseline(step, settings)):
        for by in (1.0, far):
            new = {place: step["reward"][place] + by for place in places}
            if not clipped(settings, [*step["reward"], *new.values()]):
                what = f"{listed(step, places)} gain {by:g} each"
                rows = numbers(step, places)
                yield Change(what, with_rewards(step, new), rows)


def scale(step: Step, settings: Settings) -> Changes:
    """Multiplying the rewards of a prompt by 10 changes no advantage where
    the prompt's deviation divides them, and multiplies them by 10 where
    nothing does.

    It needs rewards that vary by much more than eps.
    """
    divided = settings["scale"] != "none"
    for places in sampled(grouped(step["prompt"])):
        rewards = [step["reward"][p] for p in places if step["counted"][p]]
        if len(set(rewards)) < 2:
            continue
        mean = sum(rewards) / len(rewards)
        squares = sum((reward - mean) ** 2 for reward in rewards)
        spread = (squares / (len(rewards) - 1)) ** 0.5
        spread *= abs(settings["reward_scaling"])
        slack = 2 * settings["eps"] / spread if spread and divided else 0.0
        if spread and slack < 0.1:
            new = {place: step["reward"][place] * 10 for place in places}
            what = f"the rewards of {listed(step, places)} grow tenfold"
            tenfold, times = with_rewards(step, new), 1.0 if divided else 10.0
            yield Change(what, tenfold, numbers(step, places), None, times, slack)


def zero_sum(step: Step, settings: Settings) -> Changes:
    """The advantages of a prompt add up to 0, each rollout counted once.

    It needs a prompt with two rows that count.
    """
    for places in sampled(grouped(step["prompt"])):
        rows = [place for place in places if step["counted"][place]]
        if len(rows) > 1 and all(step["valued"][place] for place in rows):
            yield Change("", step, numbers(step, rows), total=True)


def flat(step: Step, settings: Settings) -> Changes:
    """Where a prompt's rewards that count are all equal, its advantages are 0.

    It needs a prompt whose rows are compared with their mean.
    """
    for places in sampled(with_baseline(step, settings)):
        earning = [place for place in places if step["credited"][place]]
        rows = numbers(step, [place for place in earning if step["valued"][place]])
        zeros = [0.0] * len(rows)
        rewards = [step["reward"][place] for place in earning]
        if min(rewards) == max(rewards):
            yield Change("", step, rows, zeros)
            continue
        for reward in (rewards[0], 100.1):
            what = f"the rewards of {listed(step, earning)} are all {reward:g}"
            changed = with_rewards(step, dict.fromkeys(earning, reward))
            yield Change(what, changed, rows, zeros)


def lost_row(step: Step, settings: Settings) -> Changes:
    """Removing a row changes no advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    for place in sampled(places_of(step)):
        still = in_other_prompts(step, place)
        if still:
            what = f"{listed(step, [place])} is removed"
            rest = [p for p in places_of(step) if p != place]
            yield Change(what, picked(step, rest), still)


def missing(step: Step, settings: Settings) -> Changes:
    """A missing reward is not a 0: a row without credit gets 0, and the other
    rows get what they get without it.

    It needs a row without a reward, without tokens, or without EOS where such
    rows are masked.
    """
    denied = [p for p, credited in enumerate(step["credited"]) if not credited]
    valued = numbers(step, [place for place in denied if step["valued"][place]])
    if valued:
        yield Change("", step, valued, [0.0] * len(valued))
    rest = [p for p, credited in enumerate(step["credited"]) if credited]
    if rest and denied and settings["min_group_size"] == 1:
        leave = "leaves" if len(denied) == 1 else "leave"
        what = f"{listed(step, denied)} {leave} the batch"
        yield Change(what, picked(step, rest), numbers(step, rest))


# Laws of tokens, labels and the loss, for the bugs that need one


def padding(step: Step, settings: Settings) -> Changes:
    """One more column of padding changes no advantage.

    It needs a row.
    """
    wider = {
        name: [[*cells, filler] for cells in step[name]]
        for name, filler in (("mask", 0), ("logp", 0.0), ("ref_logp", 0.0))
        if name in step
    }
    if step["row"]:
        what = "the batch has one more column of padding"
        yield Change(what, {**step, **wider}, step["row"])


def labels(step: Step, settings: Settings) -> Changes:
    """Other ranks, and other texts of prompts, change no advantage.

    It needs a row.
    """
    alone, together = places_of(step), [0 for _ in step["row"]]
    for what, new in (
        ("all rows are on one rank", {"rank": together}),
        ("every row is on a rank of its own", {"rank": alone}),
        ("all prompts have the same text", {"text": together}),
        ("every row has a text of its own", {"text": alone}),
    ):
        if alone:
            yield Change(what, {**step, **new}, step["row"])


def flat_gradient(step: Step, settings: Settings) -> Changes:
    """A group whose rewards are all equal has gradient 0 at every token.

    It needs log-probabilities, beta above 0, and such a group.
    """
    if "logp" not in step or not settings["beta"]:
        return
    whole = settings["scale"] == "batch_std"
    prompts = [places_of(step)] if whole else sampled(grouped(step["prompt"]))
    for places in prompts:
        rewards = [step["reward"][p] for p in places if step["counted"][p]]
        alone = len(rewards) == 1 and settings["lone_row"] == "raw"
        if len(set(rewards)) == 1 and not alone:
            rows = [place for place in places if any(step["mask"][place])]
            zeros = [[0.0] * len(step["mask"][place]) for place in rows]
            yield Change("", step, numbers(step, rows), zeros)


def micro_batch(step: Step, settings: Settings) -> Changes:
    """How a step is cut into micro-batches changes no token's gradient.

    It needs log-probabilities and two rows.
    """
    rows = len(step["row"])
    for size in sorted({1, 2, rows}):
        if "logp" in step and rows > 1:
            what = f"a micro-batch has {size} rows"
            new = {"micro_batch": size}
            yield Change(what, step, step["row"], settings=new)


# Trying a law


def tried(law: Law, values: Values, step: Step, settings: Settings) -> Iterator:
    """Each change of a step that a law asks about, with the numbers that it
    speaks of: the row, the value due, the value there, and the compared size.

    `values` gives a number or a list of numbers a row; None where it cannot.
    """
    changes = list(law(step, settings))
    now = values(step, settings) if changes else None
    if now is None:
        return
    before = dict(zip(step["row"], now))
    for change in changes:
        after = values(change.step, {**settings, **change.settings})
        if after is None:
            continue
        pairs = [(r, v) for r, v in zip(change.step["row"], after) if r in change.rows]
        if change.total:
            terms = [value for _, value in pairs]
            yield change, [(pairs[0][0], 0.0, sum(terms), sum(map(abs, terms)))]
            continue
        asked = dict(zip(change.rows, change.due)) if change.due else before
        compared = [
            (row, due * change.times, value, abs(due * change.times))
            for row, cells in pairs
            for due, value in zip(in_list(asked[row]), in_list(cells))
        ]
        yield change, compared


def in_list(value: float | list) -> list:
    return value if isinstance(value, list) else [value]


def gap(a: float, b: float) -> float:
    """How far two numbers are apart, as a share of their size, from 1 up."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))


def worst(law: Law, values: Values, steps: list, settings: Settings) -> tuple:
    """The largest violation of a law over training steps, and what it is."""
    most, sentence = 0.0, ""
    for step in steps:
        for change, compared in tried(law, values, step, settings):
            for row, due, value, _ in compared:
                size = gap(due, value) - change.slack
                if size > most:
                    most = size
                    sentence = f"row {row} has {value}, and {due} is due"
                    sentence += f", when {change.what}" if change.what else ""
    return most, sentence


def the_correct_numbers(expected: list) -> Law:
    """The values that the correct computation gives, under these settings."""

    def law(step: Step, settings: Settings) -> Changes:
        yield Change("", step, step["row"], [expected[row] for row in step["row"]])

    return law


EIGHT = (order, other_prompts, shift, scale, zero_sum, flat, lost_row, missing)
"""The laws of any group-relative advantage: of rewards in groups alone."""

GRADIENT = (flat_gradient, micro_batch)

COLUMNS = (padding, labels, *GRADIENT)
"""The laws that need more columns than rewards and prompts."""

LAWS: Mapping[str, Law] = {law.__name__: law for law in (*EIGHT, *COLUMNS)}
"""The laws by name; the records of the bugs list these names."""
