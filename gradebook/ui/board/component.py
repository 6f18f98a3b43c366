"""The board on a page: sends the data and takes the learner's edits."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gradebook.cases.draft import Draft
from gradebook.ui import keys
from gradebook.ui.board.program import stub

_mount = st.components.v2.component("gradebook_board", js=stub("main.js"))


def key(draft: Draft) -> str:
    """The key of the draft's board."""
    return f"board-{draft.scenario.name}"


def take(draft: Draft) -> None:
    """Carries out what the browser sent last and was not taken yet."""
    sent = keys.widget(key(draft)) or {}
    draft.apply(sent.get("message"))


def board(draft: Draft, data: dict[str, Any]) -> None:
    """The board with `data` (see `view`)."""
    _mount(key=key(draft), data=data, on_message_change=lambda: take(draft))
