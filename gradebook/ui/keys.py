"""Every key of the session's state, with the type of its value.

A page reads and writes `st.session_state` through these alone, save for the
keys of widgets.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import streamlit as st

if TYPE_CHECKING:
    from gradebook.ui.parts.drafts import Draft

T = TypeVar("T")


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key. Its value is made by `make` where it is first asked for."""

    name: str
    make: Callable[[], T]

    def get(self) -> T:
        """The value in this session."""
        return st.session_state.setdefault(self.name, self.make())

    def put(self, value: T) -> None:
        """Another value."""
        st.session_state[self.name] = value

    def drop(self) -> None:
        """Back to what `make` makes."""
        st.session_state.pop(self.name, None)


DRAFTS: Key[dict[str, Draft]] = Key("drafts", dict)
"""The draft of each case, by the case's name."""
CASES: Key[dict[str, str]] = Key("cases", dict)
"""The case that stands on each page, by the page's name."""
ADDRESS: Key[dict[str, Any]] = Key("address", dict)
"""The page, and its address as it was written last."""
SHOWN: Key[dict[tuple[str, tuple[int, ...]], tuple[int, Any]]] = Key(
    "shown", dict
)
"""Each widget's count of changes from elsewhere, and its last value."""
FIRST: Key[int] = Key("first", lambda: secrets.randbelow(10**6))
"""Where the counts in SHOWN start: a browser that outlived a session sends
the values of its widgets to the next one."""
ROOM: Key[str] = Key("room", str)
"""The code of the room that the session is in, '' for none."""


def widget(key: str) -> Any:
    """The value of the widget with this key, in its callback."""
    return st.session_state[key]
