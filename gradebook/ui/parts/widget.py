"""Widgets that show a part of the session's state, and change it.

A browser sends the values of all its widgets with each message, including
values that the server has changed since. So a widget gets a new key whenever
it has to show something else than the learner chose in it, and a value that
arrives under an old key is ignored. The widget's default says what it shows:
a value set in the session's state would overwrite what was typed since.

Until a run ends, the browser shows the old widget behind the new one.
style.css hides the second of two such neighbours, so each of these widgets
stands in a container of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import streamlit as st

from gradebook.ui import keys


def redraw() -> NoReturn:
    """Draws board and rest again after a callback has changed the draft.

    Called last in a callback, since it raises, as `st.rerun` does. Without
    it only the fragment would run again in which the widget stands.
    """
    st.rerun(["heart", "rest"])


def button(
    label: str,
    key: str,
    act: Callable[..., object],
    *given: Any,
    after: Callable[[], None] = redraw,
    **more: Any,
) -> None:
    """A button that calls `act` with what is given, and draws again.

    more  other arguments of st.button
    """

    def pressed() -> None:
        act(*given)
        after()

    st.button(label, key=key, on_click=pressed, **more)


def showing(
    name: str,
    value: Any,
    then: Callable[[Any], None],
    *about: int,
    after: Callable[[], None] = redraw,
) -> dict[str, Any]:
    """Arguments for the widget `name` that shows `value`: its key, its
    value, and a callback that hands a new value to `then`.

    about  what the widget belongs to, such as a row; each has its own widget
    after  what draws the page again; `whole_page` where the widget stands in
           no fragment
    """
    key = place(name, value, *about)

    def heard() -> None:
        nonlocal value
        last, value = value, keys.widget(key)
        kept(key, name, value, *about)
        if not _same(value, last):
            then(value)
            after()

    return {"key": key, "on_change": heard, "value": value}


def picking(
    name: str,
    value: Any,
    then: Callable[[Any], None],
    *about: int,
    after: Callable[[], None] = redraw,
) -> dict[str, Any]:
    """The same for pills and segments, where several choices are a list."""
    found = showing(name, value, then, *about, after=after)
    found["default"] = found.pop("value")
    return found


def choosing(
    name: str,
    options: Sequence[Any],
    value: Any,
    then: Callable[[Any], None],
    after: Callable[[], None] = redraw,
) -> dict[str, Any]:
    """The same for a select box of these options."""
    found = showing(name, value, then, after=after)
    found["index"] = options.index(found.pop("value"))
    return {**found, "options": options}


def whole_page() -> None:
    """Nothing to do: outside fragments the whole page is drawn after a
    callback."""


def place(name: str, value: Any, *about: int) -> str:
    """The key of the widget `name` that shows `value`."""
    shown = keys.SHOWN.get()
    count, last = shown.get((name, about), (keys.FIRST.get(), value))
    if not _same(last, value):
        count += 1
    shown[name, about] = count, value
    return _key(name, about, count)


def kept(key: str, name: str, value: Any, *about: int) -> None:
    """Notes that the widget with this key shows the value already, so that
    it keeps its key."""
    count, _ = keys.SHOWN.get()[name, about]
    if key == _key(name, about, count):
        keys.SHOWN.get()[name, about] = count, value


def _key(name: str, about: tuple[int, ...], count: int) -> str:
    return f"{name}__at__" + "-".join(map(str, (*about, count)))


def _same(one: Any, other: Any) -> bool:
    """Equal; the order of several choices does not count."""
    if isinstance(one, list):
        return set(one) == set(other or ())
    return one == other
