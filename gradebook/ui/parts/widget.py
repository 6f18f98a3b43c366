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
from mimetypes import guess_type
from typing import Any, Literal, NoReturn

import streamlit as st

from gradebook.ui import keys
from gradebook.ui.board.program import stub


def redraw() -> NoReturn:
    """Draws board and rest again after a callback has changed the draft.

    Called last in a callback, since it raises, as `st.rerun` does. Without
    it only the fragment would run again in which the widget stands.
    """
    st.rerun(["heart", "rest"])


def showing(
    name: str, value: Any, then: Callable[[Any], None], argument: str = "value"
) -> dict[str, Any]:
    """Arguments for the widget `name` that shows `value`: its key, its value
    as the named argument, and a callback that hands a new value to `then` and
    draws again."""
    key = place(name, value)

    def changed() -> None:
        nonlocal value
        last, value = value, keys.widget(key)
        kept(key, name, value)
        if not _same(value, last):
            then(value)
            redraw()

    return {"key": key, "on_change": changed, argument: value}


def choosing(
    name: str, options: Sequence[Any], value: Any, then: Callable[[Any], None]
) -> dict[str, Any]:
    """The same for a select box of these options."""
    arguments = showing(name, value, then, "index")
    return arguments | {"options": options, "index": options.index(value)}


def place(name: str, value: Any) -> str:
    """The key of the widget `name` that shows `value`."""
    shown = keys.SHOWN.get()
    count, last = shown.get(name, (keys.FIRST.get(), value))
    if not _same(last, value):
        count += 1
    shown[name] = count, value
    return f"{name}__at__{count}"


def kept(key: str, name: str, value: Any) -> None:
    """Notes that the widget with this key shows the value already, so that
    it keeps its key."""
    count, _ = keys.SHOWN.get()[name]
    if key == f"{name}__at__{count}":
        keys.SHOWN.get()[name] = count, value


def _same(value: Any, other: Any) -> bool:
    """Equal; the order of several choices does not count."""
    if isinstance(value, list):
        return set(value) == set(other or ())
    return value == other


def folded(title: str, name: str, content: Callable[[], None]) -> None:
    """Content under its title, made while it is open."""
    part = st.expander(title, key=f"open-{name}", on_change="rerun")
    if part.open:
        with part:
            content()


def download(
    label: str,
    name: str,
    make: Callable[[], str],
    key: str = "",
    type: Literal["secondary", "tertiary"] = "secondary",
) -> None:
    """The file `name`. It is made when it is asked for, and the page does
    not run for it."""
    st.download_button(
        label,
        make,
        name,
        guess_type(name)[0],
        key=key or f"take-{name}",
        on_click="ignore",
        type=type,
    )


_markup = st.components.v2.component(
    "gradebook_markup", js=stub("markup"), isolate_styles=False
)


def markup(text: str, key: str) -> str:
    """HTML or SVG in the text's colour and font, whose links open pages of the
    app: Streamlit's own HTML element drops SVG, and starts a new session at each
    link. The data-name of the link that was clicked, or ''."""
    shown = _markup(key=key, data=[text], on_opened_change=lambda: None)
    return shown.opened or ""
