"""A button that downloads a file."""

from __future__ import annotations

from collections.abc import Callable
from mimetypes import guess_type
from typing import Literal

import streamlit as st


def download(
    label: str,
    name: str,
    make: Callable[[], str],
    key: str = "",
    type: Literal["secondary", "tertiary"] = "secondary",
) -> None:
    """The file `name`. It is made when it is asked for, and the page does
    not run for it."""
    st.download_button(
        label,
        make,
        name,
        guess_type(name)[0],
        key=key or f"take-{name}",
        on_click="ignore",
        type=type,
    )
