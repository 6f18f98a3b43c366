"""Widgets that show a part of the session's state, and change it.

A browser sends all of its widgets' values with each message, also those
that the server has changed meanwhile and those that it only shows. So a
widget gets a new key each time something else than itself changed what it
shows, and a value that the old one merely showed is no edit. What it shows
is its default, never set over the browser's value: that would undo what was
typed since, and is lost where two answers come at once.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import pandas as pd
import streamlit as st


def showing(
    name: str,
    value: Any,
    then: Callable[[Any], None],
    *about: int,
    default: str = "value",
) -> dict[str, Any]:
    """Arguments for the widget `name` that shows `value`: its key, its
    default, and what it calls, which hands another value to `then`.

    about    what the widget is of, such as a row: each has its own
    default  the argument of the widget that takes what it shows
    """
    key = place(name, value, *about)

    def heard() -> None:
        chosen = st.session_state[key]
        count, last = _shown()[name, about]
        if key == _key(name, about, count):
            kept(name, chosen, *about)
        else:
            last = value  # from a widget that has made way since
        if not _same(chosen, last):
            then(chosen)

    return {"key": key, "on_change": heard, default: value}


def choosing(
    name: str,
    options: Sequence[Any],
    value: Any,
    then: Callable[[Any], None],
) -> dict[str, Any]:
    """The same for a select box of these options."""
    found = showing(name, value, then, default="index")
    return {**found, "options": options, "index": options.index(value)}


def place(name: str, value: Any, *about: int) -> str:
    """The key of the widget `name` that shows `value`."""
    shown = _shown()
    count, last = shown.get((name, about), (0, value))
    if not _same(last, value):
        count += 1
    shown[name, about] = count, value
    return _key(name, about, count)


def kept(name: str, value: Any, *about: int) -> None:
    """The widget shows this by itself: it keeps its key."""
    count, _ = _shown().get((name, about), (0, value))
    _shown()[name, about] = count, value


def _key(name: str, about: tuple[int, ...], count: int) -> str:
    return f"{name}-at-" + "-".join(map(str, (*about, count)))


def _shown() -> dict[tuple[str, tuple[int, ...]], tuple[int, Any]]:
    """Each widget's count of changes from elsewhere, and its last value."""
    return st.session_state.setdefault("shown", {})


def _same(one: Any, other: Any) -> bool:
    """A list is a choice of several, in whatever order they were chosen."""
    if isinstance(one, list):
        return set(one) == set(other or ())
    if isinstance(one, pd.DataFrame):
        return one is other or one.equals(other)
    return one == other
