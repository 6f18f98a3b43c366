"""What a change of the draft draws again."""

from __future__ import annotations

from typing import NoReturn

import streamlit as st


def redraw() -> NoReturn:
    """Draws board and rest again after a callback has changed the draft.

    Called last in a callback, since it raises, as `st.rerun` does. Without
    it only the fragment would run again in which the widget stands.
    """
    st.rerun(["heart", "rest"])
