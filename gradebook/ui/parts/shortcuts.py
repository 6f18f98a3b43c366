"""Page-wide keys, as messages from the browser.

Ctrl+Z and Ctrl+Shift+Z outside a text field undo and redo. In the presenter
view the left and right arrow keys step along the stages, and space reveals.
The component also says when the browser has drawn a session's first screen,
so that what takes long to load is sent after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from gradebook.ui import keys
from gradebook.ui.parts.redraw import redraw

PROGRAM = Path(__file__).with_name("shortcuts.js").read_text("utf-8")
component = st.components.v2.component("gradebook_shortcuts", js=PROGRAM)


def shortcuts(
    acts: Mapping[str, Callable[[], None]],
    presenter: bool = False,
    focus: str = "",
) -> None:
    """Listens for keys on the whole page.

    acts       "undo", "redo", "back", "on" or "reveal" -> what it does
    presenter  the arrow keys and space act, too
    focus      a new text moves a lost focus to the verdict
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
            redraw()

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
        },
        height=1,
        on_pressed_change=pressed,
        on_drawn_change=drawn,
    )


def arrived() -> bool:
    """The browser has drawn this session's first screen."""
    return keys.ARRIVED.get()
