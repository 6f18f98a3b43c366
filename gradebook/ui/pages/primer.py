"""The primer: what an advantage is, in one minute."""

from __future__ import annotations

import streamlit as st

from gradebook.ui.parts.primer import primer


def primer_page() -> None:
    """The whole page."""
    st.title("What an advantage is", anchor=False)
    primer()
