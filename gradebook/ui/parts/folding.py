"""Content that is folded, and worked out only while it is open."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def folded(
    title: str,
    name: str,
    content: Callable[[], None],
    at_first: bool = False,
) -> None:
    """Content under its title, worked out only while it is open.

    at_first  it is open until the learner closes it
    """
    key = f"open-{name}-at-first" if at_first else f"open-{name}"
    part = st.expander(title, expanded=at_first, key=key, on_change="rerun")
    if part.open:
        with part:
            content()
