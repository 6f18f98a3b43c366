"""Page-wide keys, as messages from the browser.

Ctrl+Z and Ctrl+Shift+Z outside a text field undo and redo. In the presenter
view the left and right arrow keys step along the stages, and space reveals.
The component also says when the browser has drawn a session's first screen,
so that what takes long to load is sent after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import streamlit as st

from gradebook.ui import keys
from gradebook.ui.parts.redraw import redraw

PROGRAM = Path(__file__).with_name("shortcuts.js").read_text("utf-8")
NO_LETTERS: Mapping[str, str] = MappingProxyType({})
component = st.components.v2.component("gradebook_shortcuts", js=PROGRAM)


def shortcuts(
    acts: Mapping[str, Callable[[], None]],
    presenter: bool = False,
    focus: str = "",
    letters: Mapping[str, str] = NO_LETTERS,
    then: Callable[[], None] = redraw,
) -> None:
    """Listens for keys on the whole page.

    acts       "undo", "redo", "back", "on", "reveal", or a value of
               `letters` -> what it does
    presenter  the arrow keys and space act, too
    focus      a new text moves a lost focus to the verdict
    letters    more keys of the browser (KeyboardEvent.key) that act outside
               of text fields -> the name of what they do
    then       draws what the act changed
    """
    here = keys.SHORTCUTS.get()

    def pressed() -> None:
        message = keys.widget("shortcuts").get("pressed") or {}
        if message.get("epoch") != here["epoch"]:
            return  # from before the server's or the session's restart
        fresh = [k for k in message["keys"] if k[0] > here["seen"]]
        for number, name in fresh:
            here["seen"] = number
            if name in acts:
                acts[name]()
        if fresh:
            then()

    def drawn() -> None:
        keys.ARRIVED.put(True)

    component(
        key="shortcuts",
        data={
            "epoch": here["epoch"],
            "seen": here["seen"],
            "drawn": arrived(),
            "presenter": presenter,
            "focus": focus,
            "letters": dict(letters),
        },
        height=1,
        on_pressed_change=pressed,
        on_drawn_change=drawn,
    )


def arrived() -> bool:
    """The browser has drawn this session's first screen."""
    return keys.ARRIVED.get()
