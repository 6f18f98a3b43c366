"""Judges the conditions of a challenge: each says what is still missing.

A judge gets a condition from a scenario file and an attempt, and gives ""
where the condition holds, else one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradebook.analysis.attempt import Attempt
from gradebook.analysis.comparison import sign
from gradebook.cases.conditions import (
    ROWS,
    Advantage,
    Agree,
    Bounded,
    Crash,
    Differ,
    Equal,
    Flip,
    LikeCorrectAtStart,
    LossTurns,
    Moved,
    Ratio,
    SettingIs,
    Sizes,
    Trains,
    Values,
)
from gradebook.core import differences
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted
from gradebook.engine.grouping import credited, divisible
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.segments import by_group


class _Unmet(Exception):
    """A condition does not hold; the message says what is missing."""


def missing(condition: Any, attempt: Attempt) -> str:
    """What the condition still misses, in one sentence; "" if it holds."""
    try:
        JUDGES[type(condition)](condition, attempt)
    except _Unmet as unmet:
        return str(unmet)
    return ""


# Rows


def _selected(rows: tuple[int, ...] | str, attempt: Attempt) -> list[int]:
    """The numbers of the named rows. Unmet where there is none."""
    if isinstance(rows, str):
        found = _true(_NAMED[rows](attempt))
        if not found:
            raise _Unmet(f"There is no {ROWS[rows]}.")
        return found
    for row in rows:
        if row >= attempt.batch.rows:
            raise _Unmet(f"There is no row {row}.")
    return list(rows)


def _came(attempt: Attempt) -> Tensor:
    """The row was in the case as it came. bool [R]."""
    came_from = attempt.changes.came_from
    return torch.tensor([old is not None for old in came_from])


_NAMED: Mapping[str, Callable[[Attempt], Tensor]] = {
    "all": lambda attempt: torch.ones(attempt.batch.rows),
    "credited": lambda attempt: credited(attempt.batch),
    "uncredited": lambda attempt: ~credited(attempt.batch),
    "scored": lambda attempt: attempt.batch.scored,
    "best": lambda attempt: (
        attempt.batch.reward == _by_prompt(attempt, attempt.batch.reward)
    ),
    "old": _came,
    "added": lambda attempt: ~_came(attempt),
    "whole": lambda attempt: (
        _by_prompt(attempt, (~credited(attempt.batch)).double()) == 0
    ),
    "trained": lambda attempt: (
        attempt.comparison.correct.trained & attempt.comparison.faulty.trained
    ),
}
"""Which rows each name of ROWS stands for, bool [R]."""


def _by_prompt(attempt: Attempt, values: Tensor) -> Tensor:
    """The largest value of the row's prompt. [R]."""
    every = torch.ones_like(values, dtype=torch.bool)
    prompts = by_group(attempt.batch.prompt_index, every)
    return prompts.at_rows(prompts.max(values))


def _true(flags: Tensor) -> list[int]:
    return flags.nonzero().flatten().tolist()


def _number(value: float) -> str:
    return "0" if abs(value) <= DUST else f"{value:+.4g}"


# Numbers of rows


def _bounded(
    condition: Bounded, attempt: Attempt, values: Sequence[float], what: str
) -> None:
    """Unmet unless some or every one of the rows' values lies within the
    bounds. A row without a value (NaN) is left out."""
    told = [
        (_outside(condition, values[row]), row)
        for row in _selected(condition.rows, attempt)
        if not math.isnan(values[row])
    ]
    if not told:
        raise _Unmet(f"No row has a {what}.")
    nearest = condition.every is None
    far, row = min(told, key=lambda one: one[0] if nearest else -one[0])
    if far > 0:
        raise _Unmet(
            f"The {what} of row {row} is {_number(values[row])},"
            f" not {_bounds(condition)}."
        )


def _outside(condition: Bounded, value: float) -> float:
    """How far the value lies outside the bounds; 0 inside."""
    size = abs(value)
    bounds = [
        (condition.least, value, -1),
        (condition.most, value, 1),
        (condition.size_least, size, -1),
        (condition.size_most, size, 1),
    ]
    found = [
        far
        for bound, one, side in bounds
        if bound is not None
        and (far := side * (one - bound)) > DUST * max(1, abs(bound))
    ]
    if condition.among:
        found.append(min(abs(value - one) for one in condition.among))
    return max(found, default=0)


def _bounds(condition: Bounded) -> str:
    """The bounds in words."""
    if condition.among:
        return " or ".join(f"{one:g}" for one in condition.among)
    if condition.size_most == 0:
        return "0"
    said = [
        (condition.least, "at least {:g}"),
        (condition.most, "at most {:g}"),
        (condition.size_least, "{:g} or more in size"),
        (condition.size_most, "{:g} or less in size"),
    ]
    parts = [text.format(bound) for bound, text in said if bound is not None]
    return " and ".join(parts)


def _advantage(condition: Advantage, attempt: Attempt) -> None:
    values = getattr(attempt.comparison, condition.of).advantage.tolist()
    _bounded(condition, attempt, values, f"{condition.of} advantage")


def _ratio(condition: Ratio, attempt: Attempt) -> None:
    both = attempt.comparison
    counts = sign(both.correct.advantage) != 0
    ratio = both.faulty.advantage / both.correct.advantage
    values = torch.where(counts, ratio, torch.nan).tolist()
    _bounded(condition, attempt, values, "ratio of faulty to correct")


def _values(condition: Values, attempt: Attempt) -> None:
    column = getattr(attempt.batch, condition.column).double().tolist()
    _bounded(condition, attempt, column, condition.column)


def _equal(condition: Equal, attempt: Attempt) -> None:
    batch = attempt.batch
    place = _place(condition.within, batch).tolist()
    values = getattr(batch, condition.column).tolist()
    rows = _selected(condition.rows, attempt)
    places = {place[row] for row in rows}
    pairs = {(place[row], values[row]) for row in rows}
    if (len(pairs) == len(places)) != condition.equal:
        same = "one" if condition.equal else "each"
        state = "different" if condition.equal else "equal"
        raise _Unmet(
            f"The rows of {same} {condition.within} have {state} values of"
            f" {condition.column}."
        )


def _place(name: str, batch: Batch) -> Tensor:
    """The row's prompt, rollout or batch, as a number. int64 [R]."""
    if name == "batch":
        return torch.zeros(batch.rows, dtype=torch.int64)
    return batch.prompt_index if name == "prompt" else batch.rollout_index


# Both engines


def _agree(condition: Agree, attempt: Attempt) -> None:
    both = attempt.comparison
    if condition.within is not None:
        gap = (both.correct.advantage - both.faulty.advantage).nan_to_num()
        if float(gap.abs().max()) > condition.within:
            raise _Unmet(f"The advantages are up to {gap.abs().max():.3g} apart.")
        return
    if both.agree:
        return
    for stage in ("advantage", "loss"):
        if bool(both.differs(stage).any()):
            raise _Unmet(f"The engines still differ in the {stage}.")
    raise _Unmet("The engines still differ in the gradient.")


def _differ(condition: Differ, attempt: Attempt) -> None:
    both = attempt.comparison
    gradient = condition.of == "gradient"
    differs = both.gradient_differs if gradient else both.differs("advantage")
    rows = _selected(condition.some, attempt)
    if not any(differs[row] for row in rows):
        one = ROWS.get(str(condition.some), "of these rows")
        raise _Unmet(f"No {one} has another {condition.of} in the faulty engine.")


def _flip(condition: Flip, attempt: Attempt) -> None:
    both = attempt.comparison
    wanted = {"positive": 1, "negative": -1}.get(condition.to)
    to = sign(both.faulty.advantage)
    flips = [
        row
        for row in _selected(condition.some, attempt)
        if both.flips[row] and (wanted is None or to[row] == wanted)
    ]
    if not flips:
        how = "" if wanted is None else f" to {condition.to}"
        raise _Unmet(f"No row flips{how}.")


def _moved(condition: Moved, attempt: Attempt) -> None:
    came_from = attempt.changes.came_from
    rows = [
        row for row in _selected(condition.rows, attempt) if came_from[row] is not None
    ]
    was = getattr(attempt.at_start, condition.of).advantage
    was = was[[came_from[row] for row in rows]]
    now = getattr(attempt.comparison, condition.of).advantage[rows]
    if condition.turned:
        held = sign(was) * sign(now) < 0
        done, due = "has changed its sign", "has to change its sign"
    else:
        held = differences.same(was, now) != condition.moved
        done = "has moved"
        due = "has to move" if condition.moved else "has moved"
    what = f"{condition.of} advantage"
    if condition.every is None and not bool(held.any()):
        raise _Unmet(f"No row's {what} {done}.")
    if condition.every is not None and not bool(held.all()):
        row = rows[int(held.int().argmin())]
        raise _Unmet(f"The {what} of row {row} {due}.")


def _like_start(condition: LikeCorrectAtStart, attempt: Attempt) -> None:
    wanted = attempt.at_start.correct.advantage
    found = attempt.comparison.faulty.advantage
    if len(wanted) != len(found):
        raise _Unmet("Keep the rows of the case.")
    for row in _true(~differences.same(wanted, found)):
        raise _Unmet(
            f"The faulty advantage of row {row} is"
            f" {_number(float(found[row]))}, and the correct one was"
            f" {_number(float(wanted[row]))}."
        )


def _trains(condition: Trains, attempt: Attempt) -> None:
    count = int(getattr(attempt.comparison, condition.of).trained.sum())
    if count > condition.most:
        rows = counted(count, "row")
        raise _Unmet(f"The {condition.of} engine still trains {rows}.")


def _loss_turns(condition: LossTurns, attempt: Attempt) -> None:
    both = attempt.comparison
    if both.correct.loss is None or both.faulty.loss is None:
        raise _Unmet("There is no loss without logp.")
    losses = [float(both.correct.loss), float(both.faulty.loss)]
    if not bool(differences.flips(*map(torch.tensor, losses))):
        correct, faulty = map(_number, losses)
        raise _Unmet(f"The loss is {correct} correct and {faulty} faulty.")


def _crash(condition: Crash, attempt: Attempt) -> None:
    run(CORRECT, attempt.batch)
    try:
        run(attempt.bug.engine, attempt.batch)
    except GradebookError:
        return
    raise _Unmet("The faulty engine still runs.")


# Settings and sizes


def _setting(condition: SettingIs, attempt: Attempt) -> None:
    value = attempt.batch.settings[condition.setting]
    wanted, but = condition.value, condition.but
    if (wanted is not None and value != wanted) or value == but:
        raise _Unmet(f"The setting {condition.setting} is {value}.")


def _sizes(condition: Sizes, attempt: Attempt) -> None:
    batch = attempt.batch
    counts = torch.bincount(_place(condition.of, batch)).tolist()
    if condition.changed and batch.rows == attempt.before.rows:
        raise _Unmet("Make a batch with another number of rows.")
    if condition.divides:
        try:
            divisible(batch)
        except GradebookError as error:
            raise _Unmet(f"The guard stops it: {error.message}.") from None
    if min(counts) < condition.least:
        raise _Unmet(f"Every {condition.of} needs {condition.least} rows.")


Judge = Callable[[Any, Attempt], None]

JUDGES: Mapping[type, Judge] = {
    Agree: _agree,
    Differ: _differ,
    Flip: _flip,
    Advantage: _advantage,
    Ratio: _ratio,
    Values: _values,
    Equal: _equal,
    Moved: _moved,
    SettingIs: _setting,
    Sizes: _sizes,
    Trains: _trains,
    LossTurns: _loss_turns,
    Crash: _crash,
    LikeCorrectAtStart: _like_start,
}
"""Who judges each condition."""
