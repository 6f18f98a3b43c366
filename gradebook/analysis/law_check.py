"""Whether an engine keeps a law on a batch.

The answer is one of three: the law holds here, it is broken by this row and
these numbers, or the batch and its settings cannot test it. No check compares
two engines. All changes of a law run as one batch, each as a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from inspect import getdoc
from typing import Any, TypeAlias

import torch

from gradebook.analysis.law_steps import Change, Step, due
from gradebook.analysis.laws import AS_IT_IS, GRADIENT_LAWS, LAWS
from gradebook.cases.record import Bug
from gradebook.core.batch import Batch
from gradebook.core.differences import SHOWS, same
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.formatting import counted, digits_apart, settled, signed
from gradebook.engine.grouping import score
from gradebook.engine.pipeline import CORRECT, Engine, run

COLUMNS = tuple(
    field.name for field in fields(Batch) if field.name not in ("step", "settings")
)
"""The columns of a step."""

LARGEST_ROUNDING = 0.01
"""Where rounding may move an advantage by more, a law cannot be tested."""


@dataclass(frozen=True)
class Held:
    """The law holds on this batch; `sentence` says what was tried."""

    sentence: str


@dataclass(frozen=True)
class Broken:
    """The clearest counterexample: a row of the batch (-1 for a sum over
    rows), the value that the law asks for, and the value found."""

    row: int
    expected: float
    found: float
    sentence: str


@dataclass(frozen=True)
class Silent:
    """The batch or its settings cannot test the law, and why."""

    sentence: str


Outcome: TypeAlias = Held | Broken | Silent


@dataclass(frozen=True)
class Law:
    """A law by its name, in words, with what a batch needs to test it."""

    name: str
    words: str
    needs: str

    def check(self, engine: Engine, batch: Batch) -> Outcome:
        """Whether `engine` keeps the law on `batch`. Raises GradebookError
        where the engine cannot run on the batch as it is."""
        found = list(_tried(self.name, engine, batch))
        if not found:
            return Silent(self.needs)
        largest = max(found, key=lambda one: one.size)
        if largest.size > 0:
            return largest.broken()
        count = len({id(one.change) for one in found})
        return Held(f"Tried in {counted(count, 'way')}.")


def law(name: str) -> Law:
    """The law of that name. Raises GradebookError for a name not in LAWS.

    >>> law("own_prompt").words
    "Changing a row's reward moves no row of another prompt."
    """
    if name not in LAWS:
        raise refuse("one of " + ", ".join(LAWS), name, "laws")
    words, needs = (getdoc(LAWS[name]) or "").split("\n\n")
    return Law(name, " ".join(words.split()), " ".join(needs.split()))


def laws(bug: Bug) -> tuple[Law, ...]:
    """The laws that the record of the bug lists. Raises as `law`."""
    return tuple(law(name) for name in bug.laws)


def columns_of(batch: Batch) -> list[Step]:
    """The batch step by step, each as columns, with every default filled in.

    `row` numbers the rows in the batch. logp and ref_logp only where the
    batch has them.
    """
    lists = {
        name: value.tolist()
        for name in COLUMNS
        if (value := getattr(batch, name)) is not None
    }
    lists["mask"] = batch.mask.int().tolist()
    lists["row"] = list(range(batch.rows))
    rows: list[list[int]] = [[] for _ in range(batch.step_count)]
    for row, at in enumerate(batch.step_index.tolist()):
        rows[at].append(row)
    return [
        {name: [cells[r] for r in of] for name, cells in lists.items()} for of in rows
    ]


@dataclass(frozen=True)
class _Found:
    """One row of one change; `size` is the violation, 0 for none."""

    change: Change
    row: int
    expected: float
    found: float
    size: float
    gradient: bool

    def broken(self) -> Broken:
        """As a counterexample in words."""
        a, b = settled(self.expected), settled(self.found)
        digits = digits_apart(a, b, 5 if self.gradient else 3)
        asked, got = signed(a, digits), signed(b, digits)
        what = f"the advantage of row {self.row}"
        if self.gradient:
            what = f"the gradient at a token of row {self.row}"
        if self.change.total:
            said = f"the advantages of row {self.row}'s prompt add up to {got}"
        elif self.change.what and self.change.keeps and self.change.times == 1:
            said = f"{what} changes from {asked} to {got}"
        else:
            said = f"{what} is {got}, and must be {asked}"
        if self.change.what:
            said = f"When {self.change.what}, {said}"
        return Broken(self.row, a, b, said[0].upper() + said[1:] + ".")


def broken_as_it_is(
    batch: Batch, rows: list[int], advantage: list[float], allowed: list[float]
) -> Broken | None:
    """The clearest counterexample among the laws that speak of a step as it
    is (that of zero sums, say), for advantages that any trainer computed.
    None where all of them hold, or none can be tested.

    batch      whole prompts of one training step, with its settings
    rows       the rows' numbers in that step, for the sentence
    advantage  a number a row; `allowed` is how far it may be off
    """
    (step,) = columns_of(batch)
    step["row"] = rows
    found = [
        one
        for law in AS_IT_IS
        for change in law(step, dict(batch.settings))
        if not change.what
        for one in _compared(change, advantage, advantage, allowed, False)
    ]
    worst = max(found, key=lambda one: one.size, default=None)
    return worst.broken() if worst is not None and worst.size > 0 else None


def _tried(name: str, engine: Engine, batch: Batch) -> Iterator[_Found]:
    """Every value that the law speaks of, under each change."""
    gradient = LAWS[name] in GRADIENT_LAWS
    settings = batch.settings
    for step in columns_of(batch):
        changes = list(LAWS[name](step, settings))
        if not changes:
            continue
        (before,) = _values(engine, batch, [step], {}, gradient)
        if before is None:
            run(engine, batch)  # raises what the engine has to say
            continue
        for change, after, noise in _changed(engine, batch, changes, gradient):
            yield from _compared(change, before, after, noise, gradient)


def _compared(
    change: Change,
    before: list[Any],
    after: list[Any],
    noise: list[float],
    gradient: bool,
) -> Iterator[_Found]:
    """The values of the changed step beside those that are due."""
    for at, expected, found in due(change, before, after):
        place = change.rows[at]
        allowed = noise[place]
        if change.total:  # as much as the sum of what is printed
            allowed = sum(noise[r] for r in change.rows)
            allowed += SHOWS * sum(abs(after[r]) for r in change.rows)
        if noise[place] <= LARGEST_ROUNDING:
            row = change.step["row"][place]
            yield _judged(change, row, expected, found, allowed, gradient)


def _judged(
    change: Change,
    row: int,
    expected: Any,
    found: Any,
    allowed: float,
    gradient: bool,
) -> _Found:
    """The value found beside the value due; of a gradient, the token where
    they lie farthest apart."""
    if gradient:
        pairs = zip(expected, found)
        expected, found = max(pairs, key=lambda ab: abs(ab[0] - ab[1]))
    gap = abs(expected - found)
    allowed += change.slack * abs(expected)
    wrong = not same(expected, found) and not gap <= allowed
    return _Found(change, row, expected, found, gap if wrong else 0.0, gradient)


def _changed(
    engine: Engine, batch: Batch, changes: list[Change], gradient: bool
) -> Iterator[tuple[Change, list[Any], list[float]]]:
    """The changes on which the engine can run, with the values of their rows
    and what rounding may make of them."""
    for items in dict.fromkeys(tuple(c.settings.items()) for c in changes):
        settings = dict(items)
        of = [c for c in changes if c.settings == settings]
        steps = [c.step for c in of]
        values = _values(engine, batch, steps, settings, gradient)
        noise = _rounding(batch, steps)
        for change, value, amount in zip(of, values, noise):
            if value is not None:
                yield change, value, amount


def _values(
    engine: Engine,
    batch: Batch,
    steps: list[Step],
    settings: dict[str, Any],
    gradient: bool,
) -> list[list[Any] | None]:
    """For each step an advantage, or a list of gradients, a row. None where
    the engine cannot run."""
    try:
        trace = run(engine, _batch(batch, steps, settings, gradient))
    except GradebookError:
        if len(steps) == 1:
            return [None]
        return [
            value
            for step in steps
            for value in _values(engine, batch, [step], settings, gradient)
        ]
    found = trace.gradient if gradient else trace.advantage
    return _by_step(found.tolist() if found is not None else [], steps)


def _by_step(values: list[Any], steps: list[Step]) -> list[Any]:
    rest = iter(values)
    return [[next(rest) for _ in step["reward"]] for step in steps]


def _batch(
    batch: Batch, steps: list[Step], settings: dict[str, Any], logp: bool
) -> Batch:
    """The steps as one batch, each a training step of its own."""
    width = max(len(m) for step in steps for m in step["mask"])
    columns: dict[str, list[Any]] = {
        name: [cell for step in steps for cell in step[name]]
        for name in COLUMNS
        if name in steps[0] and (logp or name not in ("logp", "ref_logp"))
    }
    columns["mask"] = [m + [0] * (width - len(m)) for m in columns["mask"]]
    columns["step"] = [at for at, s in enumerate(steps) for _ in s["reward"]]
    reward = torch.tensor(columns.pop("reward"), dtype=batch.reward.dtype)
    return Batch(
        reward=reward,
        **columns,
        settings=replace(batch.settings, **settings),
    )


def _rounding(batch: Batch, steps: list[Step]) -> list[list[float]]:
    """How much rounding may move each row's advantage: that of its score,
    over what it is divided by. One list a step."""
    one = _batch(batch, steps, {}, logp=False)
    try:
        divisor = run(CORRECT, one).scale
    except GradebookError:
        return [[0.0] * len(step["reward"]) for step in steps]
    size = score(one).abs().clamp(min=1)
    largest = size.new_ones(one.step_count).scatter_reduce(
        0, one.step_index, size, "amax"
    )[one.step_index]
    noise = 16 * torch.finfo(divisor.dtype).eps * largest / divisor
    if batch.settings.whiten_tokens:
        noise = noise * 1e4  # a variance of 0 is divided by the root of 1e-8
    return _by_step(noise.nan_to_num(0, 0, 0).tolist(), steps)
