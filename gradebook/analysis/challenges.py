"""Challenges: what a learner tries on a batch, and whether it is solved."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison, compare, push
from gradebook.analysis.laws import listed
from gradebook.bugs import swapped
from gradebook.cases import case, edits
from gradebook.cases.state import State, start
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST, minus, settled
from gradebook.engine.grouping import credited
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.segments import by_group


class Attempt:
    """A state and its changes since the original case. What a condition does not ask
    for is not worked out.

    comparison  both engines on `now`, if they already ran
    """

    def __init__(self, now: State, comparison: Comparison | None = None):
        self.bug, self.now = swapped(now.scenario.bugs), now
        self.before, self.ready = start(now.scenario), comparison

    @cached_property
    def batch(self) -> Batch:
        return self.ready.batch if self.ready else self.now.batch()

    @cached_property
    def changes(self) -> "Changes":
        return changes(self.before, self.now)

    @cached_property
    def comparison(self) -> Comparison:
        return self.ready or compare(self.bug, self.batch)

    def shift(self, side: str) -> Tensor:
        """How far an engine's advantages moved since the original case."""
        now = getattr(self.comparison, side).advantage
        before = getattr(compare(self.bug, self.before.batch()), side).advantage
        rows = self.changes.came_from
        then = [math.nan if row is None else float(before[row]) for row in rows]
        return (now - torch.tensor(then, dtype=now.dtype)).abs()

    def push(self, side: str) -> Tensor:
        """An engine's push on each token. float [R, T]; NaN without logp."""
        pushes = push(self.batch, getattr(self.comparison, side))
        return torch.full((self.batch.rows, 1), math.nan) if pushes is None else pushes

    def ratio(self) -> Tensor:
        correct = self.comparison.correct.advantage
        ratio = self.comparison.faulty.advantage / correct
        return ratio.where(correct.abs() > DUST, torch.nan)

    def loss_ratio(self) -> Tensor | float:
        correct, faulty = self.comparison.correct.loss, self.comparison.faulty.loss
        return math.nan if correct is None or faulty is None else faulty / correct


def missing(challenge: case.Challenge, attempt: Attempt) -> str:
    """Why the attempt does not solve its scenario's challenge, in one sentence; "" if
    it does."""
    sentence = overstepped(challenge.edits, attempt.changes) if challenge.edits else ""
    try:
        for condition in challenge.solved:
            sentence = sentence or missing_of(condition, attempt)
    except GradebookError:
        return "An engine cannot compute this batch."
    return sentence


def apply_solution(state: State, changes: Sequence[case.Change]) -> State:
    """The state after the changes, in order. Raises GradebookError for a row that is
    not there."""
    for change in changes:
        if change.remove_row is not None:
            state = edits.remove_row(state, change.remove_row)
        else:
            table, settings = change.applied(state.table, state.settings)
            state = replace(state, table=table, settings=settings)
    return state


def rows_of(rows: tuple[int, ...] | str, batch: Batch) -> list[int]:
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


QUANTITIES: Mapping[str, tuple[str, Callable[[Attempt], Tensor | float]]] = {
    "correct": ("correct advantage", lambda a: a.comparison.correct.advantage),
    "faulty": ("faulty advantage", lambda a: a.comparison.faulty.advantage),
    "correct size": ("correct size", lambda a: a.comparison.correct.advantage.abs()),
    "faulty size": ("faulty size", lambda a: a.comparison.faulty.advantage.abs()),
    "correct push": ("correct push", lambda a: a.push("correct")),
    "faulty push": ("faulty push", lambda a: a.push("faulty")),
    "correct shift": ("correct shift", lambda a: a.shift("correct")),
    "faulty shift": ("faulty shift", lambda a: a.shift("faulty")),
    "ratio": ("ratio of faulty to correct", Attempt.ratio),
    "reward": ("reward", lambda a: a.batch.reward),
    "tokens": ("number of tokens", lambda a: a.batch.tokens),
    "eos": ("EOS", lambda a: a.batch.eos.double()),
    "kept_steps": ("number of kept_steps", lambda a: a.batch.kept_steps),
    "pieces": (
        "number of rows of the rollout",
        lambda a: torch.bincount(a.batch.rollout_index)[a.batch.rollout_index],
    ),
    "rows": ("number of rows", lambda a: a.batch.rows),
    "correct trains": (
        "number of rows that the correct engine trains",
        lambda a: int(a.comparison.correct.trained.sum()),
    ),
    "loss ratio": ("ratio of the faulty loss to the correct one", Attempt.loss_ratio),
}
"""What bounds are about: in words, and its value for each token, for each row or for
the batch; NaN if there is none."""


def by_row(values: Tensor, token: int, batch: Batch) -> list[float]:
    """A quantity's value on each row: of a quantity by token, the value of `token`; NaN
    without it."""
    if values.dim() < 2:
        return values.expand(batch.rows).tolist()
    if token >= values.shape[1]:
        return [math.nan] * batch.rows
    return values[:, token].where(batch.mask[:, token], math.nan).tolist()


class Measured(NamedTuple):
    """How a batch meets bounds: the row that decides them with its value, how far that
    is outside, and on how many of the rows they hold."""

    row: int
    value: float
    outside: float
    met: int
    rows: int


def measured(condition: case.Bounds, attempt: Attempt) -> Measured | None:
    """The row that decides: the one furthest outside the bounds if every row has to
    be inside, else the nearest. None if no row has the quantity."""
    _, measure = QUANTITIES[condition.of]
    values = by_row(torch.as_tensor(measure(attempt)), condition.token, attempt.batch)
    least, most = condition.least, condition.most

    def outside(value: float) -> float:
        """How far the value is outside the bounds; 0 inside."""
        low = value if least is None else least
        high = value if most is None else most
        gap = max(low - value, value - high)
        if condition.among:
            gap = max(gap, min(abs(value - target) for target in condition.among))
        return gap if gap > DUST * max(1.0, abs(low), abs(high)) else 0.0

    distances = [
        (outside(values[row]), row)
        for row in rows_of(condition.rows, attempt.batch)
        if not math.isnan(values[row])
    ]
    if not distances:
        return None
    far, row = (max if condition.every else min)(distances)
    met = sum(distance <= 0 for distance, _ in distances)
    return Measured(row, values[row], far, met, len(distances))


def _bounds(condition: case.Bounds, attempt: Attempt) -> str:
    words, _ = QUANTITIES[condition.of]
    measure = measured(condition, attempt)
    if measure is None:
        return f"No row has a {words}."
    if measure.outside <= 0:
        return ""
    where = "" if condition.of in case.OF_BATCH else f" of row {measure.row}"
    if condition.of in case.OF_TOKENS:
        where += f", token {condition.token},"
    return minus(f"The {words}{where} is {settled(measure.value):.4g}.")


def missing_of(condition: case.Condition, attempt: Attempt) -> str:
    """Why a condition does not hold, in one sentence; "" if it does."""
    if isinstance(condition, case.Bounds):
        return _bounds(condition, attempt)
    if isinstance(condition, case.Crash):
        return _no_crash(attempt)
    if isinstance(condition, case.Equal):
        return _no_equality(condition, attempt.batch)
    if isinstance(condition, case.Agree):
        return _no_agreement(condition, attempt.comparison)
    return _no_difference(condition, attempt)


def _no_crash(attempt: Attempt) -> str:
    run(CORRECT, attempt.batch)
    try:
        run(attempt.bug.engine, attempt.batch)
    except GradebookError:
        return ""
    return "The faulty engine still runs."


def _no_equality(condition: case.Equal, batch: Batch) -> str:
    places = {
        "batch": torch.zeros(batch.rows),
        "prompt": batch.prompt_index,
        "rollout": batch.rollout_index,
    }[condition.within].tolist()
    values = getattr(batch, condition.column).tolist()
    rows = rows_of(condition.rows, batch)
    # One value in each place, if there are as many pairs as places.
    pairs = {(places[row], values[row]) for row in rows}
    are_equal = len(pairs) == len({places[row] for row in rows})
    if are_equal == condition.equal:
        return ""
    kind = "different values in one" if condition.equal else "equal values in each"
    return f"The column {condition.column} has {kind} {condition.within}."


def _no_agreement(condition: case.Agree, both: Comparison) -> str:
    gap = (both.correct.advantage - both.faulty.advantage).abs().nan_to_num().max()
    is_near = condition.within is not None and bool(gap <= condition.within)
    if both.agree or is_near:
        return ""
    if both.differs("advantage").any():
        part = "advantage"
    elif both.differs("token_advantage").any():
        part = "advantage of a token"
    else:
        part = "gradient"
    return f"The engines still differ in the {part}."


def _no_difference(condition: case.Differ, attempt: Attempt) -> str:
    differs = attempt.comparison.differs(condition.of)
    if any(differs[row] for row in rows_of(condition.rows, attempt.batch)):
        return ""
    return f"Both engines give these rows the same {condition.of}."


# What differs between two states of one scenario, and what may differ


class Changes(NamedTuple):
    """What differs between two states. Values are compared: 100 and 100.0 are equal.

    cells      (row, column) of each changed cell
    settings   names of the changed settings
    came_from  each row's number before the change; None for a new row
    removed    how many rows were removed
    """

    cells: set[tuple[int, str]]
    settings: set[str]
    came_from: tuple[int | None, ...]
    removed: int


def changes(before: State, now: State) -> Changes:
    old, new = (
        [dict(zip(columns, cells)) for cells in zip(*columns.values())]
        for columns in (before.table.values(), now.table.values())
    )
    came_from = matched([*map(str, old)], [*map(str, new)])
    cells: set[tuple[int, str]] = set()
    for row, origin in enumerate(came_from):
        if origin is not None:
            was, is_now = old[origin], new[row]
            names = was.keys() | is_now.keys()
            cells |= {(row, n) for n in names if was.get(n) != is_now.get(n)}
    settings = {n for n in now.settings if before.settings[n] != now.settings[n]}
    removed = len(old) - len(new) + came_from.count(None)
    return Changes(cells, settings, came_from, removed)


def matched(old: list[str], new: list[str]) -> tuple[int | None, ...]:
    """The old place of each new row, None if it is new. Rows that were only reordered
    are matched by value. If cells changed, rows are matched by position; if rows were
    added or removed, by the longest runs of equal rows."""
    places = range(len(new))
    came: list[int | None] = [*places]
    if sorted(old) == sorted(new):
        before, after = (sorted(places, key=rows.__getitem__) for rows in (old, new))
        for place, origin in zip(after, before):
            came[place] = origin
    elif len(old) != len(new):
        came = [None] * len(new)
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for block in matcher.get_matching_blocks():
            kept = range(block.a, block.a + block.size)
            came[block.b : block.b + block.size] = kept
    return tuple(came)


def overstepped(edits: case.Edits, differences: Changes) -> str:
    """Which edit the challenge does not allow, in one sentence; "" if there is none."""
    cells, settings = differences.cells, differences.settings
    added, removed = differences.came_from.count(None), differences.removed
    survivors = [row for row in differences.came_from if row is not None]
    columns = {column for _, column in cells}
    rows = {row for row, _ in cells}
    within = (
        "any" in edits.settings or settings <= {*edits.settings},
        "any" in edits.columns or columns <= {*edits.columns},
        not edits.rows or rows <= {*edits.rows},
        edits.add or not added,
        edits.remove or not removed,
        edits.reorder or survivors == sorted(survivors),
    )
    if not all(within):
        return "There is an edit that this challenge does not allow."
    count = len(cells) + len(settings) + added + removed
    return f"There are {count} edits." if 0 < edits.most < count else ""


def allowed(edits: case.Edits) -> str:
    """What a challenge allows, as a list after "Allowed:"."""
    cells = " and ".join(edits.columns).replace("any", "any cell")
    if edits.columns and edits.rows:
        cells += f" of {listed([*edits.rows])}"
    setting = f"the setting {' or '.join(edits.settings)}" * bool(edits.settings)
    most = "one edit" if edits.most == 1 else f"{edits.most} edits"
    ways = [
        cells,
        "any setting" if "any" in edits.settings else setting,
        "adding rows" * edits.add,
        "removing rows" * edits.remove,
        "another order of the rows" * edits.reorder,
        f"{most} at most" * bool(edits.most),
    ]
    return f"Allowed: {', '.join(filter(None, ways))}."
