"""Whose column means what: names that trainers use, and a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradebook.core.columns import ALL
from gradebook.core.errors import GradebookError, refuse, shown

NAMES: Mapping[str, tuple[str, ...]] = {
    name: column.names
    for name, column in {"step": ALL["step"], **ALL}.items()
    if name not in ("logp", "ref_logp")
}
"""What a column can be, and the names it goes by, likeliest first."""

NUMBERS = ("step", "advantage", "length", "steps", "kept_steps")
"""Roles whose columns hold numbers, next to the rewards."""

GROUP_IDS = ("uid", "group_id", "group", "group_index")
"""Names of a prompt column that TRL's own would not have."""

TRL_ROLES = ("step", "prompt", "advantage")
"""What TRL's own columns can be; next to them stand reward functions and
whatever these log, under any name."""

IDS = {*NAMES["prompt"], *NAMES["step"]}
"""Names of numbers that are no rewards."""

VERL = {"uid", "advantages"}
VERL_REWARDS = {"token_level_rewards", "token_level_scores"}
VERL_ROLES = {
    "prompt": "uid",
    "advantage": "advantages",
    "mask": "response_mask",
}
"""What columns of these names are where they stand together: verl's."""


@dataclass(frozen=True)
class Columns:
    """Which column of a log is what.

    role      role -> the log's own name, for the roles that were found
    rewards   the reward functions' columns; more than one are summed with
              weights
    by_place  groups are cut by position, as TRL does: equal prompts may
              stand side by side
    trusted   the roles whose column is known: a recorder wrote it, a person
              named it, or a trainer's own format has it; the others are
              guessed by their names
    """

    role: Mapping[str, str]
    rewards: tuple[str, ...]
    by_place: bool = False
    trusted: frozenset[str] = frozenset()

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys((*self.role.values(), *self.rewards)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return (*self.rewards, *(self.role[r] for r in NUMBERS if r in self.role))

    def shown(self) -> dict[str, str]:
        """Role -> the log's own name, as a person reads it."""
        return {**self.role, "reward": " + ".join(self.rewards)}


def plain(name: str) -> str:
    """A column's name without case, prefixes, units in brackets and
    punctuation."""
    bare = re.sub(r"[(\[{][^)\]}]*[)\]}]", "", name)
    name = bare if bare.strip() else name
    last = re.split(r"[./]", name.strip())[-1] or name
    return re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_")


def guessed(
    names: Sequence[str],
    numbers: Sequence[str],
    given: Mapping[str, str] | None = None,
    by_row: Sequence[str] = (),
) -> Columns:
    """Which of `names` is what; `numbers` are the names of columns of
    numbers; `given` says so for some roles, "" for "there is none"; `by_row`
    name rows, and are prompts only where no other column may be.

    Raises GradebookError for a role or column that does not exist, and
    for a log without rewards.
    """
    named = dict(given or {})
    text = named.get("reward", "")
    rewards = [text] if text in names else [part.strip() for part in text.split("+")]
    rewards = [name for name in rewards if name]
    role = {key: name for key, name in named.items() if name and key != "reward"}
    for key in named:
        if key not in NAMES:
            raise refuse("one of " + ", ".join(NAMES), key, key)
    for key, name in [*role.items(), *(("reward", name) for name in rewards)]:
        if name not in names:
            columns = "one of the columns " + shown(", ".join(names), 200)
            raise refuse(columns, name, key)
    taken = {*role.values(), *rewards}
    for key, aliases in _aliases(names).items():
        by_name = {plain(n): n for n in reversed(names) if n not in taken}
        likely = [by_name[alias] for alias in aliases if alias in by_name]
        name = min(likely, key=lambda n: key == "prompt" and n in by_row, default="")
        if name and key not in named:
            role[key] = name
            taken.add(name)
    named_reward = role.pop("reward", "")
    by_place = {"prompt", "completion", "advantage"} <= {*names} and "prompt" in role
    by_place &= role.get("prompt") == "prompt" or _is_trl(names)
    if not rewards and by_place and "reward" not in named:
        # TRL's reward functions: numbers between completion and advantage, but for
        # ids of problems.
        first, last = names.index("completion") + 1, names.index("advantage")
        between = names[first:last] if first <= last else names
        others = {*role.values(), *(n for n in names if plain(n) in IDS)}
        rewards = [n for n in between if n in numbers and n not in others]
    if not rewards and named_reward:
        rewards = [named_reward]
    if not rewards:
        raise GradebookError(
            key="reward",
            expected="a column of rewards (name it with reward=...)",
            found="columns " + shown(", ".join(names), 120),
        )
    trusted = {key for key, name in named.items() if name}
    if by_place:
        trusted |= {*TRL_ROLES, "reward"}
    elif {*names} >= VERL and VERL_REWARDS & {*names}:
        trusted |= {r for r, name in VERL_ROLES.items() if role.get(r) == name}
        trusted |= {"reward"} if {*rewards} <= VERL_REWARDS else set()
    return Columns(role, tuple(rewards), by_place, frozenset(trusted))


def recorded_columns(
    names: Sequence[str], given: Mapping[str, str] | None = None
) -> Columns:
    """The columns of a recording, by their own names; `given` as for
    `guessed`, and raises as it does."""
    as_written = {role: role if role in names else "" for role in NAMES}
    return guessed(names, names, {**as_written, **(given or {})})


def _is_trl(names: Sequence[str]) -> bool:
    """The log begins as TRL's do: step, prompt, completion; and has advantages."""
    return "|step|prompt|completion|" in f"|{'|'.join(names)}|" and "advantage" in names


def _aliases(names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """NAMES, or those of them that mean something in TRL's own log: a
    function called `truncated` gives a reward there. With a column of
    rewards it may be another trainer's log of the same shape."""
    if not _is_trl(names):
        return NAMES
    aliases = {**NAMES, "prompt": (*GROUP_IDS, "prompt")}
    if any(plain(name) in NAMES["reward"] for name in names):
        return aliases
    return {role: aliases[role] for role in TRL_ROLES}
