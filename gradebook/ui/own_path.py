"""Where a browser finds what this app serves beside Streamlit's own."""

from __future__ import annotations

import streamlit as st


def own_path(path: str) -> str:
    """The path below `server.baseUrlPath`, which a team sets behind a proxy
    that serves more than this app."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}{path}" if base else path
