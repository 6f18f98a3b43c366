"""Content that is folded, and worked out only while it is open."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from gradebook.ui import keys


def folded(title: str, name: str, content: Callable[[], None]) -> None:
    """Content under its title. What was open when it was drawn last opens
    again."""
    key, unfolded = f"open-{name}", keys.UNFOLDED.get()
    if name in unfolded and keys.widget(key) is None:
        keys.show(key, True)
    part = st.expander(title, key=key, on_change="rerun")
    (unfolded.add if part.open else unfolded.discard)(name)
    if part.open:
        with part:
            content()
