"""Candidates: an engine under a convention, with the settings that a log
does not tell and the check has to guess."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from gradebook.cases.record import BUGS, Bug, bug
from gradebook.core.settings import FLAGS, Settings
from gradebook.engine.pipeline import CORRECT, Engine
from gradebook.logs.candidates.conventions import Convention, altered

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them and nothing fits."""


@dataclass(frozen=True)
class Candidate:
    """What may have computed a step.

    bug         a name from BUGS, or "" for the correct engine
    convention  how the trainer computes advantages
    guesses     setting -> value
    freedom     how many of its settings were chosen to fit the log
    """

    bug: str
    convention: Convention
    guesses: tuple[tuple[str, Any], ...] = ()
    freedom: int = 0

    def __hash__(self) -> int:
        """The fields' hash, worked out once."""
        known = self.__dict__.get("_hash")
        if known is None:
            known = hash((self.bug, self.convention, self.guesses))
            self.__dict__["_hash"] = known
        return known

    @property
    def engine(self) -> Engine:
        """The correct engine, or the bug's."""
        return bug(self.bug).engine if self.bug else CORRECT

    @property
    def estimator(self) -> str:
        """The convention's estimator."""
        return self.convention.estimator

    @cached_property
    def settings(self) -> Settings:
        """The convention's settings, with the guesses."""
        own = self.convention.settings
        return altered(own, **dict(self.guesses)) if self.guesses else own

    @property
    def correct(self) -> Candidate:
        """The correct engine under the same convention."""
        return _corrected(self)

    @property
    def group_size(self) -> int | None:
        """Rows per prompt, where they were guessed for a bug."""
        size = dict(self.guesses).get("group_size") if self.bug else None
        return size if isinstance(size, int) else None

    @property
    def listed(self) -> bool:
        """A listed trainer computes like that, or a person declared it."""
        return bool(self.convention.trainer) or self.convention.declared

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage may depend on rows of other prompts."""
        coupled = bool(self.bug) and bug(self.bug).couples_prompts
        return coupled or self.convention.couples_prompts


@lru_cache(maxsize=65536)
def _corrected(candidate: Candidate) -> Candidate:
    kept = tuple(
        (k, v) for k, v in candidate.guesses if k in ("mask_no_eos", "reward_clip")
    )
    return Candidate("", candidate.convention, kept)


@dataclass(frozen=True)
class Evidence:
    """What a log's columns and rows allow to be tried.

    has     canonical columns of the log
    no_eos  some row has no EOS
    clips   those of CLIPS that some reward lies beyond
    sizes   what the rows per prompt suggest: see `suggested`
    given   settings that a person named: they are not guessed
    """

    has: frozenset[str]
    no_eos: bool
    clips: tuple[float, ...]
    sizes: tuple[int | None, ...]
    given: tuple[tuple[str, Any], ...] = ()


def suggested(rows: np.ndarray) -> tuple[int | None, ...]:
    """Configured group sizes that groups of so many `rows`, int64 [G],
    suggest, the likeliest first; None is the largest group of each step.

    >>> suggested(np.array([4, 3, 3]))
    (4, None, 5, 6, 8, 3)
    """
    largest, commonest = int(rows.max()), int(np.bincount(rows).argmax())
    power = 1 << (largest - 1).bit_length()
    found = (
        *(largest, None, power, largest + 1, largest + 2, 2 * largest),
        *(max(largest - 1, 1), commonest, int(rows.min())),
    )
    return tuple(dict.fromkeys(found))


def tried(has: frozenset[str]) -> tuple[str, ...]:
    """The bugs that leave a trace in advantages and whose columns the log
    has. Those that need fewer columns come first: where two give the same
    numbers, the simpler one is named."""
    found = [
        name for name in BUGS if bug(name).in_advantages and can_show(bug(name), has)
    ]
    return tuple(sorted(found, key=lambda name: len(bug(name).columns)))


def can_show(record: Bug, has: frozenset[str]) -> bool:
    """The log has the columns that the bug needs."""
    for column in record.columns:
        one_of = column if isinstance(column, tuple) else (column,)
        if not has.intersection(one_of):
            return False
    return True


def correct_ones(table: tuple[Convention, ...], seen: Evidence) -> Iterator[Candidate]:
    """The correct engine under each convention."""
    for convention in table:
        if _needs_lengths(convention, seen.has):
            continue
        for guess in _masks(convention, seen):
            yield Candidate("", convention, guess)


def faulty_ones(
    table: tuple[Convention, ...], seen: Evidence, likely: bool
) -> Iterator[Candidate]:
    """Every bug that the columns allow under each convention; `likely`: only
    the first two values of each guess, else only the others."""
    for name in tried(seen.has):
        guesses = bug(name).guesses
        choices = [_values(k, v, seen) for k, v in guesses.items()]
        for chosen in product(*choices):
            first = all(c in each[:2] for c, each in zip(chosen, choices))
            if first != likely:
                continue
            freedom = sum(len(each) > 1 for each in choices)
            own = tuple(zip(guesses, chosen))
            for convention in table:
                if _needs_lengths(convention, seen.has):
                    continue
                for mask in _masks(convention, seen):
                    both = tuple({**dict(mask), **dict(own)}.items())
                    yield Candidate(name, convention, both, freedom)


def clipped_ones(table: tuple[Convention, ...], seen: Evidence) -> Iterator[Candidate]:
    """The same with clipped rewards, where a reward lies beyond a clip."""
    for clip in seen.clips:
        extra = (("reward_clip", clip),)
        for each in correct_ones(table, seen):
            yield replace(each, guesses=each.guesses + extra)
        for each in faulty_ones(table, seen, likely=True):
            yield replace(each, guesses=each.guesses + extra)


def _needs_lengths(convention: Convention, has: frozenset[str]) -> bool:
    weighs = convention.settings.baseline == "length_weighted_mean"
    return weighs and "length" not in has


def _masks(
    convention: Convention, seen: Evidence
) -> tuple[tuple[tuple[str, Any], ...], ...]:
    """Whether rows without EOS are masked: both where there are such."""
    if not seen.no_eos or "mask_no_eos" in dict(seen.given):
        return ((),)
    return ((), (("mask_no_eos", not convention.settings.mask_no_eos),))


STRIDES = "strides"
"""Stands for the sizes that a log's groups suggest."""


def cuts_by_place(name: str) -> bool:
    """The bug cuts rows into groups by their position."""
    return any(STRIDES in values for values in bug(name).guesses.values())


def _values(setting: str, values: tuple[Any, ...], seen: Evidence) -> tuple[Any, ...]:
    """The values to try: what a person named, or what the record has."""
    given = dict(seen.given)
    if setting in given:
        own = given[setting]
        return (own,) if STRIDES in values or own in values else ()
    if STRIDES in values:
        return seen.sizes
    return tuple(bool(v) if setting in FLAGS else v for v in values)
