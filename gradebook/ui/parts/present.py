"""The presenter view: larger type, no chrome, keys for stages and reveal.

It is on while the address has present=1, and only then.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

STYLE = Path(__file__).with_name("present.css")
PARAMETER = "present"


def on() -> bool:
    """The address asks for the presenter view."""
    return st.query_params.get(PARAMETER) == "1"


def view() -> None:
    """The presenter view's style, where it is on."""
    if on():
        st.html(STYLE)


def leave() -> None:
    """The way back, at the foot of a page, where the view is on."""
    if not on():
        return
    with st.container(horizontal=True, key="present-foot"):
        st.markdown("← and → change the stage, space reveals.")
        st.button(
            "Leave the presenter view",
            key="present-leave",
            on_click=_off,
            type="tertiary",
        )


def _off() -> None:
    st.query_params.pop(PARAMETER, None)
