"""The states of a case that undo and redo go through."""

from dataclasses import dataclass
from typing import Any

from gradebook.cases.state import State

MOST_STATES = 200
"""States that are remembered. They share the columns that are equal, so that one costs
little more than the cell that changed; nobody goes back further."""


@dataclass
class History:
    """The states of one case.

    states  the case as it came, which is never forgotten, and what became of it
    at      the number of the current state
    """

    states: list[State]
    at: int = 0
    _gesture: Any = None

    @property
    def state(self) -> State:
        """The current state."""
        return self.states[self.at]

    def add(self, state: State, gesture: Any = None) -> None:
        """Makes `state` the current one, and forgets what was undone.

        Edits of one `gesture`, such as the moves of a drag, are one step: the later
        state takes the place of the earlier one. A state with another selected row
        alone is no step.
        """
        if gesture is not None and gesture == self._gesture:
            del self.states[self.at :]
            self.at -= 1
        if state.same_batch(self.state):
            self.replace(state)
            self._gesture = None
            return
        self.states[self.at + 1 :] = [state]
        excess = max(len(self.states) - MOST_STATES, 0)
        del self.states[1 : 1 + excess]
        self.at = len(self.states) - 1
        self._gesture = gesture

    def replace(self, state: State) -> None:
        """Puts `state` in the place of the current one."""
        self.states[self.at] = state

    def go(self, number: int) -> None:
        """Makes the state number `number` the current one, or the nearest."""
        self.at = max(0, min(number, len(self.states) - 1))
        self._gesture = None
