"""What the browser tells the rest of the page: keys, and finished edits.

Ctrl+Z and Ctrl+Shift+Z outside a text field undo and redo. In the presenter
view the left and right arrow keys step along the stages, and space reveals.
The component also says when the board has the answer to a finished edit, so
that the fragment it stands in follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from gradebook.ui import keys
from gradebook.ui.board.program import stub
from gradebook.ui.parts import shell
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import redraw

component = st.components.v2.component("gradebook_shortcuts", js=stub("shortcuts"))


def shortcuts(
    draft: Draft,
    acts: Mapping[str, Callable[[], object]] | None = None,
    focus: str = "",
    top: str = "",
    letters: Mapping[str, str] | None = None,
    then: Callable[[], None] = redraw,
) -> None:
    """Listens for keys on the whole page, and for the draft's board.

    acts     "back", "on", "reveal", or a value of `letters` -> what it does
    focus    a new text moves a lost focus to the verdict
    top      a new text shows the page from its top
    letters  more keys of the browser (KeyboardEvent.key) that act outside
             of text fields -> the name of what they do
    then     draws what the act changed
    """
    here = keys.SHORTCUTS.get()
    every = {"undo": draft.undo, "redo": draft.redo, **(acts or {})}

    def pressed() -> None:
        message = keys.widget("shortcuts").get("pressed") or {}
        if message.get("epoch") != here["epoch"]:
            return  # from before the server's or the session's restart
        fresh = [press for press in message["keys"] if press[0] > here["seen"]]
        for number, name in fresh:
            here["seen"] = number
            if name in every:
                every[name]()
        if fresh:
            then()

    component(
        key="shortcuts",
        data=[
            {
                "epoch": here["epoch"],
                "seen": here["seen"],
                "heard": (keys.widget("shortcuts") or {}).get("settled", 0),
                "presenter": shell.presenting(),
                "focus": focus,
                "top": top,
                "letters": dict(letters or {}),
            }
        ],
        height=1,
        on_pressed_change=pressed,
        on_settled_change=lambda: None,  # the message makes the fragment run
    )
