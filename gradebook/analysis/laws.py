"""The laws: what holds of a trainer without a bug.

A law takes one training step and the settings, and yields changes: the changed
step, and the values that its rows must have then. It calls no trainer, so one law
judges an engine on a page, a probed function, and a trainer in an exported pytest
file, which holds the source of these functions: they import nothing of Gradebook.

A step is a list of rows, each a plain dict. The laws read `row` (the row's
number), `prompt`, `rollout`, `reward`, `credited` (the row may earn an
advantage), `counted` (the row enters the statistics of its prompt) and
`valued` (the row gets an advantage); the laws of COLUMNS read more.

A law's docstring says the law first, and then what a step must have, or else the
law yields nothing. A new law stands in EIGHT (every bug's page asks it, the probe on
batches that `probe.suits` admits, the table once the releases are measured again) or in
COLUMNS (asked where a bug's record names it); what breaks it by design stands in
`law_check.convention`. An exported test asks the laws that the bug's record names,
and the bug must break each of them on one of its cases.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Step: TypeAlias = list[dict[str, Any]]
Settings: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Callable[[Step, Settings], list]


@dataclass(frozen=True)
class Change:
    """A changed training step, and what its rows must have.

    what      the change in words, '' for the step as it is
    due       by number of each row that is looked at, the value it must have;
              None: the one it had
    times     what a value that is kept is multiplied by
    slack     the share of a value that eps may account for
    total     the sum of the rows is looked at, which must be 0
    """

    what: str
    step: Step
    due: dict
    times: float = 1.0
    slack: float = 0.0
    total: bool = False
    settings: Mapping = field(default_factory=dict)


Changes: TypeAlias = Iterator[Change]
Law: TypeAlias = Callable[[Step, Settings], Changes]


def sampled(items: list, most: int = 16) -> list:
    return items[:: max(1, -(-len(items) // most))]


def grouped(step: Step, *names: str) -> list:
    """The rows that share the cells of these columns, by first appearance."""
    groups: dict = {}
    for row in step:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(groups.values())


def due_of(rows: Step, value: float | None = None) -> dict:
    return {row["row"]: value for row in rows}


def listed(numbers: list) -> str:
    """'row 3', 'rows 3 and 4', 'rows 3, 4 and 5'."""
    names = [str(number) for number in numbers]
    if len(names) > 8:
        names = [*names[:7], f"{len(names) - 7} more"]
    if len(names) < 2:
        return f"row {names[0]}" if names else "no row"
    return f"rows {', '.join(names[:-1])} and {names[-1]}"


def with_rewards(step: Step, new: dict) -> Step:
    return [{**row, "reward": new.get(row["row"], row["reward"])} for row in step]


def with_mean(groups: list, settings: Settings) -> list:
    """The groups whose rows are compared with a mean of their own."""
    least = 2 if settings["lone_row"] == "raw" else 1
    return sampled([g for g in groups if sum(row["counted"] for row in g) >= least])


# The eight laws of a group-relative advantage


def order(step: Step, settings: Settings) -> Changes:
    """The order of the rows changes no advantage.

    It needs two rollouts.
    """
    rollouts = grouped(step, "prompt", "rollout")
    for what, mixed in (
        ("the rows come in reverse order", rollouts[::-1]),
        ("every second row comes first", rollouts[1::2] + rollouts[::2]),
    ):
        if len(rollouts) > 1:
            yield Change(what, sum(mixed, []), due_of(step))


def other_prompts(step: Step, settings: Settings) -> Changes:
    """A change of a row's reward changes no advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    lowest = min([row["reward"] for row in step], default=0.0)
    for row in sampled(step):
        still = due_of([other for other in step if other["prompt"] != row["prompt"]])
        old = row["reward"]
        for new in (0.0, old + 1, lowest - 1):
            if still and new != old:
                what = f"the reward of row {row['row']} changes from {old:g} to {new:g}"
                yield Change(what, with_rewards(step, {row["row"]: new}), still)


def shift(step: Step, settings: Settings) -> Changes:
    """The same number added to all rewards of a prompt changes no advantage.

    It needs a baseline from the prompt's own rows (a lone row has none where
    `lone_row` is raw).
    """
    far = 100 * max([1.0, *(abs(row["reward"]) for row in step)])
    for rows in with_mean(grouped(step, "prompt"), settings):
        for by in (1.0, far):
            what = f"{listed([*due_of(rows)])} gain {by:g} each"
            new = {row["row"]: row["reward"] + by for row in rows}
            yield Change(what, with_rewards(step, new), due_of(rows))


def scale(step: Step, settings: Settings) -> Changes:
    """Multiplying the rewards of a prompt by 10 changes no advantage where
    the prompt's deviation divides them, and multiplies them by 10 where
    nothing does.

    It needs rewards that vary by much more than eps.
    """
    divided = settings["scale"] != "none"
    for rows in with_mean(grouped(step, "prompt"), settings):
        rewards = [row["reward"] for row in rows if row["counted"]]
        mean = sum(rewards) / len(rewards)
        squares = sum((reward - mean) ** 2 for reward in rewards)
        spread = (squares / max(1, len(rewards) - 1)) ** 0.5
        spread *= abs(settings["reward_scaling"])
        slack = 2 * settings["eps"] / spread if spread and divided else 0.0
        if len(set(rewards)) > 1 and spread and slack < 0.1:
            new = {row["row"]: row["reward"] * 10 for row in rows}
            what = f"the rewards of {listed([*new])} grow tenfold"
            tenfold, times = with_rewards(step, new), 1.0 if divided else 10.0
            yield Change(what, tenfold, due_of(rows), times, slack)


def zero_sum(step: Step, settings: Settings) -> Changes:
    """The advantages of a prompt add up to 0, each rollout counted once.

    It needs a prompt with two rows that count.
    """
    for rows in with_mean(grouped(step, "prompt"), settings):
        counted = [row for row in rows if row["counted"]]
        if len(counted) > 1 and all(row["valued"] for row in counted):
            yield Change("", step, due_of(counted), total=True)


def flat(step: Step, settings: Settings) -> Changes:
    """Where a prompt's rewards that count are all equal, its advantages are 0.

    It needs a prompt whose rows are compared with their mean.
    """
    for rows in with_mean(grouped(step, "prompt"), settings):
        earning = [row for row in rows if row["credited"]]
        zeros = due_of([row for row in earning if row["valued"]], 0.0)
        rewards = [row["reward"] for row in earning]
        if min(rewards) == max(rewards):
            yield Change("", step, zeros)
            continue
        for reward in (rewards[0], 100.1):
            new = due_of(earning, reward)
            what = f"the rewards of {listed([*new])} are all {reward:g}"
            yield Change(what, with_rewards(step, new), zeros)


def lost_row(step: Step, settings: Settings) -> Changes:
    """Removing a row changes no advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    for row in sampled(step):
        still = due_of([other for other in step if other["prompt"] != row["prompt"]])
        if still:
            rest = [other for other in step if other is not row]
            yield Change(f"row {row['row']} is removed", rest, still)


def missing(step: Step, settings: Settings) -> Changes:
    """A missing reward is not a 0: a row without credit gets 0, and the other
    rows get what they get without it.

    It needs a row without a reward, without tokens, or without EOS where such
    rows are masked.
    """
    denied = [row for row in step if not row["credited"]]
    zeros = due_of([row for row in denied if row["valued"]], 0.0)
    if zeros:
        yield Change("", step, zeros)
    rest = [row for row in step if row["credited"]]
    if rest and denied and settings["min_group_size"] == 1:
        leave = "leaves" if len(denied) == 1 else "leave"
        what = f"{listed([*due_of(denied)])} {leave} the batch"
        yield Change(what, rest, due_of(rest))


# Laws of tokens, labels and the loss, for the bugs that need one


def padding(step: Step, settings: Settings) -> Changes:
    """One more column of padding changes no advantage.

    It needs a row.
    """
    fillers = {"mask": 0, "logp": 0.0, "ref_logp": 0.0}
    wider = [
        row | {n: [*row[n], filler] for n, filler in fillers.items() if n in row}
        for row in step
    ]
    if step:
        yield Change("the batch has one more column of padding", wider, due_of(step))


def labels(step: Step, settings: Settings) -> Changes:
    """Other ranks, and other texts of prompts, change no advantage.

    It needs a row.
    """
    for what, column, apart in (
        ("all rows are on one rank", "rank", 0),
        ("every row is on a rank of its own", "rank", 1),
        ("all prompts have the same text", "text", 0),
        ("every row has a text of its own", "text", 1),
    ):
        if step:
            new = [{**row, column: place * apart} for place, row in enumerate(step)]
            yield Change(what, new, due_of(step))


def flat_gradient(step: Step, settings: Settings) -> Changes:
    """A group whose rewards are all equal has gradient 0 at every token.

    It needs log-probabilities, beta above 0, and such a group.
    """
    if not step or "logp" not in step[0] or not settings["beta"]:
        return
    of_step = settings["scale"] == "batch_std"
    groups = [step] if of_step else grouped(step, "prompt")
    for rows in with_mean(groups, settings):
        if len({row["reward"] for row in rows if row["counted"]}) == 1:
            trained = [row for row in rows if any(row["mask"])]
            zeros = {row["row"]: [0.0] * len(row["mask"]) for row in trained}
            yield Change("", step, zeros)


def micro_batch(step: Step, settings: Settings) -> Changes:
    """How a step is cut into micro-batches changes no token's gradient.

    It needs log-probabilities and two rows.
    """
    for size in sorted({1, 2, len(step)}):
        if len(step) > 1 and "logp" in step[0]:
            what, new = f"a micro-batch has {size} rows", {"micro_batch": size}
            yield Change(what, step, due_of(step), settings=new)


# Trying a law


def tried(law: Law, values: Values, steps: list, settings: Settings) -> Iterator:
    """Each change of the steps that a law asks about, with its numbers (`compared`).
    `values` gives a number or a list of numbers per row; nothing if it cannot."""
    for step in steps:
        changes = list(law(step, settings))
        before = dict(zip(due_of(step), values(step, settings) if changes else []))
        for change in changes if before else []:
            after = values(change.step, {**settings, **change.settings})
            if after:
                there = dict(zip(due_of(change.step), after))
                yield change, compared(change, before, there)


def compared(change: Change, before: dict, there: dict) -> list:
    """(row, value due, value there, compared size) of each row that is looked at, or
    of their sum."""
    if change.total:
        terms = [there[row] for row in change.due]
        return [(min(change.due), 0.0, sum(terms), sum(map(abs, terms)))]
    lines = []
    for row, due in change.due.items():
        asked = in_list(before[row] if due is None else due)
        for old, value in zip(asked, in_list(there[row])):
            lines.append((row, old * change.times, value, abs(old * change.times)))
    return lines


def in_list(value: float | list) -> list:
    return value if isinstance(value, list) else [value]


def gap(a: float, b: float) -> float:
    """How far two numbers are apart, as a share of their size or of 1."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))


def worst(law: Law, values: Values, steps: list, settings: Settings) -> tuple:
    """The largest violation of a law over training steps, and what it is."""
    most, sentence = 0.0, ""
    for change, lines in tried(law, values, steps, settings):
        for row, due, value, _ in lines:
            size = gap(due, value) - change.slack
            if size > most:
                most = size
                sentence = f"row {row} has {value}, and {due} is due"
                sentence += f", when {change.what}" if change.what else ""
    return most, sentence


def the_correct_numbers(expected: list) -> Law:
    """The values that the correct computation gives, under these settings."""

    def law(step: Step, settings: Settings) -> Changes:
        yield Change("", step, {row["row"]: expected[row["row"]] for row in step})

    return law


EIGHT = (order, other_prompts, shift, scale, zero_sum, flat, lost_row, missing)
"""The laws of any group-relative advantage: of rewards in groups alone."""

GRADIENT = (flat_gradient, micro_batch)

COLUMNS = (padding, labels, *GRADIENT)
"""The laws that need more columns than rewards and prompts."""

LAWS: Mapping[str, Law] = {law.__name__: law for law in (*EIGHT, *COLUMNS)}
"""The laws by name; the records of the bugs list these names."""
