"""Judges the conditions of a challenge: each says what is still missing.

A judge gets a condition from a scenario file and an attempt, and gives ""
where the condition holds, else one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from gradebook.analysis.attempt import Attempt
from gradebook.analysis.comparison import sign
from gradebook.cases.challenge import OF_BATCH, Agree, Bounds, Crash, Differ, Equal
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import settled
from gradebook.engine.grouping import credited
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.segments import by_group


def missing(condition: Any, attempt: Attempt) -> str:
    """What the condition still misses, in one sentence; "" if it holds."""
    return JUDGES[type(condition)](condition, attempt)


# Rows


def _rows(rows: tuple[int, ...] | str, batch: Batch) -> list[int]:
    """The numbers of the named rows that the batch has."""
    if not isinstance(rows, str):
        return [row for row in rows if row < batch.rows]
    every = torch.ones(batch.rows, dtype=torch.bool)
    prompts = by_group(batch.prompt_index, every)
    named = {
        "all": every,
        "best": batch.reward == prompts.at_rows(prompts.max(batch.reward)),
        "whole": prompts.at_rows(prompts.max((~credited(batch)).double())) == 0,
    }
    return named[rows].nonzero().flatten().tolist()


# Numbers of rows


def _advantage(side: str) -> Callable[[Attempt], Tensor]:
    return lambda attempt: getattr(attempt.comparison, side).advantage


def _size(side: str) -> Callable[[Attempt], Tensor]:
    return lambda attempt: getattr(attempt.comparison, side).advantage.abs()


def _shift(side: str) -> Callable[[Attempt], Tensor]:
    """How far the advantage moved from the case as it came. NaN for a new
    row."""

    def moved(attempt: Attempt) -> Tensor:
        before = getattr(attempt.at_start, side).advantage.tolist()
        origins = attempt.changes.came_from
        was = [math.nan if row is None else before[row] for row in origins]
        now = getattr(attempt.comparison, side).advantage
        return (now - torch.tensor(was, dtype=now.dtype)).abs()

    return moved


def _column(name: str) -> Callable[[Attempt], Tensor]:
    return lambda attempt: getattr(attempt.batch, name).double()


def _ratio(attempt: Attempt) -> Tensor:
    both = attempt.comparison
    correct = both.correct.advantage
    return torch.where(sign(correct) != 0, both.faulty.advantage / correct, torch.nan)


def _loss_ratio(attempt: Attempt) -> Tensor:
    correct, faulty = attempt.comparison.correct.loss, attempt.comparison.faulty.loss
    if correct is None or faulty is None:
        return _in_every_row(attempt, torch.tensor(math.nan))
    return _in_every_row(attempt, faulty / correct)


def _in_every_row(attempt: Attempt, value: Tensor) -> Tensor:
    return value.expand(attempt.batch.rows)


NUMBERS: Mapping[str, tuple[str, Callable[[Attempt], Tensor]]] = {
    "correct": ("correct advantage", _advantage("correct")),
    "faulty": ("faulty advantage", _advantage("faulty")),
    "correct size": ("size of the correct advantage", _size("correct")),
    "faulty size": ("size of the faulty advantage", _size("faulty")),
    "correct shift": ("shift of the correct advantage", _shift("correct")),
    "faulty shift": ("shift of the faulty advantage", _shift("faulty")),
    "ratio": ("ratio of faulty to correct", _ratio),
    "loss ratio": ("ratio of the faulty loss to the correct one", _loss_ratio),
    "correct trains": (
        "number of rows that the correct engine trains",
        lambda attempt: _in_every_row(
            attempt, attempt.comparison.correct.trained.sum().double()
        ),
    ),
    "reward": ("reward", _column("reward")),
    "tokens": ("number of tokens", _column("tokens")),
    "eos": ("EOS", _column("eos")),
    "kept_steps": ("number of kept transitions", _column("kept_steps")),
    "rows": (
        "number of rows",
        lambda attempt: _in_every_row(attempt, torch.tensor(attempt.batch.rows)),
    ),
    "pieces": (
        "number of rows of the rollout",
        lambda attempt: torch.bincount(attempt.batch.rollout_index)[
            attempt.batch.rollout_index
        ],
    ),
}
"""The numbers that bounds are about: in words, and for each row."""


def _bounds(condition: Bounds, attempt: Attempt) -> str:
    what, number = NUMBERS[condition.of]
    values = number(attempt).tolist()
    rows = condition.some if condition.every is None else condition.every
    assert rows is not None  # one of them, as the file was checked
    outside = [
        (_outside(condition, values[row]), row)
        for row in _rows(rows, attempt.batch)
        if not math.isnan(values[row])
    ]
    if not outside:
        return f"No row has a {what}."
    distance, row = min(outside) if condition.every is None else max(outside)
    if distance <= 0:
        return ""
    value = f"{settled(values[row]):.4g}".replace("-", "−")
    where = "" if condition.of in OF_BATCH else f" of row {row}"
    return f"The {what}{where} is {value}; the goal is {_goal(condition)}."


def _outside(condition: Bounds, value: float) -> float:
    """How far the value lies outside the bounds; 0 inside."""
    least, most = condition.least, condition.most
    gaps = [
        0.0 if least is None else least - value,
        0.0 if most is None else value - most,
    ]
    if condition.among:
        gaps.append(min(abs(value - one) for one in condition.among))
    reach = max(1.0, abs(least or 0), abs(most or 0))
    return max(0.0, *(gap for gap in gaps if gap > DUST * reach), 0.0)


def _goal(condition: Bounds) -> str:
    """The bounds in words."""
    least, most = condition.least, condition.most
    if condition.among or least == most:
        return " or ".join(f"{value:g}" for value in condition.among or [least or 0])
    words = [] if least is None else [f"at least {least:g}"]
    words += [] if most is None else [f"at most {most:g}"]
    return " and ".join(words).replace("-", "−")


# Both engines


def _agree(condition: Agree, attempt: Attempt) -> str:
    both = attempt.comparison
    if condition.within is None and both.agree:
        return ""
    gap = (both.correct.advantage - both.faulty.advantage).nan_to_num().abs().max()
    if condition.within is not None and float(gap) <= condition.within:
        return ""
    for stage in ("advantage", "loss"):
        if bool(both.differs(stage).any()):
            apart = f", by up to {gap:.3g}" if stage == "advantage" else ""
            return f"The engines still differ in the {stage}{apart}."
    return "The engines still differ in the gradient."


def _differ(condition: Differ, attempt: Attempt) -> str:
    both = attempt.comparison
    gradient = condition.of == "gradient"
    differs = both.gradient_differs if gradient else both.differs("advantage")
    if any(differs[row] for row in _rows(condition.some, attempt.batch)):
        return ""
    which = {"all": "No row", "whole": "No row of a whole prompt"}
    row = which.get(str(condition.some), "None of these rows")
    return f"{row} has another faulty {condition.of}."


def _equal(condition: Equal, attempt: Attempt) -> str:
    batch = attempt.batch
    places = {
        "batch": torch.zeros(batch.rows),
        "prompt": batch.prompt_index,
        "rollout": batch.rollout_index,
    }[condition.within].tolist()
    values = getattr(batch, condition.column).tolist()
    rows = _rows(condition.rows, batch)
    pairs = {(places[row], values[row]) for row in rows}
    if (len(pairs) == len({places[row] for row in rows})) == condition.equal:
        return ""
    same, state = ("one", "different") if condition.equal else ("each", "equal")
    return (
        f"The rows of {same} {condition.within} have {state} values of"
        f" {condition.column}."
    )


def _crash(condition: Crash, attempt: Attempt) -> str:
    run(CORRECT, attempt.batch)
    try:
        run(attempt.bug.engine, attempt.batch)
    except GradebookError:
        return ""
    return "The faulty engine still runs."


JUDGES: Mapping[type, Callable[[Any, Attempt], str]] = {
    Bounds: _bounds,
    Agree: _agree,
    Differ: _differ,
    Equal: _equal,
    Crash: _crash,
}
"""Who judges each condition."""
