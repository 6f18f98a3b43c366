"""Challenges: what a learner tries on a batch, and whether it is solved.

Each kind of condition in a scenario file has one judge, which gives "" where
the condition holds, else what is missing in one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison, compare, sign
from gradebook.bugs import swap
from gradebook.cases import edits
from gradebook.cases.challenge import (
    OF_BATCH,
    Agree,
    Bounds,
    Challenge,
    Change,
    Crash,
    Differ,
    Edits,
    Equal,
)
from gradebook.cases.state import State, start, typed_setting
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus, settled
from gradebook.engine.grouping import credited
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.segments import by_group


class Verdict(NamedTuple):
    """Whether a challenge is solved; if not, what is still missing."""

    solved: bool
    missing: str


class Attempt:
    """A state of a scenario, beside the case as it came. Engines run when
    they are asked for; `comparison` is known where the page has it."""

    def __init__(self, now: State, comparison: Comparison | None):
        self.bug = swap(now.scenario.bug)
        self.before, self.now = start(now.scenario), now
        if comparison is None:
            self.batch = now.batch()
        else:
            self.comparison, self.batch = comparison, comparison.batch

    @cached_property
    def comparison(self) -> Comparison:
        """Both engines on the batch now."""
        return compare(self.bug, self.batch)

    @cached_property
    def at_start(self) -> Comparison:
        """Both engines on the batch as it came."""
        return compare(self.bug, self.before.batch())

    @cached_property
    def changes(self) -> Changes:
        """What was edited."""
        return changes(self.before, self.now)


def judge(
    challenge: Challenge, now: State, comparison: Comparison | None = None
) -> Verdict:
    """Whether `now` solves the challenge of its scenario.

    `comparison` is both engines on `now`; without it they are run. Raises
    GradebookError where the state cannot be read or run.
    """
    attempt = Attempt(now, comparison)
    if not attempt.batch.rows:
        return Verdict(False, "There are no rows.")
    missing = ""
    if challenge.edits is not None:
        missing = overstepped(challenge.edits, attempt.changes)
    for condition in challenge.solved:
        missing = missing or JUDGES[type(condition)](condition, attempt)
    return Verdict(not missing, missing)


def apply_solution(state: State, changes: Sequence[Change]) -> State:
    """The state after the changes, in order. Raises GradebookError for a
    row that is not there."""
    for change in changes:
        if change.setting is not None:
            typed = typed_setting(change.setting, change.value)
            state = edits.set_setting(state, change.setting, typed)
        elif change.remove_row is not None:
            state = edits.remove_row(state, change.remove_row)
        else:
            state = replace(state, table=change.changed(state.table))
    return state


# The five kinds of conditions


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


WORDS: Mapping[str, str] = {
    "correct": "correct advantage",
    "faulty": "faulty advantage",
    "correct trains": "number of rows that the correct engine trains",
    "loss ratio": "ratio of the faulty loss to the correct one",
    "ratio": "ratio of faulty to correct",
    "eos": "EOS",
    "pieces": "number of rows of the rollout",
    **{name: f"number of {name}" for name in ("rows", "tokens", "kept_steps")},
}
"""What bounds are about, where its name does not read as a noun."""


def _number(of: str, attempt: Attempt) -> Tensor:
    """What bounds are about, for each row; NaN for a row without it."""
    both, batch = attempt.comparison, attempt.batch
    correct, faulty = both.correct, both.faulty
    side, _, measure = of.partition(" ")
    if side in ("correct", "faulty") and measure != "trains":
        now = getattr(both, side).advantage
        if measure == "shift":
            came_from = attempt.changes.came_from
            before = getattr(attempt.at_start, side).advantage.tolist()
            then = [math.nan if row is None else before[row] for row in came_from]
            now = now - torch.tensor(then, dtype=now.dtype)
        return now.abs() if measure else now
    if of == "ratio":
        divides = sign(correct.advantage) != 0
        return torch.where(divides, faulty.advantage / correct.advantage, torch.nan)
    if of == "pieces":
        return torch.bincount(batch.rollout_index)[batch.rollout_index]
    if of not in OF_BATCH:
        return getattr(batch, of).double()
    if of == "loss ratio":
        value = torch.tensor(math.nan)
        if correct.loss is not None and faulty.loss is not None:
            value = faulty.loss / correct.loss
    else:
        count = batch.rows if of == "rows" else int(correct.trained.sum())
        value = torch.tensor(float(count))
    return value.expand(batch.rows)


def _bounds(condition: Bounds, attempt: Attempt) -> str:
    of = WORDS.get(condition.of, condition.of)
    values = _number(condition.of, attempt).tolist()
    rows = condition.some if condition.every is None else condition.every
    assert rows is not None  # one of them, as the file was checked
    outside = [
        (_outside(condition, values[row]), row)
        for row in _rows(rows, attempt.batch)
        if not math.isnan(values[row])
    ]
    if not outside:
        return f"No row has a {of}."
    distance, row = min(outside) if condition.every is None else max(outside)
    if distance <= 0:
        return ""
    where = "" if condition.of in OF_BATCH else f" of row {row}"
    least, most = condition.least, condition.most
    ends = [] if least is None else [f"at least {least:g}"]
    ends += [] if most is None else [f"at most {most:g}"]
    goal = " and ".join(ends) or " or ".join(f"{v:g}" for v in condition.among)
    value = f"{settled(values[row]):.4g}"
    return minus(f"The {of}{where} is {value}; the goal is {goal}.")


def _outside(condition: Bounds, value: float) -> float:
    """How far the value lies outside the bounds; 0 inside."""
    least, most = condition.least, condition.most
    low = value if least is None else least
    high = value if most is None else most
    gap = max(low - value, value - high)
    if condition.among:
        gap = max(gap, min(abs(value - target) for target in condition.among))
    return gap if gap > DUST * max(1.0, abs(low), abs(high)) else 0.0


def _agree(condition: Agree, attempt: Attempt) -> str:
    both = attempt.comparison
    gap = both.gap("advantage")
    near = condition.within is not None and gap <= condition.within
    if near or both.agree:
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


# What differs between two states of one scenario, and what may differ


@dataclass(frozen=True)
class Changes:
    """What differs between two states of one scenario, by value: 100 and
    100.0 are the same.

    cells      (row, column) -> the value before and now
    settings   names of settings that changed
    came_from  the number that each row had before, None for a new row
    removed    how many rows are gone
    """

    cells: Mapping[tuple[int, str], tuple[Any, Any]]
    settings: frozenset[str]
    came_from: tuple[int | None, ...]
    removed: int

    @property
    def added(self) -> int:
        """How many rows are new."""
        return self.came_from.count(None)

    @property
    def reordered(self) -> bool:
        """The rows that stayed are in another order."""
        kept = [row for row in self.came_from if row is not None]
        return kept != sorted(kept)

    @property
    def count(self) -> int:
        """How many edits there are."""
        rows = self.added + self.removed
        return len(self.cells) + len(self.settings) + rows


def changes(before: State, now: State) -> Changes:
    """What was edited. Raises GradebookError where a cell is unreadable."""
    old, new = _cells(before), _cells(now)
    came_from = _matched([*map(str, old)], [*map(str, new)])
    cells = {
        (row, name): (old[origin].get(name), new[row].get(name))
        for row, origin in enumerate(came_from)
        if origin is not None
        for name in {**old[origin], **new[row]}
        if old[origin].get(name) != new[row].get(name)
    }
    then, today = before.settings(), now.settings()
    return Changes(
        cells,
        frozenset(n for n in today if then[n] != today[n]),
        came_from,
        len(old) - sum(row is not None for row in came_from),
    )


def _cells(state: State) -> list[dict[str, Any]]:
    columns = state.table.values()
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


def _matched(old: list[str], new: list[str]) -> tuple[int | None, ...]:
    """The place that each new row had among the old ones: by value in another
    order, by position where cells changed, and else by the longest runs of
    rows that stayed."""
    if sorted(old) == sorted(new):
        places: dict[str, list[int]] = {}
        for place, row in enumerate(old):
            places.setdefault(row, []).append(place)
        return tuple(places[row].pop(0) for row in new)
    if len(old) == len(new):
        return tuple(range(len(new)))
    came: list[int | None] = [None] * len(new)
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        came[block.b : block.b + block.size] = range(block.a, block.a + block.size)
    return tuple(came)


def overstepped(edits: Edits, made: Changes) -> str:
    """What was edited beyond what may be, in one sentence; "" if nothing."""
    within = (
        ("any" in edits.settings or made.settings <= {*edits.settings})
        and (edits.add or not made.added)
        and (edits.remove or not made.removed)
        and (edits.reorder or not made.reordered)
        and all(row in edits.rows or not edits.rows for row, _ in made.cells)
        and all({"any", name} & {*edits.columns} for _, name in made.cells)
    )
    if not within:
        return "Something else was edited."
    if edits.most and made.count > edits.most:
        return f"There are {made.count} edits."
    return ""


def allowed(edits: Edits) -> str:
    """What may be edited, as a list after "Allowed:"."""
    ways = []
    if edits.columns:
        rows = " and ".join(", ".join(map(str, edits.rows)).rsplit(", ", 1))
        of = f" of {'row' if len(edits.rows) == 1 else 'rows'} {rows}"
        cells = " and ".join(edits.columns).replace("any", "any cell")
        ways.append(cells + (of if edits.rows else ""))
    if edits.settings:
        some = f"the setting {' or '.join(edits.settings)}"
        ways.append("any setting" if "any" in edits.settings else some)
    ways += ["adding rows"] * edits.add + ["removing rows"] * edits.remove
    ways += ["another order of the rows"] * edits.reorder
    ways += ["one edit at most"] * (edits.most == 1)
    ways += [f"{edits.most} edits at most"] * (edits.most > 1)
    return f"Allowed: {', '.join(ways)}."
