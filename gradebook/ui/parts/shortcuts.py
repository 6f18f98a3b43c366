"""What the browser tells the rest of the page: keys, and finished edits.

Ctrl+Z and Ctrl+Shift+Z outside a text field undo and redo. In the presenter
view the left and right arrow keys step along the stages, and space reveals.
The component also says when the board has the answer to a finished edit, so
that the fragment it stands in follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from gradebook.ui import keys
from gradebook.ui.board.program import stub
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import redraw

NOTHING: Mapping[str, Any] = MappingProxyType({})
component = st.components.v2.component("gradebook_shortcuts", js=stub("shortcuts"))


def shortcuts(
    draft: Draft,
    acts: Mapping[str, Callable[[], None]] = NOTHING,
    presenter: bool = False,
    focus: str = "",
    top: str = "",
    letters: Mapping[str, str] = NOTHING,
    then: Callable[[], None] = redraw,
) -> None:
    """Listens for keys on the whole page, and for the draft's board.

    acts       "back", "on", "reveal", or a value of `letters` -> what it does
    presenter  the arrow keys and space act, too
    focus      a new text moves a lost focus to the verdict
    top        a new text shows the page from its top
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
            if name in ("undo", "redo"):
                getattr(draft, name)()
            elif name in acts:
                acts[name]()
        if fresh:
            then()

    component(
        key="shortcuts",
        data=[
            {
                "epoch": here["epoch"],
                "seen": here["seen"],
                "heard": (keys.widget("shortcuts") or {}).get("settled", 0),
                "presenter": presenter,
                "focus": focus,
                "top": top,
                "letters": dict(letters),
            }
        ],
        height=1,
        on_pressed_change=pressed,
        on_settled_change=_draw_again,
    )


def _draw_again() -> None:
    """The message alone makes the fragment run."""
