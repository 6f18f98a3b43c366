"""The learner's draft of a case: its state, the states before, and the
messages that a browser sends about it.

A message is a dict, {"epoch": .., "edits": [edit, ..]}. An edit is a dict
too: "n" counts the browser's edits, "do" names one of ACTS, and the other
keys are that act's. An edit is carried out once, whatever comes late or
twice. Edits of one "gesture", such as a drag, are one step of undo.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gradebook.cases import edits
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import State, said, start
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError

HISTORY = 200
"""States that a draft remembers at most."""
CELLS = 200_000
"""Cells in them at most, at the size of the batch now, but for three states."""


@dataclass
class Draft:
    """The states of one case in one session.

    states   the case as it came first; `at` is the one on the page
    epoch    new for each draft and known to its learner alone: messages about
             another one change nothing
    ack      the number of the last edit that was taken
    notes    why the last edit could not be carried out, in words
    refused  text that could not be read, and why, by its place: "3 reward" for
             a cell, the name of a setting. It stays in its field until the
             place is edited again or rows move.
    lock     held by whoever changes the draft, or reads it more than once,
             since edits arrive while a page is drawn
    """

    scenario: Scenario
    states: list[State] = field(default_factory=list, init=False)
    at: int = 0
    epoch: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    ack: int = 0
    notes: list[str] = field(default_factory=list)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    lock: threading.RLock = field(
        default_factory=threading.RLock, repr=False, compare=False
    )
    _gesture: int | None = None

    def __post_init__(self) -> None:
        self.states = [self.origin]

    @property
    def origin(self) -> State:
        """The case as it came."""
        return start(self.scenario)

    @property
    def state(self) -> State:
        """What stands on the page now."""
        return self.states[self.at]

    @property
    def table(self) -> Table:
        """The batch as a table."""
        return self.state.table

    @property
    def row(self) -> int:
        """The selected row."""
        return self.state.row

    @property
    def edited(self) -> bool:
        """The state is not the case as it came."""
        return not self.state.same_batch(self.origin)

    def edit(self, **changes: Any) -> None:
        """The next state; one that changes the batch can be undone."""
        self.become(replace(self.state, **changes))

    def become(self, state: State, gesture: int | None = None) -> None:
        """Another state of the same case. It takes the place of the one
        before where both belong to one gesture. Raises GradebookError where
        it is no valid batch."""
        state.batch()
        with self.lock:
            if gesture is not None and gesture == self._gesture:
                del self.states[self.at :]
                self.at -= 1
            self.notes = []
            if state.same_batch(self.state):
                self.states[self.at] = state
                self._gesture = None
                return
            del self.states[self.at + 1 :]
            self.states.append(state)
            size = len(state.table) * (len(state.table.columns) + state.table.width)
            most = max(3, min(HISTORY, CELLS // max(size, 1)))
            del self.states[1 : max(len(self.states) - most, 0) + 1]
            self.at = len(self.states) - 1
            self._gesture = gesture

    def do(
        self, act: Callable[..., State], *values: Any, gesture: int | None = None
    ) -> None:
        """Carries out an act of gradebook.cases.edits on the state, or says
        in `notes` why it cannot be done. Refused text is kept."""
        place = " ".join(map(str, values[:-1])) if act in TYPED else ""
        try:
            self.become(act(self.state, *values), gesture)
        except GradebookError as error:
            self.notes = [said(error)]
            if place:
                self.refused[place] = str(values[-1]), self.notes[0]
            return
        self.refused.pop(place, None)
        if act in MOVING:
            self.refused.clear()

    def select(self, row: int) -> None:
        """Another row is selected, as near as there is one."""
        with self.lock:
            self.states[self.at] = edits.select(self.state, row)

    def go(self, number: int) -> None:
        """The state number `number` of the history, or the nearest."""
        with self.lock:
            self.at = max(0, min(number, len(self.states) - 1))
            self._gesture = None
            self.notes = []
            self.refused.clear()

    def undo(self) -> None:
        """The state before."""
        self.go(self.at - 1)

    def redo(self) -> None:
        """The state that was undone last."""
        self.go(self.at + 1)

    def reset(self) -> None:
        """The case as it came, as one more edit."""
        self.become(self.origin)
        self.refused.clear()

    def apply(self, message: Any) -> None:
        """Carries out the edits of a message that were not taken yet. Never
        raises: what cannot be carried out is said in `notes`."""
        if not isinstance(message, Mapping) or message.get("epoch") != self.epoch:
            return
        sent = message.get("edits")
        with self.lock:
            for edit in sent if isinstance(sent, list) else []:
                number = edit.get("n") if isinstance(edit, Mapping) else None
                if type(number) is int and number > self.ack:
                    self.ack = number
                    self._take(edit)

    def _take(self, edit: Mapping[str, Any]) -> None:
        name, gesture = str(edit.get("do")), edit.get("gesture")
        act, keys = ACTS.get(name, (None, ["do"]))
        values = [edit.get(key) for key in keys]
        if any(type(value) not in KINDS[key] for key, value in zip(keys, values)):
            self.notes = ["The browser sent an edit that the server does not know."]
        elif act is None:
            getattr(self, name)(*values)
        else:
            self.do(act, *values, gesture=gesture if type(gesture) is int else None)


TYPED = (edits.set_cell, edits.set_setting)
"""Acts with text that a person typed; its place stands before it."""
MOVING = (
    edits.add_row,
    edits.remove_row,
    edits.move_row,
    edits.paste,
    edits.replace_rows,
)
"""Acts after which a row's number may mean another row."""

KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("row", "to", "start", "stop", "at"), (int,)),
    **dict.fromkeys(("column", "text"), (str,)),
    "value": (str, bool),
    "do": (),
}
"""The types of what an edit holds."""
ACTS: Mapping[str, tuple[Callable[..., State] | None, list[str]]] = {
    "cell": (edits.set_cell, ["row", "column", "value"]),
    "mask": (edits.set_mask, ["row", "start", "stop", "value"]),
    "add": (edits.add_row, ["row"]),
    "remove": (edits.remove_row, ["row"]),
    "move": (edits.move_row, ["row", "to"]),
    "paste": (edits.paste, ["row", "column", "text"]),
    "replace": (edits.replace_rows, ["text"]),
    "select": (None, ["row"]),
    "go": (None, ["at"]),
    "undo": (None, []),
    "redo": (None, []),
    "reset": (None, []),
}
"""What a browser may do, and what each act is given, in the order of its
function; without a function it is a method of the draft."""
