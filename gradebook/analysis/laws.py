"""The law that each bug breaks, in words and as a check of any engine.

A check takes an engine and a batch and answers in one of three ways: the
law holds here, it is broken by these rows and numbers, or it says nothing
about this batch. No check needs the other engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from gradebook.analysis.influence import (
    advantages,
    coupling,
    own_prompt,
    replacements,
)
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.engine.grouping import (
    counted,
    credited,
    has_tokens,
    may_end,
    score,
)
from gradebook.engine.pipeline import Engine, run


@dataclass(frozen=True)
class Held:
    """The law holds on this batch; `sentence` says what was tried."""

    sentence: str


@dataclass(frozen=True)
class Broken:
    """A counterexample, the clearest of those tried: its rows, victim
    first, and its numbers, in the order of the sentence."""

    rows: tuple[int, ...]
    numbers: tuple[float, ...]
    sentence: str


@dataclass(frozen=True)
class Silent:
    """The law says nothing about this batch, and why."""

    reason: str


MOST_LENGTHS = 32
"""Rows whose length is changed: each needs a run of its own."""

Outcome: TypeAlias = Held | Broken | Silent


@dataclass(frozen=True)
class Law:
    """What must hold. `disputed` where the trainer's maintainers differ.

    `tried` is the check of a batch that has rows.
    """

    name: str
    words: str
    tried: Callable[[Engine, Batch], Outcome]
    disputed: bool = False

    def check(self, engine: Engine, batch: Batch) -> Outcome:
        """What the law says of `engine` on `batch`. Raises GradebookError
        where the engine cannot run."""
        if not batch.rows:
            return Silent("There are no rows.")
        return self.tried(engine, batch)


def laws(bug: str) -> tuple[Law, ...]:
    """The laws that the bug breaks; none for a bug without."""
    return LAWS.get(bug, ())


# Changes that must move nobody


def other_prompts(engine: Engine, batch: Batch) -> Outcome:
    """Changing a row's reward moves no row of another prompt."""
    if coupling(batch.settings):
        return Silent(
            f"{coupling(batch.settings)} compares rows of all prompts by"
            " design."
        )
    outside = ~own_prompt(batch)
    if not bool(outside.any()):
        return Silent("All rows are of one prompt.")
    return _unmoved(engine, batch, outside)


def rows_without_eos(engine: Engine, batch: Batch) -> Outcome:
    """Changing a no-EOS row's reward moves no other row."""
    if not batch.settings.mask_no_eos:
        return Silent("mask_no_eos is off: rows without EOS have a say.")
    return _voiceless(engine, batch, ~may_end(batch), "without EOS")


def rows_rejected(engine: Engine, batch: Batch) -> Outcome:
    """Changing a rejected row's reward moves no other row."""
    return _voiceless(engine, batch, ~has_tokens(batch), "rejected")


def _voiceless(
    engine: Engine, batch: Batch, silent: Tensor, word: str
) -> Outcome:
    """Rows where `silent`, bool [R], move no row but themselves."""
    if not bool(silent.any()):
        return Silent(f"No row is {word}.")
    if batch.rows == 1:
        return Silent("There is no other row.")
    others = ~torch.eye(batch.rows, dtype=torch.bool)
    return _unmoved(engine, batch, others & silent)


def _unmoved(engine: Engine, batch: Batch, still: Tensor) -> Outcome:
    """No change of a reward moves a victim where `still`, bool [R, R]."""
    before = advantages(engine, batch, batch.reward)
    values = _probes(batch)
    reward = batch.reward.expand(len(values), batch.rows, -1).clone()
    reward.diagonal(dim1=1, dim2=2).copy_(values)
    after = advantages(engine, batch, reward)
    moved = _differ(before, after, batch) & still.T
    if not bool(moved.any()):
        return Held("No such change moves any of them.")
    # The change that the influence map shows, where it moves a row.
    probe = int(moved.flatten(1).any(-1).int().argmax())
    j, i = _largest(after[probe] - before, moved[probe])
    old, new = float(batch.reward[j]), float(values[probe, j])
    a, b = float(before[i]), float(after[probe, j, i])
    return Broken(
        (i, j),
        (old, new, a, b),
        f"Changing the reward of row {j} from {old:g} to {new:g} moves"
        f" row {i} from {_shown(a, b)}.",
    )


def _probes(batch: Batch) -> Tensor:
    """What each reward is changed to: its siblings' mean, one more, and
    one beyond every reward. float [3, R]."""
    reward = batch.reward
    beyond = torch.full_like(reward, float(reward.min()) - 1)
    return torch.stack((replacements(batch), reward + 1, beyond))


def shifted_prompts(engine: Engine, batch: Batch) -> Outcome:
    """Adding 1 to all rewards of a prompt moves none of its rows."""
    s = batch.settings
    if coupling(s) or s.baseline == "none":
        which = coupling(s) or "baseline none"
        return Silent(f"Under {which} an equal gain of all is a gain.")
    if s.reward_clip is not None and _clipped(batch):
        return Silent("The clip cuts some of the rewards.")
    own = own_prompt(batch)
    says = credited(batch)
    lone = (own & says).sum(-1) <= 1
    subject = says & ~(lone & (s.lone_row == "raw"))
    if not bool(subject.any()):
        return Silent("No row is compared with another.")
    before = advantages(engine, batch, batch.reward)
    after = advantages(engine, batch, batch.reward + own.to(batch.reward))
    moved = _differ(before, after, batch) & own & subject
    if not bool(moved.any()):
        return Held("No prompt moves when all its rewards grow by 1.")
    j, i = _largest(after - before, moved)
    a, b = float(before[i]), float(after[j, i])
    rows = own[i].nonzero().flatten().tolist()
    return Broken(
        (i, *(row for row in rows if row != i)),
        (a, b),
        f"Adding 1 to {_listed(rows)}, the whole prompt, moves row {i}"
        f" from {_shown(a, b)}.",
    )


def _clipped(batch: Batch) -> bool:
    """The clip would cut a reward, or one that grows by 1."""
    s = batch.settings
    for reward in (batch.reward, batch.reward + 1):
        shaped = (reward + s.reward_bias) * s.reward_scaling
        if bool((shaped.abs() > s.reward_clip).any()):
            return True
    return False


def other_lengths(engine: Engine, batch: Batch) -> Outcome:
    """One transition more in an episode moves no other row."""
    if batch.rows == 1:
        return Silent("There is no other row.")
    before = _advantage(engine, batch)
    tries = min(batch.rows, MOST_LENGTHS)
    for j in range(tries):
        more = batch.kept_steps.clone()
        more[j] += 1
        longer = replace(
            batch, kept_steps=more, steps=torch.maximum(batch.steps, more)
        )
        after = _advantage(engine, longer)
        moved = _differ(before, after, batch)
        moved[j] = False
        if bool(moved.any()):
            i = _largest(after - before, moved)[0]
            a, b = float(before[i]), float(after[i])
            return Broken(
                (i, j),
                (float(more[j] - 1), float(more[j]), a, b),
                f"One more transition in row {j}, {int(more[j])} for"
                f" {int(more[j]) - 1}, moves row {i} from {_shown(a, b)}.",
            )
    which = "any episode" if tries == batch.rows else f"the first {tries}"
    return Held(f"One more transition in {which} moves no other row.")


def removed_rows(engine: Engine, batch: Batch) -> Outcome:
    """Without the rows that have no say, the others stay where they are."""
    says = credited(batch)
    if bool(says.all()):
        return Silent("Every row has a say.")
    if not bool(says.any()):
        return Silent("No row has a say.")
    if batch.settings.min_group_size > 1:
        return Silent("min_group_size counts the rows that are removed.")
    left = says.nonzero().flatten().tolist()
    before = _advantage(engine, batch)[says]
    after = _advantage(engine, batch.select(says))
    moved = _differ(before, after, batch.select(says))
    if not bool(moved.any()):
        return Held("The other rows do not move.")
    at = _largest(after - before, moved)[0]
    a, b = float(before[at]), float(after[at])
    gone = (~says).nonzero().flatten().tolist()
    return Broken(
        (left[at], *gone),
        (a, b),
        f"Taking {_listed(gone)} out of the batch moves row {left[at]}"
        f" from {_shown(a, b)}.",
    )


# Rows that must get nothing


def flat_prompts(engine: Engine, batch: Batch) -> Outcome:
    """A prompt whose rewards are all equal has advantage 0."""
    s = batch.settings
    if s.baseline in ("batch_mean", "none") or s.whiten_tokens:
        which = f"baseline {s.baseline}"
        which = "whiten_tokens" if s.whiten_tokens else which
        return Silent(f"Under {which} a flat prompt may have an advantage.")
    flat = _flat(batch, own_prompt(batch)) & credited(batch)
    if s.lone_row == "raw":
        flat &= (own_prompt(batch) & credited(batch)).sum(-1) > 1
    if not bool(flat.any()):
        return Silent("No prompt has rewards that are all equal.")
    return _at_zero(
        engine, batch, flat, "is as good as all of its prompt and has"
    )


def rows_denied(engine: Engine, batch: Batch) -> Outcome:
    """A row that may earn no advantage has 0."""
    denied = ~credited(batch)
    if not bool(denied.any()):
        return Silent("Every row may earn an advantage.")
    return _at_zero(engine, batch, denied, "may earn nothing and has")


def _at_zero(engine: Engine, batch: Batch, rows: Tensor, says: str) -> Outcome:
    """The advantages are 0 where `rows`, bool [R]."""
    a = _advantage(engine, batch)
    off = _differ(torch.zeros_like(a), a.nan_to_num(0), batch) & rows
    if not bool(off.any()):
        which = _listed(rows.nonzero().flatten().tolist())
        return Held(f"The advantage is 0 at {which}.")
    i = _largest(a, off)[0]
    return Broken(
        (i,), (float(a[i]),), f"Row {i} {says} {_signed(float(a[i]))}."
    )


def flat_gradients(engine: Engine, batch: Batch) -> Outcome:
    """A group whose rewards are all equal contributes no gradient."""
    s = batch.settings
    if batch.logp is None:
        return Silent("Without log-probabilities there is no gradient.")
    if s.beta == 0:
        return Silent("beta is 0: there is no KL term.")
    whole = s.scale == "batch_std"
    steps = batch.step_index[:, None] == batch.step_index
    peers = steps if whole else own_prompt(batch)
    flat = _flat(batch, peers) & has_tokens(batch)
    if s.lone_row == "raw":
        flat &= (peers & counted(batch, credited(batch))).sum(-1) != 1
    if not bool(flat.any()):
        unit = "step" if whole else "prompt"
        return Silent(f"No {unit} has rewards that are all equal.")
    trace = run(engine, batch)
    size = trace.gradient.abs()
    off = (size > DUST * size.max()).any(-1) & flat
    if not bool(off.any()):
        which = _listed(flat.nonzero().flatten().tolist())
        return Held(f"There is no gradient at {which}.")
    i = int(off.int().argmax())
    policy = float(trace.policy_gradient[i].sum())
    kl = float(trace.kl_gradient[i].sum())
    return Broken(
        (i,),
        (policy, kl),
        f"Row {i} is as good as all of its group, and its tokens have"
        f" gradient {_signed(policy + kl)}: policy {_signed(policy)},"
        f" KL {_signed(kl)}.",
    )


# Numbers


def _advantage(engine: Engine, batch: Batch) -> Tensor:
    """The advantages alone, without a loss. float [R]."""
    return advantages(engine, batch, batch.reward)


def _flat(batch: Batch, peers: Tensor) -> Tensor:
    """The counted scores among the row's `peers`, bool [R, R], are all
    equal. bool [R]."""
    s = score(batch)
    voters = peers & credited(batch)
    highest = torch.where(voters, s, -torch.inf).amax(-1)
    return highest <= torch.where(voters, s, torch.inf).amin(-1)


def _differ(a: Tensor, b: Tensor, batch: Batch) -> Tensor:
    """Elementwise: apart by more than dust, and more than rounding that
    was divided by eps. NaN never differs. bool."""
    size = torch.maximum(a.abs(), b.abs()).clamp(min=1)
    ulp = torch.finfo(a.dtype).eps * score(batch).abs().max().clamp(min=1)
    divided = batch.settings.scale in ("group_std", "batch_std")
    least = batch.settings.eps if divided else 1.0
    rounding = 16 * ulp / max(least, 1e-12)
    return (a - b).abs() > DUST * size + rounding


def _largest(gap: Tensor, where: Tensor) -> list[int]:
    """The place of the largest |gap| where `where`, bool, is true; the
    first of those that only rounding tells apart."""
    size = torch.where(where, gap.abs(), -1)
    return (size >= size.max() * (1 - 1e-6)).nonzero()[0].tolist()


def _signed(value: float) -> str:
    return f"{value:+.4g}" if value else "0"


def _shown(a: float, b: float) -> str:
    """Both numbers, with the digits that tell them apart."""
    for digits in (4, 6, 9, 17):
        pair = [f"{v:+.{digits}g}" if v else "0" for v in (a, b)]
        if pair[0] != pair[1]:
            break
    return " to ".join(pair)


def _listed(rows: list[int]) -> str:
    """'row 3', 'rows 3 and 4', 'rows 3, 4 and 5'."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    first = ", ".join(map(str, rows[:-1]))
    return f"rows {first} and {rows[-1]}"


OWN_PROMPT = Law(
    "own_prompt",
    "Changing one prompt's rewards moves no row of another prompt.",
    other_prompts,
)
SHIFT = Law(
    "shift",
    "Adding the same number to all rewards of a prompt moves none of its"
    " rows.",
    shifted_prompts,
)
LENGTHS = Law(
    "lengths",
    "An advantage does not depend on how long other episodes run.",
    other_lengths,
)
FLAT = Law(
    "flat",
    "A prompt whose rewards are all equal has advantage 0.",
    flat_prompts,
)
DENIED = Law("denied", "A row that may earn no advantage has 0.", rows_denied)
NO_EOS = Law(
    "no_eos",
    "Changing only the reward of a row without EOS moves no other row.",
    rows_without_eos,
)
REJECTED = Law(
    "rejected",
    "Changing only the reward of a rejected row moves no other row.",
    rows_rejected,
)
REMOVED = Law(
    "removed",
    "Without the rows that cannot learn, the others stay where they are.",
    removed_rows,
)
NO_GRADIENT = Law(
    "no_gradient",
    "A group whose rewards are all equal contributes no gradient; whether"
    " this must hold is disputed.",
    flat_gradients,
    disputed=True,
)

LAWS: Mapping[str, tuple[Law, ...]] = {
    "partial_groups": (OWN_PROMPT, SHIFT),
    "double_normalization": (LENGTHS, FLAT, DENIED),
    "no_eos_outliers": (NO_EOS, REMOVED),
    "rejected_rows": (REJECTED, REMOVED),
    "zero_std_kl": (NO_GRADIENT,),
}
"""The laws of each bug, the one to show first in front."""
