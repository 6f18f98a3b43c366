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
from gradebook.engine.pipeline import CORRECT, Trace, run


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
    count = attempt.batch.rows
    if not isinstance(rows, str):
        for row in rows:
            if row >= count:
                raise _Unmet(f"There is no row {row}.")
        return list(rows)
    found = _named(rows, attempt)
    if not found:
        raise _Unmet(f"There is no {ROWS[rows]}.")
    return found


def _named(name: str, attempt: Attempt) -> list[int]:
    """The rows that a name of ROWS stands for; there may be none."""
    batch = attempt.batch
    if name in ("old", "added"):
        came = attempt.came_from
        return [
            r
            for r, old in enumerate(came)
            if (old is None) == (name == "added")
        ]
    if name == "trained":
        both = attempt.comparison
        return _true(both.correct.trained & both.faulty.trained)
    return _true(_FLAGS[name](batch))


_FLAGS: Mapping[str, Callable[[Batch], Tensor]] = {
    "all": lambda batch: torch.ones(batch.rows, dtype=torch.bool),
    "credited": credited,
    "uncredited": lambda batch: ~credited(batch),
    "scored": lambda batch: batch.scored,
    "best": lambda batch: (
        batch.reward == _by_prompt(batch, batch.reward, "amax")
    ),
    "whole": lambda batch: (
        _by_prompt(batch, credited(batch).double(), "amin") > 0
    ),
}


def _by_prompt(batch: Batch, values: Tensor, reduce: str) -> Tensor:
    """The largest (amax) or smallest (amin) value of the row's prompt,
    [R]."""
    prompt = batch.prompt_index
    start = values.new_zeros(int(prompt.max()) + 1)
    per_prompt = start.scatter_reduce(
        0, prompt, values, reduce, include_self=False
    )
    return per_prompt[prompt]


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
    rows = condition.some if condition.every is None else condition.every
    told = [
        (_outside(condition, values[row]), row)
        for row in _selected(rows or "all", attempt)
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
    gaps = [
        (condition.least, lambda bound: bound - value),
        (condition.most, lambda bound: value - bound),
        (condition.size_least, lambda bound: bound - size),
        (condition.size_most, lambda bound: size - bound),
    ]
    found = [
        gap(bound)
        for bound, gap in gaps
        if bound is not None and gap(bound) > DUST * max(1, abs(bound))
    ]
    among = getattr(condition, "among", ())
    if among and not any(value == one for one in among):
        found.append(min(abs(value - one) for one in among))
    return max(found, default=0)


def _bounds(condition: Bounded) -> str:
    """The bounds in words."""
    among = getattr(condition, "among", ())
    if among:
        return " or ".join(f"{one:g}" for one in among)
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
    values = _trace(attempt, condition.of).advantage.tolist()
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


def _trace(attempt: Attempt, side: str) -> Trace:
    return getattr(attempt.comparison, side)


def _agree(condition: Agree, attempt: Attempt) -> None:
    both = attempt.comparison
    if condition.within is not None:
        gap = (both.correct.advantage - both.faulty.advantage).nan_to_num()
        if float(gap.abs().max()) > condition.within:
            raise _Unmet(
                f"The advantages are up to {gap.abs().max():.3g} apart."
            )
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
        raise _Unmet(
            f"No {one} has another {condition.of} in the faulty engine."
        )


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
    rows = condition.some if condition.every is None else condition.every
    before = getattr(attempt.at_start, condition.of).advantage
    after = _trace(attempt, condition.of).advantage
    what = f"{condition.of} advantage"
    holds = {}
    for row in _selected(rows or "old", attempt):
        old = attempt.came_from[row]
        if old is None:
            continue
        was, now = before[old], after[row]
        if condition.turned:
            holds[row] = bool(sign(was) * sign(now) < 0)
        else:
            same = bool(differences.same(was, now))
            holds[row] = same != condition.moved
    if condition.every is None and not any(holds.values()):
        verb = "has changed its sign" if condition.turned else "has moved"
        raise _Unmet(f"No row's {what} {verb}.")
    if condition.every is not None:
        for row, held in holds.items():
            if not held:
                verb = "has to move" if condition.moved else "has moved"
                verb = "has to change its sign" if condition.turned else verb
                raise _Unmet(f"The {what} of row {row} {verb}.")


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
    count = int(_trace(attempt, condition.of).trained.sum())
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
