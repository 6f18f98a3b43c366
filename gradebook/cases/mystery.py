"""Mystery trainer: a seed hides a bug, and edits bring it out.

The link of a game is its seed and its edits, one after the other. Neither
says which bug it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from gradebook.bugs import BUGS
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
from gradebook.cases.scenario import FOLDER
from gradebook.cases.state import State, start
from gradebook.cases.toml_file import read_part
from gradebook.core.errors import GradebookError, refuse

FILE = FOLDER / "games" / "mystery.toml"
NONE = ""
"""Stands for the trainer without a bug."""
MOST_MOVES = 200


@cache
def first_state() -> State:
    """The batch with which every game begins. Raises GradebookError where
    the file cannot be read."""
    return start(read_part(PlainCase, FILE, name="mystery").as_scenario())


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
    """The states of a game from its first on, up to the first edit that
    cannot be understood, and a sentence for that one. Never raises."""
    states = [first_state()]
    try:
        moves = unpacked(text) if text else []
        if not isinstance(moves, list) or len(moves) > MOST_MOVES:
            raise refuse(f"at most {MOST_MOVES} edits", moves)
        for move in moves:
            states.append(_moved(states[-1], move))
    except GradebookError as error:
        then = "the game stands as it was before"
        place = f"m{error.key}"[:40]
        return states, (in_words(place, error.expected, error.found, then),)
    return states, ()


def _moved(state: State, move: Any) -> State:
    """The state after a move. Raises GradebookError with its place."""
    if not isinstance(move, dict):
        raise refuse("an edit", move)
    written, typed = move.get("s", {}), dict(state.typed)
    if not isinstance(written, dict):
        raise refuse("settings by name", written, ".s")
    for name, text in written.items():
        if name not in SETTINGS or not isinstance(text, str):
            raise refuse("settings by name", name, ".s")
        try:
            typed[name] = FIELDS[name].parse(text)
        except GradebookError as error:
            raise error.at(key=f".s.{name}") from None
    cells = {key: value for key, value in move.items() if key != "s"}
    table = laid_over(cells, state.table)
    row = min(state.row, max(len(table) - 1, 0))
    return replace(state, table=table, typed=typed, row=row)
