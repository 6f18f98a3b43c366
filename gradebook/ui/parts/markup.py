"""HTML and SVG that are drawn anew without being mounted anew, and whose
links open pages of the app.

Streamlit's own HTML element drops SVG and starts a new session at each link,
and an image file flickers when it is replaced ten times a second.
"""

from __future__ import annotations

import streamlit as st

from gradebook.ui.board.program import stub

component = st.components.v2.component(
    "gradebook_markup", js=stub("markup"), isolate_styles=False
)


def show(markup: str, key: str) -> str:
    """The HTML or SVG, in the text's colour and font. The data-name of the
    link that was clicked in it, or ''."""
    shown = component(key=key, data=[markup], on_opened_change=lambda: None)
    return shown.opened or ""
