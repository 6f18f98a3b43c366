"""A batch reduced to the smallest one that still shows its bug.

Greedy delta debugging in a fixed order: whole steps and prompts, rows (with
a smaller group size where the bug reads it), the response masks, the other
columns, then the numbers. A candidate counts only where both engines run
and the same face of the bug is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.faces import (
    Face,
    face_of,
    has_company,
    is_even,
    is_fitting,
    kinds_of,
)
from gradebook.analysis.reductions import REDUCTIONS, Candidates, labels_of
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.columns import whole
from gradebook.cases.state import State
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted

MOST_RUNS = 3000
"""Candidates tried at most; a run of both engines takes about a
millisecond on a dozen rows."""
MOST_SUBSETS = 1200
"""Of those, subsets of rows looked through for the smallest batch."""


@dataclass(frozen=True, eq=False)
class Step:
    """One accepted reduction: the state after it, what was done in a
    sentence, and how many candidates were tried so far."""

    state: State
    sentence: str
    runs: int


def shrink(bug: Swap, state: State) -> Iterator[Step]:
    """Reductions of `state`, each smaller or rounder than the last, that
    keep the face of the bug. None where the batch does not show it.

    Deterministic, of at most MOST_RUNS candidates. Raises GradebookError
    where the batch itself cannot be read.
    """
    comparison = compared(state)
    face = face_of(state, comparison)
    if face is None:
        return
    search = _Search(bug, face, state)
    for _ in range(2):
        yield from _parts(search)
        yield from _rows(search)
        for reduction in REDUCTIONS:
            yield from search.repeat(reduction)


# The search


class _Search:
    """The best state so far, and the count of candidates tried."""

    def __init__(self, bug: Swap, face: Face, state: State) -> None:
        self.face = face
        self.state = state
        self.runs = 0
        self.by_position = bug.stage == "group"
        grouped = "group_size" in state.scenario.controls
        self.resizes = self.by_position and grouped

    def takes(self, state: State) -> State | None:
        """The candidate, taken over where it shows the face too. A
        selected row that left, -1, is replaced by one that shows it."""
        if self.face.pinned and state.row < 0:
            return None
        self.runs += 1
        try:
            found = compared(state)
        except GradebookError:
            return None
        rows = self._showing(found, state.row)
        if not rows or not self._in_shape(found):
            return None
        row = state.row if state.row >= 0 else rows[0]
        self.state = replace(state, row=row)
        return self.state

    def _showing(self, found: Comparison, row: int) -> list[int]:
        """The rows that show the face."""
        face = self.face
        rows = kinds_of(found, face.visible).get((face.kind, face.side), [])
        if self.face.pinned:
            rows = [r for r in rows if r == row]
        if self.face.company:
            rows = [r for r in rows if has_company(found, r)]
        return rows

    def _in_shape(self, found: Comparison) -> bool:
        """Only the bug that cuts by position reads the group size."""
        return not self.by_position or (
            (not self.face.even or is_even(found))
            and (not self.face.fitting or is_fitting(found))
        )

    def first(self, candidates: Iterable[tuple[State, str]]) -> Step | None:
        """The first candidate that keeps the face, taken over."""
        for candidate, sentence in candidates:
            if self.runs >= MOST_RUNS:
                return None
            if state := self.takes(candidate):
                return Step(state, sentence, self.runs)
        return None

    def repeat(
        self, candidates: Callable[[State], Iterable[tuple[State, str]]]
    ) -> Iterator[Step]:
        """Candidates of the state at hand until none is taken."""
        while step := self.first(candidates(self.state)):
            yield step


# Rows


def _parts(search: _Search) -> Iterator[Step]:
    """Whole training steps, then whole prompts, from the last on."""
    yield from search.repeat(lambda state: _without(state, "step"))
    yield from search.repeat(lambda state: _without(state, "prompt"))


def _without(state: State, column: str) -> Candidates:
    if column not in state.table:
        return
    labels = labels_of(state.table, column)
    names = list(dict.fromkeys(labels))
    for block in _blocks(len(names)):
        gone = {names[at] for at in block}
        kept = [r for r, label in enumerate(labels) if label not in gone]
        if kept:
            said = ", ".join(names[at] for at in block)
            if len(block) > 3:
                said = f"{len(block)} {column}s"
            rows = counted(len(labels) - len(kept), "row")
            leave = "leaves" if len(block) == 1 else "leave"
            many = "" if len(block) == 1 else "s"
            if len(block) <= 3:
                said = f"{column.capitalize()}{many} {said}"
            yield _with_rows(state, kept), f"{said} {leave} with {rows}."


def _blocks(count: int) -> Iterator[range]:
    """Neighbours among `count`: halves, quarters, .. single ones, each
    from the end."""
    size = count // 2
    while size:
        for start in reversed(range(0, count, size)):
            yield range(start, min(start + size, count))
        size //= 2


def _with_rows(state: State, kept: list[int]) -> State:
    """Only the rows `kept`; the selected row moves along, to -1 where it
    left."""
    row = kept.index(state.row) if state.row in kept else -1
    return replace(state, table=state.table.take(kept), row=row)


def _rows(search: _Search) -> Iterator[Step]:
    """Blocks of rows, then the smallest subset of what is left, with a
    smaller group size where one is read."""
    yield from search.repeat(lambda state: _thinned(search, state))
    yield from _smallest(search)


def _sizes(search: _Search, state: State, rows: int) -> list[str]:
    """Group sizes to try, as typed: the one at hand, then smaller ones."""
    typed = str(state.typed.get("group_size", ""))
    if not search.resizes or not typed.strip():
        return [typed]
    size = whole(typed)
    smaller = range(min(size - 1, rows), 1, -1)
    return [typed, *map(str, smaller)]


def _resized(state: State, size: str) -> State:
    if size == str(state.typed.get("group_size", "")):
        return state
    return replace(state, typed={**state.typed, "group_size": size})


def _thinned(search: _Search, state: State) -> Candidates:
    """A block of rows fewer, at each group size."""
    every = range(state.rows)
    for dropped in _blocks(len(every)):
        kept = [row for row in every if row not in dropped]
        for size in _sizes(search, state, len(kept)):
            thinner = _resized(_with_rows(state, kept), size)
            yield thinner, _left(state, thinner)


def _left(before: State, after: State) -> str:
    gone = before.rows - after.rows
    said = f"{counted(gone, 'row').capitalize()} less"
    size = after.typed.get("group_size", "")
    if size != before.typed.get("group_size", ""):
        said += f", in groups of {size}"
    return f"{said}: {after.rows} are enough."


def _smallest(search: _Search) -> Iterator[Step]:
    """The smallest subset of the rows, looked for from 2 rows up."""
    stop = min(search.runs + MOST_SUBSETS, MOST_RUNS)
    state = search.state
    for count in range(1, state.rows):
        for candidate in _subsets(search, state, count):
            if search.runs >= stop:
                return
            if smaller := search.takes(candidate):
                yield Step(smaller, _left(state, smaller), search.runs)
                return


def _subsets(search: _Search, state: State, count: int) -> Iterator[State]:
    """The subsets of `count` rows, at each group size."""
    pinned = search.face.pinned
    among = [r for r in range(state.rows) if not pinned or r != state.row]
    sizes = _sizes(search, state, count)
    for rest in combinations(among, count - pinned):
        kept = sorted((*rest, state.row) if pinned else rest)
        for size in sizes:
            yield _resized(_with_rows(state, kept), size)
