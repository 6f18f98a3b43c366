"""Widgets that show a part of the session's state, and change it.

A browser sends all of its widgets' values with each message, also those
that the server has changed meanwhile and those that it only shows. So a
widget gets a new key each time it is to show something else than the learner
chose in it, and a value that the old one has shown is no edit. What it shows
is its default: a value set by the session state would overwrite what was
typed since, and is lost where two answers come at once.

In the browser the old widget stands behind the new one until the run ends.
style.css hides the second of two such neighbours, so no two of them stand in
one container.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradebook.ui import keys
from gradebook.ui.parts.redraw import redraw


def showing(
    name: str,
    value: Any,
    then: Callable[[Any], None],
    *about: int,
) -> dict[str, Any]:
    """Arguments for the widget `name` that shows `value`: its key, its
    value, and what it calls, which hands another value to `then`.

    about  what the widget is of, such as a row: each has its own
    """
    key = place(name, value, *about)

    def heard() -> None:
        nonlocal value
        last, value = value, keys.widget(key)
        kept(key, name, value, *about)
        if not _same(value, last):
            then(value)
            redraw()

    return {"key": key, "on_change": heard, "value": value}


def picking(
    name: str,
    value: Any,
    then: Callable[[Any], None],
    *about: int,
) -> dict[str, Any]:
    """The same for pills and segments; several of them are a list."""
    found = showing(name, value, then, *about)
    found["default"] = found.pop("value")
    return found


def choosing(
    name: str,
    options: Sequence[Any],
    value: Any,
    then: Callable[[Any], None],
) -> dict[str, Any]:
    """The same for a select box of these options."""
    found = showing(name, value, then)
    found["index"] = options.index(found.pop("value"))
    return {**found, "options": options}


def place(name: str, value: Any, *about: int) -> str:
    """The key of the widget `name` that shows `value`."""
    shown = keys.SHOWN.get()
    count, last = shown.get((name, about), (keys.FIRST.get(), value))
    if not _same(last, value):
        count += 1
    shown[name, about] = count, value
    return _key(name, about, count)


def kept(key: str, name: str, value: Any, *about: int) -> None:
    """The widget with this key shows the value by itself, and keeps the key
    unless another widget has taken its place."""
    count, _ = keys.SHOWN.get()[name, about]
    if key == _key(name, about, count):
        keys.SHOWN.get()[name, about] = count, value


def _key(name: str, about: tuple[int, ...], count: int) -> str:
    return f"{name}__at__" + "-".join(map(str, (*about, count)))


def _same(one: Any, other: Any) -> bool:
    """A list is a choice of several, in whatever order they were chosen; a
    table says by itself what it equals."""
    if isinstance(one, list):
        return set(one) == set(other or ())
    if hasattr(one, "equals"):
        return one is other or one.equals(other)
    return one == other
