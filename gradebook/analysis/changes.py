"""What differs between two states of one scenario, and what may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from gradebook.cases.challenge import Edits
from gradebook.cases.state import State


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
    old, new = _rows(before), _rows(now)
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


def _rows(state: State) -> list[dict[str, Any]]:
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
