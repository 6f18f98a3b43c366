"""A session's first page, sent in parts with time to draw each.

A browser that is given a whole page at once draws nothing of it until it has
fetched and started what the table and the pictures need: Plotly alone takes
it a second or two. Later pages, and edits, are sent as fast as they come.
"""

from __future__ import annotations

import time

import streamlit as st

WORDS = 0.15
"""Seconds for the first words, with the first number in them."""

INPUTS = 0.3
"""Seconds for the table and the fields under it."""

PICTURE = 0.6
"""Seconds for the first picture, with Plotly."""


def pause(seconds: float) -> None:
    """What stands on a session's first page so far is drawn now."""
    if not st.session_state.get("arrived"):
        time.sleep(seconds)


def arrived() -> None:
    """The first page has been sent to its end."""
    st.session_state["arrived"] = True
