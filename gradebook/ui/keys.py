"""Every key of the session's state, with the type of its value. Types are Any if
importing them would create a cycle. Pages read and write `st.session_state` through
these keys and the keys of widgets.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

T = TypeVar("T")


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key. `make` creates its value when it is first read."""

    name: str
    make: Callable[[], T]

    def get(self) -> T:
        state = st.session_state
        if self.name not in state:
            state[self.name] = self.make()
        return state[self.name]

    def put(self, value: T) -> None:
        st.session_state[self.name] = value

    def drop(self) -> None:
        """Resets the value to a new one from `make`."""
        st.session_state.pop(self.name, None)


DRAFTS: Key[dict[str, Any]] = Key("drafts", dict)
"""By the case's name."""
CASES: Key[dict[str, str]] = Key("cases", dict)
"""The case that each page shows, by the page's name."""
QUIZ: Key[Any] = Key("quiz", lambda: None)
MYSTERY: Key[Any] = Key("mystery", lambda: None)
CHECKING: Key[Any] = Key("checking", lambda: None)
"""The visitor's own games, and the log that the session checks."""
ADDRESS: Key[dict[str, Any]] = Key("address", dict)
"""The page, and its address as last written."""
SHOWN: Key[dict[str, tuple[int, Any]]] = Key("shown", dict)
"""Each widget's count of changes from elsewhere, and its last value."""
ROOM: Key[str | None] = Key("room", lambda: None)
"""The code of the session's room, '' for none; None until the rooms were asked."""
ROOM_PROBLEM: Key[str] = Key("room-problem", str)
"""What went wrong with a room, until it is shown."""
LEAD_KEY: Key[str] = Key("room-lead", str)
"""The key in the lead's own link, once it was made here."""
LEAD_NOTES: Key[bool] = Key("room-notes-here", bool)
"""This browser came by the lead's own link: nobody else sees it."""
SEEN: Key[Any] = Key("room-seen", lambda: None)
"""Where the learner was taken last; True where the learner asks to be taken."""
SHORTCUTS: Key[dict[str, Any]] = Key(
    "shortcut-keys", lambda: {"epoch": secrets.token_hex(4), "seen": 0}
)
"""The epoch of the session's key presses, and the last one that was taken."""
OPENED: Key[str] = Key("opened", str)
"""What another page has just opened on a bug's page, until the page has shown it."""


READ: Key[dict[str, int]] = Key("read", dict)
"""By bug, the line that was chosen in its reading exercise."""
UNNAMED: Key[dict[str, str]] = Key("unnamed", dict)
"""The batches without a name that are open: by the bug whose challenge was solved, or
"again" and "checkpoint" at a page's end."""


def widget(key: str) -> Any:
    """The value of the widget with this key; None before it was drawn."""
    return st.session_state.get(key)


def show(key: str, value: Any) -> None:
    """Sets the value that the widget with this key shows when it is drawn next."""
    st.session_state[key] = value
