"""Content that is folded, and worked out only while it is open."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def folded(title: str, name: str, content: Callable[[], None]) -> None:
    """Content under its title, worked out only while it is open."""
    part = st.expander(title, key=f"open-{name}", on_change="rerun")
    if part.open:
        with part:
            content()
