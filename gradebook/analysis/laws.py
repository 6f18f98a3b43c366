"""The laws: what holds of a trainer without a bug.

A law takes one training step and the settings, and yields follow-ups (the word of
metamorphic testing): a changed step, and the values that its rows must have then. It
calls no trainer, so one law judges an engine on a page, a probed function, and a
trainer in an exported pytest file, which holds the source of these functions: they
import nothing of Gradebook.

A step is a list of rows, each a plain dict. The laws read `row` (the row's
number), `prompt`, `rollout`, `reward`, `credited` (the row may earn an
advantage), `counted` (the row enters the statistics of its prompt) and
`valued` (the row gets an advantage); the laws of MORE_COLUMNS read more.

A law's docstring says the law first, and then what a step must have, or else the law
yields nothing. A new law belongs in OF_REWARDS (asked on every bug's page, by the probe
on batches that `probe.suits` admits, and in the table once the releases are measured
again) or in MORE_COLUMNS (asked if a bug's record names it); settings that break it by
design belong in `law_check.convention`. An exported test asks the laws that the bug's
record names, and the bug must break each of them on one of its cases.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Step: TypeAlias = list[dict[str, Any]]
Settings: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Callable[[Step, Settings], list]


@dataclass(frozen=True)
class FollowUp:
    """A changed training step, and what its rows must have.

    what      the change in words, '' for the step as it is
    due       row number -> the value that the row must have; None: the value that it
              had
    times     the factor of a value that is kept
    slack     the share of a value that eps may account for
    total     the sum of the rows is checked: it must be 0
    falls     a value that is kept must be less than it was
    rises     `due` has the rows' rewards: no row's value may be below the value of a
              row with a lower reward
    settings  what is set otherwise
    base      the step whose value is kept, if it is not the given one
    base_settings  what is set otherwise there
    """

    what: str
    step: Step
    due: dict
    times: float = 1.0
    slack: float = 0.0
    total: bool = False
    falls: bool = False
    rises: bool = False
    settings: Mapping = field(default_factory=dict)
    base: Step | None = None
    base_settings: Mapping = field(default_factory=dict)


FollowUps: TypeAlias = Iterator[FollowUp]
Law: TypeAlias = Callable[[Step, Settings], FollowUps]


def sampled(items: list, most: int = 16) -> list:
    """At most so many of the items, evenly: a law runs the trainer for each."""
    return items[:: max(1, -(-len(items) // most))]


def grouped(step: Step, *names: str) -> list:
    """The rows that share the cells of these columns, by first appearance."""
    groups: dict = {}
    for row in step:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(groups.values())


def due_of(rows: Step, value: float | None = None) -> dict:
    return {row["row"]: value for row in rows}


def unmasked(row: dict, numbers: list) -> list:
    """The numbers of the row's unmasked tokens, of one number for each token."""
    return [number for number, model in zip(numbers, row["mask"]) if model]


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


# The laws of a group-relative advantage


def order(step: Step, settings: Settings) -> FollowUps:
    """The order of the rows must not change an advantage.

    It needs two rollouts.
    """
    rollouts = grouped(step, "prompt", "rollout")
    for what, mixed in (
        ("the rows come in reverse order", rollouts[::-1]),
        ("every second row comes first", rollouts[1::2] + rollouts[::2]),
    ):
        if len(rollouts) > 1:
            yield FollowUp(what, sum(mixed, []), due_of(step))


def other_prompts(step: Step, settings: Settings) -> FollowUps:
    """A change of a row's reward must not change an advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    lowest = min([row["reward"] for row in step], default=0.0)
    for row in sampled(step):
        still = due_of([other for other in step if other["prompt"] != row["prompt"]])
        old = row["reward"]
        for new in (0.0, old + 1, lowest - 1):
            if still and new != old:
                what = f"the reward of row {row['row']} changes from {old:g} to {new:g}"
                yield FollowUp(what, with_rewards(step, {row["row"]: new}), still)


def shift(step: Step, settings: Settings) -> FollowUps:
    """The same number added to all rewards of a prompt must not change an advantage.

    It needs a baseline from the prompt's own rows (a lone row has none if
    `lone_row` is raw).
    """
    far = 100 * max([1.0, *(abs(row["reward"]) for row in step)])
    for rows in with_mean(grouped(step, "prompt"), settings):
        for by in (1.0, far):
            what = f"{listed([*due_of(rows)])} gain {by:g} each"
            new = {row["row"]: row["reward"] + by for row in rows}
            yield FollowUp(what, with_rewards(step, new), due_of(rows))


def scale(step: Step, settings: Settings) -> FollowUps:
    """Multiplying the rewards of a prompt by 10 must not change its advantages if its
    deviation divides them, and must multiply them by 10 if nothing divides them.

    It needs rewards that vary by much more than eps.
    """
    divided = settings["scale"] != "none"
    for rows in with_mean(grouped(step, "prompt"), settings):
        rewards = [row["reward"] for row in rows if row["counted"]]
        mean = sum(rewards) / len(rewards)
        squares = sum((reward - mean) ** 2 for reward in rewards)
        spread = (squares / max(1, len(rewards) - 1)) ** 0.5
        spread *= abs(settings["reward_scaling"])
        # d / (s + eps) and 10 d / (10 s + eps) differ by less than eps / s, as a share.
        # Twice that is allowed; where it is a tenth and more, the law tells nothing.
        slack = 2 * settings["eps"] / spread if spread and divided else 0.0
        if len(set(rewards)) > 1 and spread and slack < 0.1:
            new = {row["row"]: row["reward"] * 10 for row in rows}
            what = f"the rewards of {listed([*new])} grow tenfold"
            tenfold, times = with_rewards(step, new), 1.0 if divided else 10.0
            yield FollowUp(what, tenfold, due_of(rows), times, slack)


def zero_sum(step: Step, settings: Settings) -> FollowUps:
    """The advantages of a prompt must add up to 0, each rollout counted once.

    It needs a prompt with two rows that count.
    """
    for rows in with_mean(grouped(step, "prompt"), settings):
        counted = [row for row in rows if row["counted"]]
        if len(counted) > 1 and all(row["valued"] for row in counted):
            yield FollowUp("", step, due_of(counted), total=True)


def flat(step: Step, settings: Settings) -> FollowUps:
    """If a prompt's rewards that count are all equal, its advantages must be 0.

    It needs a prompt whose rows are compared with their mean.
    """
    for rows in with_mean(grouped(step, "prompt"), settings):
        earning = [row for row in rows if row["credited"]]
        zeros = due_of([row for row in earning if row["valued"]], 0.0)
        rewards = [row["reward"] for row in earning]
        if min(rewards) == max(rewards):
            yield FollowUp("", step, zeros)
            continue
        # No float is 100.1: a float32 mean of such rewards may be another number.
        for reward in (rewards[0], 100.1):
            new = due_of(earning, reward)
            what = f"the rewards of {listed([*new])} are all {reward:g}"
            yield FollowUp(what, with_rewards(step, new), zeros)


def lost_row(step: Step, settings: Settings) -> FollowUps:
    """Removing a row must not change an advantage of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    for row in sampled(step):
        still = due_of([other for other in step if other["prompt"] != row["prompt"]])
        if still:
            rest = [other for other in step if other is not row]
            yield FollowUp(f"row {row['row']} is removed", rest, still)


def missing(step: Step, settings: Settings) -> FollowUps:
    """A missing reward is not a 0: a row without credit must get advantage 0, and the
    other rows what they get without it.

    It needs a row without a reward, without tokens, or without EOS if such
    rows are masked.
    """
    denied = [row for row in step if not row["credited"]]
    zeros = due_of([row for row in denied if row["valued"]], 0.0)
    if zeros:
        yield FollowUp("", step, zeros)
    rest = [row for row in step if row["credited"]]
    if rest and denied and settings["min_group_size"] == 1:
        leave = "leaves" if len(denied) == 1 else "leave"
        what = f"{listed([*due_of(denied)])} {leave} the batch"
        yield FollowUp(what, rest, due_of(rest))


def rising(step: Step, settings: Settings) -> FollowUps:
    """A higher reward must not have a lower advantage within a prompt.

    It needs a prompt with different rewards, of rows that count and earn one.
    """
    for rows in sampled(grouped(step, "prompt")):
        counted = [r for r in rows if r["counted"] and r["credited"] and r["valued"]]
        rewards = {row["row"]: row["reward"] for row in counted}
        if len({*rewards.values()}) > 1:
            yield FollowUp("", step, rewards, rises=True)


# Laws of tokens, labels and the loss, for the bugs that need one


def padding(step: Step, settings: Settings) -> FollowUps:
    """One more column of padding must not change an advantage.

    It needs a row.
    """
    wider = [widened(row, len(row["mask"]), 1, {}) for row in step]
    if step:
        yield FollowUp("the batch has one more column of padding", wider, due_of(step))


def labels(step: Step, settings: Settings) -> FollowUps:
    """Other ranks, and other texts of prompts, must not change an advantage.

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
            yield FollowUp(what, new, due_of(step))


def flat_gradient(step: Step, settings: Settings) -> FollowUps:
    """A group whose rewards are all equal must have gradient 0 at every token.

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
            yield FollowUp("", step, zeros)


def micro_batch(step: Step, settings: Settings) -> FollowUps:
    """Cutting a step into micro-batches must not change a token's gradient.

    It needs log-probabilities and two rows.
    """
    for size in sorted({1, 2, len(step)}):
        if len(step) > 1 and "logp" in step[0]:
            what, new = f"a micro-batch has {size} rows", {"micro_batch": size}
            yield FollowUp(what, step, due_of(step), settings=new)


# Laws of tokens: what is owed to a token, and the gradient at a token


def with_tokens(row: dict, change: Callable[[str, list], list]) -> dict:
    """The row with `change(name, cells)` in place of each column of its tokens."""
    new = dict(row)
    for name in ("mask", "logp", "ref_logp", "old_logp", "behaviour_logp", "value"):
        if name in row:
            new[name] = change(name, row[name])
    return new


def widened(row: dict, at: int, count: int, fillers: Mapping) -> dict:
    """The row with `count` masked tokens more, before its token `at`."""

    def wider(name: str, cells: list) -> list:
        return [*cells[:at], *[fillers.get(name, 0)] * count, *cells[at:]]

    return with_tokens(row, wider)


def padding_tokens(step: Step, settings: Settings) -> FollowUps:
    """Padding must not change a token's advantage, whatever a critic says there.

    It needs a row.
    """
    for value in (100.0, -100.0):
        wider = [widened(row, len(row["mask"]), 1, {"value": value}) for row in step]
        if step:
            what = f"there is a column of padding, of which the critic says {value:g}"
            yield FollowUp(what, wider, due_of(step))


def moved_tokens(step: Step, settings: Settings) -> FollowUps:
    """Moving a row's tokens within the padded width must not change their advantages.

    It needs a row with tokens.
    """
    for row in sampled([row for row in step if any(row["mask"])]):
        count = len(row["mask"])
        moved = []
        for other in step:
            here = other is row
            new = widened(other, 0 if here else count, count, {})
            if here and "extent" in row:
                new["extent"] = row["extent"] + count
            moved.append(new)
        what = f"the tokens of row {row['row']} move to the right by {count}"
        yield FollowUp(what, moved, due_of(step))


def inserted_text(step: Step, settings: Settings) -> FollowUps:
    """Text that a tool inserts must not change what the model's tokens get.

    It needs a row with two tokens.
    """
    of_tool = {"logp": -1.0, "ref_logp": -3.0, "old_logp": -1.0, "value": -1.0}
    of_tool["behaviour_logp"] = -1.0
    for row in sampled([row for row in step if sum(row["mask"]) > 1]):
        at = max(t for t, model in enumerate(row["mask"]) if model)
        for count in (1, 12):
            longer = []
            for other in step:
                here = other is row
                place = at if here else len(other["mask"])
                new = widened(other, place, count, of_tool)
                if here and "extent" in row:
                    new["extent"] = row["extent"] + count
                longer.append(new)
            what = f"a tool writes {count} tokens before the last one of row"
            yield FollowUp(f"{what} {row['row']}", longer, due_of(step))


def kept_prompts(step: Step, settings: Settings) -> FollowUps:
    """A filter of flat prompts must keep all rows of a prompt or none: if rewards
    differ, nothing changes; if they are equal, every row gets 0.

    It needs `filter_flat`, and rewards that are taken as they are.
    """
    if not settings["filter_flat"] or settings["reward_clip"] is not None:
        return
    flat: list = []
    differ: list = []
    for rows in grouped(step, "prompt"):
        rewards = {row["reward"] for row in rows if row["scored"]}
        (differ if len(rewards) > 1 else flat).extend(rows)
    zeros = due_of([row for row in flat if row["valued"]], 0.0)
    if zeros:
        yield FollowUp("", step, zeros)
    if differ and settings["reward_scaling"]:
        off = {"filter_flat": False}
        yield FollowUp("the filter is on", step, due_of(differ), base_settings=off)


def own_advantage(step: Step, settings: Settings) -> FollowUps:
    """A token's gradient must depend on no advantage but that of its own row.

    It needs log-probabilities, and a prompt of three rows or more, each a rollout of
    its own, with two that count and have different rewards, compared with a plain mean.
    """
    plain_mean = settings["baseline"] in ("group_mean", "batch_mean", "none")
    adjusted = settings["whiten_tokens"] or settings["overlong_limit"] is not None
    if not step or "logp" not in step[0] or not plain_mean or adjusted:
        return
    for rows in grouped(step, "prompt"):
        if len(rows) < 3 or len(grouped(rows, "rollout")) < len(rows):
            continue
        for first, second in differing_pairs(rows):
            still = [row for row in rows if row not in (first, second)]
            what = f"rows {first['row']} and {second['row']} exchange rewards"
            new = {first["row"]: second["reward"], second["row"]: first["reward"]}
            yield FollowUp(what, with_rewards(step, new), due_of(still))


def differing_pairs(rows: Step) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each row that counts and earns an advantage, with the first other one that has
    another reward."""
    voting = [row for row in rows if row["counted"] and row["credited"]]
    for first in voting:
        differing = [row for row in voting if row["reward"] != first["reward"]]
        if differing:
            yield first, differing[0]


def reference(step: Step, settings: Settings) -> FollowUps:
    """A reference that gives a token a higher probability must pull the token up: its
    gradient falls.

    It needs log-probabilities of both, beta above 0, and every row trained.
    """
    if not step or "ref_logp" not in step[0] or not settings["beta"]:
        return
    every = {"skip_flat": "never"}
    nearer = [{**r, "ref_logp": [x + 1 for x in r["ref_logp"]]} for r in step]
    due = due_of([row for row in step if row["valued"]])
    what = "the reference finds every token e times as likely"
    yield FollowUp(what, nearer, due, falls=True, settings=every, base_settings=every)


def anchor(step: Step, settings: Settings) -> FollowUps:
    """If a token became more likely since the update began, its gradient must grow by
    that ratio, within the clip.

    It needs log-probabilities, the loss of PPO on policy, and no KL.
    """
    on_policy = settings["surrogate"] == "ppo" and settings["off_policy"] == "none"
    # The ratio of 1.1 is within the clip, and a hundredth from its end.
    held = min(settings["clip_low"], settings["clip_high"]) > 0.11
    if not step or "logp" not in step[0] or settings["beta"] or not on_policy:
        return
    before = [{**row, "old_logp": row["logp"]} for row in step]
    by = math.log(1.1)
    after = [{**row, "old_logp": [x - by for x in row["logp"]]} for row in step]
    if held:
        what = "every token is 1.1 times as likely as when the update began"
        yield FollowUp(what, after, due_of(step), times=1.1, base=before)


def weight_of_one(step: Step, settings: Settings) -> FollowUps:
    """A weight may scale a token's gradient and must not turn it: a weight of 1 changes
    nothing.

    It needs log-probabilities, and an off-policy weight whose window holds 1.
    """
    low = settings["off_policy_low"] if settings["off_policy"] == "reject" else 0
    within = low <= 1 <= settings["off_policy_cap"]
    if not step or "logp" not in step[0] or settings["off_policy"] == "none":
        return
    same = [{**r, "behaviour_logp": r.get("old_logp", r["logp"])} for r in step]
    if within:
        what = "the engine that sampled has the policy's own log-probabilities"
        off = {"off_policy": "none"}
        yield FollowUp(what, same, due_of(step), base=same, base_settings=off)


def rejected(step: Step, settings: Settings) -> FollowUps:
    """A rejected token must change neither the sum nor the count.

    It needs `off_policy` reject, a loss that counts the tokens that learn, advantages
    by row, and a row that loses some of its tokens.
    """
    counts = settings["loss"] in ("grpo", "bnpo") and settings["credit"] == "row"
    adjusted = settings["whiten_tokens"] or settings["overlong_limit"] is not None
    if not step or settings["off_policy"] != "reject" or not counts or adjusted:
        return
    counted, removed = [], []
    due: dict = {}
    for row in step:
        # Rejected tokens last: the others are then the first ones of both steps.
        row = kept_first(row, not_rejected(row, settings))
        learning = not_rejected(row, settings)
        if any(learning):
            due[row["row"]] = None
        else:  # The row is left as it is, and nothing is asked of it.
            learning = row["mask"]
        counted.append(row)
        removed.append({**row, "mask": learning})
    if removed != counted:
        what = "the rejected tokens are counted as tokens of the response"
        yield FollowUp(what, counted, due, base=removed)


def kept_first(row: dict[str, Any], kept: list) -> dict[str, Any]:
    """The row with the tokens that are kept before the others."""
    order = sorted(range(len(kept)), key=lambda token: not kept[token])
    return with_tokens(row, lambda _, cells: [cells[token] for token in order])


def not_rejected(row: dict[str, Any], settings: Settings) -> list:
    """The row's mask without the tokens that became more, or less, likely since they
    were sampled than the window of `off_policy` allows."""
    low, cap = settings["off_policy_low"], settings["off_policy_cap"]
    old = row["old_logp"] if "old_logp" in row else row["logp"]
    ratios = [math.exp(a - b) for a, b in zip(old, row["behaviour_logp"])]
    return [on * (low <= r <= cap) for on, r in zip(row["mask"], ratios)]


def cut(step: Step, settings: Settings) -> FollowUps:
    """Cutting a generation into steps must not change a token's weight in its step.

    It needs log-probabilities.
    """
    if not step or "logp" not in step[0]:
        return
    count = 1 + max(row["row"] for row in step)
    first = [{**row, "step": 0} for row in step]
    again = [{**row, "step": 1, "row": row["row"] + count} for row in step]
    what = "the same generation feeds a second step of as many tokens"
    yield FollowUp(what, first + again, due_of(step))


# Trying a law


def tried(law: Law, values: Values, steps: list, settings: Settings) -> Iterator:
    """Each follow-up of the steps that a law asks about, with its numbers (`compared`).
    `values` gives a number or a list of numbers per row, or nothing if the trainer
    cannot compute them."""
    for step in steps:
        of_step: list = []
        for follow_up in law(step, settings):
            base = step if follow_up.base is None else follow_up.base
            if follow_up.base is not None or follow_up.base_settings:
                old = values(base, {**settings, **follow_up.base_settings})
            else:
                of_step = of_step or values(step, settings)
                old = of_step
            before = dict(zip(due_of(base), old))
            after = values(follow_up.step, {**settings, **follow_up.settings})
            if before and after:
                there = dict(zip(due_of(follow_up.step), after))
                yield follow_up, compared(follow_up, before, there)


def compared(follow_up: FollowUp, before: dict, there: dict) -> list:
    """(row, expected value, actual value, compared size) of each row that is checked,
    or of their sum. If values must rise, the expected value is the least that a row may
    have: the largest one of rows with lower rewards."""
    if follow_up.rises:
        return risen(follow_up.due, there)
    if follow_up.total:
        terms = [there[row] for row in follow_up.due]
        return [(min(follow_up.due), 0.0, sum(terms), sum(map(abs, terms)))]
    lines = []
    for row, due in follow_up.due.items():
        expected = in_list(before[row] if due is None else due)
        for old, value in zip(expected, in_list(there[row])):
            kept = old * follow_up.times
            lines.append((row, kept, value, abs(kept)))
    return lines


def risen(rewards: dict, there: dict) -> list:
    lines = []
    for row, reward in rewards.items():
        below = [there[other] for other, less in rewards.items() if less < reward]
        if below:
            lines.append((row, max(below), there[row], abs(there[row])))
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
    """The follow-up with the largest violation of a law over training steps, and that
    violation."""
    most, sentence = 0.0, ""
    for follow_up, lines in tried(law, values, steps, settings):
        for row, due, value, _ in lines:
            size = gap(due, value) - follow_up.slack
            if follow_up.falls:
                size = float(not value < due - 1e-9)  # 1e-9 is rounding
            if follow_up.rises and value >= due:
                size = 0.0
            if size > most:
                most = size
                sentence = f"row {row} has {value}, and {due} is due"
                sentence += f", when {follow_up.what}" if follow_up.what else ""
    return most, sentence


def the_correct_numbers(expected: list) -> Law:
    """The values that the correct computation gives, under these settings."""

    def law(step: Step, settings: Settings) -> FollowUps:
        yield FollowUp("", step, {row["row"]: expected[row["row"]] for row in step})

    return law


OF_REWARDS = (
    *(order, other_prompts, shift, scale, zero_sum, flat, lost_row, missing),
    rising,
)
"""The laws of any group-relative advantage: of rewards in groups alone."""

GRADIENT = (
    *(flat_gradient, micro_batch, own_advantage, reference, anchor),
    *(weight_of_one, rejected, cut),
)
"""The laws of the gradient at each unmasked token."""
TOKENS = (padding_tokens, moved_tokens, inserted_text)
"""The laws of the advantage of each unmasked token."""

MORE_COLUMNS = (padding, labels, kept_prompts, *TOKENS, *GRADIENT)
"""The laws that need more columns than rewards and prompts."""

LAWS: Mapping[str, Law] = {law.__name__: law for law in (*OF_REWARDS, *MORE_COLUMNS)}
"""The laws by name; the records of the bugs list these names."""
