"""An attempt at a challenge: the case as it came, and what was made of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.challenge import Edits
from gradebook.cases.fields import SWITCHES
from gradebook.cases.record import bug
from gradebook.cases.state import State, start
from gradebook.core.batch import Batch

Row = Mapping[str, Any]


class Attempt:
    """A state of a scenario, beside the state in which it came.

    `comparison` is both engines on the state; without it they run when it is
    asked for. Raises GradebookError where the state cannot be read or run.
    """

    def __init__(self, now: State, comparison: Comparison | None = None):
        self.now = now
        self.before = start(now.scenario)
        self.bug = bug(now.scenario.bug)
        if comparison is not None:
            self.comparison = comparison

    @cached_property
    def batch(self) -> Batch:
        """The batch now."""
        known = self.__dict__.get("comparison")
        return known.batch if known is not None else self.now.batch()

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


@dataclass(frozen=True)
class Changes:
    """What differs between two states of one scenario, by value: 100 and
    100.0 are the same.

    cells      (row, column) -> the value before and now
    settings   names of settings that changed
    switches   names of switches that changed
    came_from  the number that each row had before, None for a new row
    removed    how many rows are gone
    """

    cells: Mapping[tuple[int, str], tuple[Any, Any]]
    settings: frozenset[str]
    switches: frozenset[str]
    came_from: tuple[int | None, ...]
    removed: int

    @property
    def added(self) -> int:
        """How many rows are new."""
        return self.came_from.count(None)

    @property
    def reordered(self) -> bool:
        """Rows that stayed stand in another order."""
        kept = [row for row in self.came_from if row is not None]
        return kept != sorted(kept)

    @property
    def count(self) -> int:
        """How many edits there are."""
        rows = self.added + self.removed
        return len(self.cells) + len(self.settings) + rows


def changes(before: State, now: State) -> Changes:
    """What was edited. Raises GradebookError where a cell is unreadable."""
    old, new = _rows(before), _rows(now)
    came_from = _matched(list(map(_key, old)), list(map(_key, new)))
    cells = {
        (row, name): (old[was].get(name), new[row].get(name))
        for row, was in enumerate(came_from)
        if was is not None and old[was] != new[row]
        for name in {*old[was], *new[row]}
        if old[was].get(name) != new[row].get(name)
    }
    then, today = before.settings(), now.settings()
    kept = len(came_from) - came_from.count(None)
    return Changes(
        cells,
        frozenset(n for n in today if then[n] != today[n]),
        frozenset(n for n in SWITCHES if getattr(before, n) != getattr(now, n)),
        came_from,
        len(old) - kept,
    )


def _rows(state: State) -> list[Row]:
    columns = state.table.values()
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


def _key(row: Row) -> Hashable:
    return repr(sorted(row.items()))


def _matched(old: list[Hashable], new: list[Hashable]) -> tuple[int | None, ...]:
    """Where each new row stood among the old ones.

    Rows in another order are matched by value, as many rows as before by
    position, and after adding or removing the equal rows in order.
    """
    if old == new:
        return tuple(range(len(new)))
    if len(old) == len(new):
        if sorted(map(str, old)) != sorted(map(str, new)):
            return tuple(range(len(new)))
        places: dict[Hashable, list[int]] = {}
        for place, key in enumerate(old):
            places.setdefault(key, []).append(place)
        return tuple(places[key].pop(0) for key in new)
    came: list[int | None] = [None] * len(new)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for block in matcher.get_matching_blocks():
        for at in range(block.size):
            came[block.b + at] = block.a + at
    return tuple(came)


def overstepped(edits: Edits, made: Changes) -> str:
    """What was edited beyond what may be, in one sentence; "" if nothing."""
    within = (
        not made.switches
        and ("any" in edits.settings or made.settings <= {*edits.settings})
        and (edits.add or not made.added)
        and (edits.remove or not made.removed)
        and (edits.reorder or not made.reordered)
        and all(_may_change(edits, row, name) for row, name in made.cells)
    )
    if not within:
        return "Something else was edited."
    if edits.most and made.count > edits.most:
        return f"There are {made.count} edits."
    if edits.alike and not _alike(made):
        return "The rows changed by different numbers."
    return ""


def allowed(edits: Edits) -> str:
    """What may be edited, as a list after "Allowed:"."""
    ways = []
    if edits.columns:
        names = " and ".join(edits.columns).replace("any", "any cell")
        ways.append(names + _of(edits.rows))
    if edits.settings:
        named = "any setting", f"the setting {' or '.join(edits.settings)}"
        ways.append(named["any" not in edits.settings])
    ways += ["adding rows"] * edits.add + ["removing rows"] * edits.remove
    ways += ["another order of the rows"] * edits.reorder
    ways += ["one edit at most"] * (edits.most == 1)
    ways += [f"{edits.most} edits at most"] * (edits.most > 1)
    ways += ["every row by the same number"] * edits.alike
    return f"Allowed: {', '.join(ways)}."


def _of(rows: tuple[int, ...]) -> str:
    """' of row 8', ' of rows 0 to 3', ' of rows 1 and 4', or ''."""
    if not rows:
        return ""
    if len(rows) == 1:
        return f" of row {rows[0]}"
    first, *_, last = rows
    if len(rows) > 2 and rows == tuple(range(first, last + 1)):
        return f" of rows {first} to {last}"
    return f" of rows {', '.join(map(str, rows[:-1]))} and {last}"


def _may_change(edits: Edits, row: int, name: str) -> bool:
    if edits.rows and row not in edits.rows:
        return False
    return "any" in edits.columns or name in edits.columns


def _alike(made: Changes) -> bool:
    """Each column that changed did so by one number in every row."""
    steps: dict[str, list[float]] = {}
    for (_, name), (was, now) in made.cells.items():
        steps.setdefault(name, []).append(now - was)
    rows = len(made.came_from)
    return all(
        len(found) == rows and max(found) - min(found) < 1e-9
        for found in steps.values()
    )
