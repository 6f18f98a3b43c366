"""The laws: what holds of any trainer without a bug, whatever its settings.

A law takes one training step and the settings, and yields changes: the
changed step, and what must come out of it. It calls no engine, so the same
law tests an engine on a page and a trainer in an exported pytest file. That
file contains the source of this module's functions. They import nothing of
Gradebook, and a step is a plain dict of columns (lists by name); the column
`row` has the rows' numbers for sentences.

The first paragraph of a law's docstring is the law in words; the second says
what a batch and its settings must have, or else the law yields nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradebook.analysis.law_steps import (
    Change,
    Changes,
    Law,
    Settings,
    Step,
    clipped,
    couples_prompts,
    credited,
    deviation,
    has_baseline,
    listed,
    other_prompts,
    other_rewards,
    picked,
    prompts,
    rollouts,
    rows_of,
    sampled,
    valued,
    votes,
    whitens_to_zero,
    with_rewards,
)


def own_prompt(step: Step, settings: Settings) -> Changes:
    """Changing a row's reward moves no row of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    if couples_prompts(settings):
        return
    for row in sampled(rows_of(step)):
        others = other_prompts(step, row)
        if others:
            yield from other_rewards(step, row, others)


def removed_row(step: Step, settings: Settings) -> Changes:
    """Removing a row moves no row of another prompt.

    It needs two prompts, and settings that compare only rows of one prompt.
    """
    if couples_prompts(settings):
        return
    every = rows_of(step)
    for row in sampled(every):
        left = [r for r in every if r != row]
        others = other_prompts(step, row)
        if others:
            what = f"{listed(step, [row])} is removed"
            rows = [left.index(r) for r in others]
            yield Change(what, picked(step, left), rows, others)


def shift(step: Step, settings: Settings) -> Changes:
    """Adding a number to all rewards of a prompt moves none of its rows.

    It needs a baseline from the prompt's own rows (a lone row has none where
    `lone_row` is raw), and rewards that no clip cuts.
    """
    if couples_prompts(settings) or settings["baseline"] == "none":
        return
    far = 100 * max(1.0, *map(abs, step["reward"]))
    for rows in sampled(prompts(step)):
        if not has_baseline(step, settings, rows):
            continue
        for by in (1.0, far):
            new = {row: step["reward"][row] + by for row in rows}
            if not clipped(step, settings, new):
                what = f"{listed(step, rows)} gain {by:g} each"
                yield Change(what, with_rewards(step, new), rows, rows)


def scaling(step: Step, settings: Settings) -> Changes:
    """Multiplying the rewards of a prompt by 10 changes no advantage where
    the prompt's deviation divides them, and multiplies them by 10 where
    nothing does.

    It needs rewards that vary by much more than eps, no bias, no clip, no
    whitening, and settings that compare only rows of one prompt.
    """
    divided = settings["scale"] == "group_std"
    if not divided and settings["scale"] != "none":
        return
    shaped = settings["reward_bias"] or settings["reward_clip"] is not None
    if shaped or couples_prompts(settings):
        return
    for rows in sampled(prompts(step)):
        counted = votes(step, settings, rows)
        spread = deviation([step["reward"][row] for row in counted])
        spread *= abs(settings["reward_scaling"])
        slack = 2 * settings["eps"] / spread if spread and divided else 0.0
        if spread and slack < 0.1:
            new = {row: step["reward"][row] * 10 for row in rows}
            what = f"the rewards of {listed(step, rows)} grow tenfold"
            tenfold, times = with_rewards(step, new), 1.0 if divided else 10.0
            yield Change(what, tenfold, rows, rows, [], times, slack)


def zero_sum(step: Step, settings: Settings) -> Changes:
    """The advantages of a prompt add up to 0, with one vote a rollout.

    It needs the baseline group_mean or leave_one_out, one divisor for the
    whole prompt, no whitening, and a prompt with two rows that count.
    """
    if settings["baseline"] not in ("group_mean", "leave_one_out"):
        return
    if settings["whiten_tokens"] or settings["scale"] == "others_std":
        return
    for rows in sampled(prompts(step)):
        counted = votes(step, settings, rows)
        here = valued(step, settings)
        if len(counted) > 1 and all(here[row] for row in counted):
            yield Change("", step, counted, [], total=True)


def flat(step: Step, settings: Settings) -> Changes:
    """Where a prompt's rewards that count are all equal, its advantages are 0.

    It needs a baseline from the prompt's own rows, and an eps above 0 where
    a deviation divides. Under whitening it needs the scale none, and is then
    about a step whose rewards are all equal.
    """
    if settings["scale"].endswith("_std") and not settings["eps"]:
        return
    if settings["whiten_tokens"]:
        units = [rows_of(step)] if whitens_to_zero(step, settings) else []
    elif settings["baseline"] in ("none", "batch_mean"):
        return
    else:
        every = sampled(prompts(step))
        units = [rows for rows in every if has_baseline(step, settings, rows)]
    earns, here = credited(step, settings), valued(step, settings)
    for rows in units:
        counted = [row for row in rows if earns[row]]
        subject = [row for row in counted if here[row]]
        zeros = [0.0] * len(subject)
        rewards = [step["reward"][row] for row in counted]
        if min(rewards) == max(rewards):
            yield Change("", step, subject, [], zeros)
            continue
        for reward in (rewards[0], 100.1):
            what = f"the rewards of {listed(step, counted)} are all {reward:g}"
            new = with_rewards(step, dict.fromkeys(counted, reward))
            yield Change(what, new, subject, [], zeros)


def no_credit(step: Step, settings: Settings) -> Changes:
    """A row without credit has advantage 0, and its reward moves no row.

    It needs a row without tokens, without EOS where such rows are masked, or
    without a score.
    """
    earns = credited(step, settings)
    here = valued(step, settings)
    every = rows_of(step)
    denied = [row for row in every if here[row] and not earns[row]]
    if denied:
        yield Change("", step, denied, [], [0.0] * len(denied))
    for row in sampled(denied):
        yield from other_rewards(step, row, every)


def left_out(step: Step, settings: Settings) -> Changes:
    """Without the rows that have no credit, the other rows stay as they are.

    It needs a row with credit and a row without, and min_group_size 1.
    """
    earns = credited(step, settings)
    rows = [row for row in rows_of(step) if earns[row]]
    gone = [row for row in rows_of(step) if not earns[row]]
    if rows and gone and settings["min_group_size"] == 1:
        leave = "leaves" if len(gone) == 1 else "leave"
        what = f"{listed(step, gone)} {leave} the batch"
        yield Change(what, picked(step, rows), list(range(len(rows))), rows)


def lengths(step: Step, settings: Settings) -> Changes:
    """An advantage does not depend on the lengths of episodes.

    It needs a row that has a transition left.
    """
    every = rows_of(step)
    for row in sampled([r for r in every if step["kept_steps"][r]]):
        longer = {
            name: [n + 10 * (r == row) for r, n in enumerate(step[name])]
            for name in ("steps", "kept_steps")
        }
        what = f"{listed(step, [row])} has ten transitions more"
        yield Change(what, {**step, **longer}, every, every)


def split_rollout(step: Step, settings: Settings) -> Changes:
    """Splitting a rollout into more rows with one reward changes no advantage.

    It needs a baseline and a scale that give each rollout one vote, no
    whitening, and min_group_size 1.
    """
    means = ("group_mean", "batch_mean", "leave_one_out")
    if settings["baseline"] not in means or settings["whiten_tokens"]:
        return
    if settings["scale"] == "nonzero_share" or settings["min_group_size"] > 1:
        return
    for row in sampled(rows_of(step)):
        rows = sorted([*rows_of(step), row, row])
        what = f"the rollout of {listed(step, [row])} is cut into three rows"
        yield Change(what, picked(step, rows), list(range(len(rows))), rows)


def one_rollout(step: Step, settings: Settings) -> Changes:
    """All rows of a rollout that have one reward get the same advantage.

    It needs a rollout of two rows with credit and one reward.
    """
    earns = credited(step, settings)
    if settings["baseline"] == "second_best":
        return
    for rows in sampled(rollouts(step)):
        pieces = [row for row in rows if earns[row]]
        rewards = {step["reward"][row] for row in pieces}
        if len(pieces) > 1 and len(rewards) == 1:
            first = [pieces[0]] * (len(pieces) - 1)
            yield Change("", step, pieces[1:], first)


def padding(step: Step, settings: Settings) -> Changes:
    """Padding changes no advantage: neither a column nor a row without tokens.

    It needs a row.
    """
    every = rows_of(step)
    if not every:
        return
    wider = {
        name: [[*cells, filler] for cells in step[name]]
        for name, filler in (("mask", 0), ("logp", 0.0), ("ref_logp", 0.0))
        if name in step
    }
    what = "the batch has one more column of padding"
    yield Change(what, {**step, **wider}, every, every)
    if settings["min_group_size"] == 1:
        longer = picked(step, [*every, every[-1]])
        longer["mask"][-1] = [0] * len(longer["mask"][-1])
        longer["reward"][-1] = max(step["reward"]) + 1
        longer["rollout"][-1] = max(step["rollout"]) + 1
        what = f"a row without tokens follows {listed(step, every[-1:])}"
        yield Change(what, longer, every, every)


def labels(step: Step, settings: Settings) -> Changes:
    """Other ranks, other texts and other names of prompts move no row.

    It needs a row.
    """
    every = rows_of(step)
    names = {rows[0]: at for at, rows in enumerate(reversed(prompts(step)))}
    firsts = {row: rows[0] for rows in prompts(step) for row in rows}
    renamed = [names[firsts[row]] for row in every]
    for what, name, cells in (
        ("all rows are on one rank", "rank", [0] * len(every)),
        ("every row is on a rank of its own", "rank", every),
        ("all prompts have one text", "text", [0] * len(every)),
        ("every row has a text of its own", "text", every),
        ("the prompts have other names", "prompt", renamed),
    ):
        if every:
            yield Change(what, {**step, name: cells}, every, every)


def equal_siblings(step: Step, settings: Settings) -> Changes:
    """Where a row's siblings all have one reward, it gets its reward less
    theirs.

    It needs the scale others_std, the baseline leave_one_out, and rewards
    without bias, scaling and clip.
    """
    if settings["scale"] != "others_std" or settings["whiten_tokens"]:
        return
    shaped = settings["reward_bias"], settings["reward_scaling"]
    if settings["baseline"] != "leave_one_out" or shaped != (0, 1):
        return
    for rows in sampled(prompts(step)):
        counted = votes(step, settings, rows)
        for row in counted:
            others = {step["reward"][r] for r in counted if r != row}
            if len(others) == 1 and settings["reward_clip"] is None:
                apart = step["reward"][row] - others.pop()
                yield Change("", step, [row], [], [apart])


def flat_gradient(step: Step, settings: Settings) -> Changes:
    """A group whose rewards are all equal has gradient 0 at every token.

    It needs log-probabilities, beta above 0, and such a group.
    """
    if "logp" not in step or not settings["beta"]:
        return
    whole = settings["scale"] == "batch_std"
    for rows in [rows_of(step)] if whole else sampled(prompts(step)):
        counted = votes(step, settings, rows)
        rewards = {step["reward"][row] for row in counted}
        alone = len(counted) == 1 and settings["lone_row"] == "raw"
        if len(rewards) == 1 and not alone:
            subject = [row for row in rows if any(step["mask"][row])]
            zeros = [[0.0] * len(step["mask"][row]) for row in subject]
            yield Change("", step, subject, [], zeros)


def micro_batch(step: Step, settings: Settings) -> Changes:
    """How a step is cut into micro-batches changes no token's gradient.

    It needs log-probabilities and two rows.
    """
    every = rows_of(step)
    if "logp" not in step or len(every) < 2:
        return
    for size in sorted({1, 2, len(every)}):
        what = f"a micro-batch has {size} rows"
        new = {"micro_batch": size}
        yield Change(what, step, every, every, settings=new)


GRADIENT_LAWS = (flat_gradient, micro_batch)
"""The laws about gradients; all others are about advantages."""

AS_IT_IS = (zero_sum, flat, no_credit, one_rollout, equal_siblings)
"""The laws that say something of a step's advantages as they are."""

LAWS: Mapping[str, Law] = {
    law.__name__: law
    for law in (
        own_prompt,
        removed_row,
        shift,
        scaling,
        zero_sum,
        flat,
        no_credit,
        left_out,
        lengths,
        split_rollout,
        one_rollout,
        padding,
        labels,
        equal_siblings,
        *GRADIENT_LAWS,
    )
}
"""The laws by name; the records of the bugs list these names."""
