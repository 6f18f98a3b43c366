"""Mystery trainer: a seed hides a bug, and edits bring it out.

The link of a game is its seed and its edits, one after the other. Neither
says which bug it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any

from gradebook.bugs import BUGS
from gradebook.cases.case import SettingsTable
from gradebook.cases.fields import FIELDS, SETTINGS
from gradebook.cases.link import in_words
from gradebook.cases.packed_table import (
    differences,
    laid_over,
    packed,
    unpacked,
)
from gradebook.cases.plain import PlainCase
from gradebook.cases.record import bug
from gradebook.cases.rows import Rows
from gradebook.cases.scenario import FOLDER
from gradebook.cases.schema import Count, Part, Text, between
from gradebook.cases.state import State, start
from gradebook.cases.toml_file import read_part
from gradebook.core.errors import GradebookError, refuse, shown

FILE = FOLDER / "games" / "mystery.toml"
NONE = ""
"""Stands for the trainer without a bug."""
MOST_MOVES = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class StartFile(Part):
    """The keys of the file with the batch that every game begins with."""

    title: Text
    rows: Rows
    settings: SettingsTable
    controls: Annotated[tuple[Text, ...], between(1)]
    focus: Count = 0


@cache
def first_state() -> State:
    """The batch with which every game begins. Raises GradebookError where
    the file cannot be read."""
    found = read_part(StartFile, FILE)
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return start(PlainCase(name="mystery", **values).as_scenario())


@cache
def suspects() -> tuple[str, ...]:
    """What a game may hide: no bug, and every bug that advantages show."""
    return (NONE, *(name for name in BUGS if bug(name).in_advantages))


def hidden(seed: str) -> str:
    """The bug that the seed hides, or NONE.

    Each suspect draws a number from the seed and the highest wins. So a bug
    that is added later changes few old games.
    """

    def drawn(name: str) -> str:
        return hashlib.sha256(f"{seed}\nmystery\n{name}".encode()).hexdigest()

    return max(suspects(), key=drawn)


def stage_of(name: str) -> str:
    """The stage in which the bug is, or NONE."""
    return bug(name).stage if name else NONE


# Edits as a link


def pack_moves(states: Sequence[State]) -> str:
    """The states as text, each by its differences from the one before; ''
    where there is only the first."""
    moves = [_move(a, b) for a, b in zip(states, states[1:])]
    return packed(moves) if moves else ""


def _move(before: State, after: State) -> dict[str, Any]:
    found = differences(after.table, before.table)
    typed = {
        name: FIELDS[name].format(after.typed[name])
        for name in SETTINGS
        if after.typed[name] != before.typed[name]
    }
    return found | ({"s": typed} if typed else {})


def unpack_moves(text: str) -> tuple[list[State], tuple[str, ...]]:
    """The states of a game from its first on, and a sentence for all that
    cannot be understood. Never raises."""
    states, said = [first_state()], []

    def wrong(expected: str, found: str, place: str) -> None:
        said.append(in_words("m" + place, expected, found, "it is left out"))

    if not text:
        return states, ()
    try:
        moves = unpacked(text)
    except GradebookError as error:
        wrong(error.expected, error.found, "")
        return states, tuple(said)
    if not isinstance(moves, list) or len(moves) > MOST_MOVES:
        wrong(f"at most {MOST_MOVES} edits", shown(moves), "")
        return states, tuple(said)
    for move in moves:
        state = states[-1]
        known = dict(move) if isinstance(move, dict) else {}
        typed = _typed(known.pop("s", {}), state.typed, wrong)
        table = laid_over(known, state.table, wrong)
        row = min(state.row, max(len(table) - 1, 0))
        states.append(replace(state, table=table, typed=typed, row=row))
    return states, tuple(said[:3])


def _typed(
    written: Any, before: Mapping[str, Any], wrong: Any
) -> dict[str, Any]:
    """The settings with those that a move names."""
    found = dict(before)
    if not isinstance(written, dict):
        wrong("settings by name", shown(written), ".s")
        return found
    for name, text in written.items():
        try:
            if name not in SETTINGS or not isinstance(text, str):
                raise refuse("settings by name", name)
            found[name] = FIELDS[name].parse(text)
        except GradebookError as error:
            wrong(error.expected, error.found, f".s.{name}"[:40])
    return found
