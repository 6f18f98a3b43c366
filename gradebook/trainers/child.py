"""Calls a function that may raise, sleep, end its process or change its argument, in
a process of its own with time limits, and keeps what it answered."""

import copy
import math
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeAlias

Rewards = list[list[Any]]
"""A number or None for each row, by prompt."""

Given = Mapping[str, list[list[Any]]]
"""What else a function is given of each row, by prompt, by the column's name: LENGTH,
the tokens of its response, or EOS, whether it ended."""

LENGTH, EOS = "length", "eos"

A_CALL, STARTING = 5.0, 60.0
"""Seconds for a call, and for importing what the function needs."""
HERE = (
    "The function cannot be loaded in another process, so it ran in this one,"
    " without a time limit."
)


class Unusable(Exception):
    """A function's answer that cannot be used, and why; `gave` says in a word what it
    gave instead, if anything."""

    def __init__(self, message: str, gave: str = "") -> None:
        super().__init__(message)
        self.gave = gave


@dataclass(frozen=True)
class Inputs:
    """The arguments that a function takes.

    names    its rewards' names: its first argument is a dict from each to rewards by
             prompt, and each row of a batch is a list with a reward of each. () if
             the first argument is rewards by prompt
    columns  the names of its other arguments, in their order
    """

    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def arguments(self, rewards: Rewards, columns: Given) -> tuple[Any, ...]:
        first: Any = rewards
        if self.names:
            first = {
                name: [[row[place] for row in group] for group in rewards]
                for place, name in enumerate(self.names)
            }
        return (first, *(columns[name] for name in self.columns))


PLAIN = Inputs()
"""The arguments of a function from rewards to advantages."""


@dataclass(frozen=True)
class Answer:
    """What a function gave for a batch: advantages, or none and what went wrong, with
    what it gave instead in a word: text, NaN or infinity. `columns` are what else it
    was given. `is_last`: its process was lost, and it is not called again."""

    rewards: Rewards
    advantages: list[list[float]]
    trouble: str = ""
    gave: str = ""
    columns: Given = field(default_factory=dict)
    is_last: bool = False

    @property
    def is_whole(self) -> bool:
        """Advantages of groups of one size with spread, whose rows are complete."""
        spread = all(len({*group}) > 1 for group in self.rewards)
        same_size = len(self.sizes) == 1
        return bool(self.advantages) and spread and same_size and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Each row has a reward, a token and an end."""
        return not (self.misses or self.marks)

    @property
    def marks(self) -> frozenset[str]:
        """The columns by which some row may be left out: a row has no token, or no
        end."""
        return frozenset(n for n, cells in self.columns.items() if not all(flat(cells)))

    @property
    def sizes(self) -> set[int]:
        return {*map(len, self.rewards)}

    @property
    def misses(self) -> bool:
        return None in flat(self.rewards)


NOTHING: Given = {}

Ask: TypeAlias = Callable[[Rewards, Given], Answer]
"""Gives a function a batch, and the columns that it takes."""


def flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [row for group in groups for row in group]


def answer_of(
    function: Callable[..., Any],
    rewards: Rewards,
    columns: Given = NOTHING,
    inputs: Inputs = PLAIN,
) -> Answer:
    """What it gives for a copy of its arguments. Never raises."""
    arguments, process = inputs.arguments(rewards, columns), os.getpid()
    copies = copy.deepcopy(arguments)
    try:
        with redirect_stdout(sys.stderr):  # standard output is the probe's
            groups = function(*copies)
        if os.getpid() != process:  # the function forked, and this is the copy
            os._exit(0)
        if copies != arguments:
            raise Unusable("changed its argument")
        return Answer(rewards, checked(rewards, groups), columns=columns)
    except Unusable as error:
        return Answer(rewards, [], str(error)[:300], error.gave, columns)
    except (Exception, SystemExit) as error:
        trouble = f"{type(error).__name__}: {error}"
    return Answer(rewards, [], trouble[:300], columns=columns)


def checked(rewards: Rewards, groups: Any) -> list[list[float]]:
    """Advantages in the shape of the rewards. Raises Unusable."""
    try:
        values = _numbers(groups)
    except (TypeError, ValueError):
        raise Unusable(f"returned no groups of numbers: {groups!r:.60}") from None
    shape = [len(group) for group in values]
    if shape != [len(group) for group in rewards]:
        raise Unusable(f"returned another shape: {shape} rows by prompt")
    for advantage in flat(values):
        if not math.isfinite(advantage):
            kind = "NaN" if math.isnan(advantage) else "infinity"
            raise Unusable(f"returned {kind}", kind)
    return values


def _numbers(groups: Any) -> list[list[float]]:
    """Groups of numbers, each a sequence, an array or a tensor; None as NaN. Raises
    Unusable for text, TypeError or ValueError for anything else."""
    lists = [g.tolist() if hasattr(g, "tolist") else g for g in groups]
    if any(isinstance(cell, str) for cell in flat(lists)):
        raise Unusable("returned text", "text")
    return [[math.nan if cell is None else float(cell) for cell in g] for g in lists]


@contextmanager
def apart(
    function: Callable[..., Any], inputs: Inputs = PLAIN
) -> Iterator[tuple[Ask, tuple[str, ...]]]:
    """The function's answers from another process, or from this one if it cannot
    be loaded there, with notes that say so. It is not called again once its process
    is lost."""
    if getattr(function, "__module__", "") == "__mp_main__":
        # A child imports a script that probes without `__name__ == "__main__"`.
        sys.exit()
    lost, process = "", 0
    pool = ProcessPoolExecutor(1, get_context("spawn"))

    def call(rewards: Rewards, columns: Given = NOTHING) -> Answer:
        nonlocal lost
        if lost:
            trouble = f"not called: {lost}"
            return Answer(rewards, [], trouble, columns=columns, is_last=True)
        try:
            return pool.submit(answer_of, function, rewards, columns, inputs).result(
                A_CALL
            )
        except TimeoutError:
            trouble = f"took longer than {A_CALL:g} seconds"
        except BrokenProcessPool:
            trouble = "ended its process"
        lost = f"an earlier call {trouble}"
        return Answer(rewards, [], trouble, columns=columns, is_last=True)

    try:
        try:
            pickled = pickle.dumps(function)
            process = pool.submit(os.getpid).result(STARTING)
            # Imports what the function needs, before a call is timed.
            pool.submit(pickle.loads, pickled).result(STARTING)
        except TimeoutError:
            lost = f"no process in {STARTING:g} seconds"
        except Exception:
            yield partial(answer_of, function, inputs=inputs), (HERE,)
            return
        yield call, ()
    finally:
        if process:  # which may be in the middle of a call
            with suppress(ProcessLookupError):
                os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        pool.shutdown(wait=bool(process))
