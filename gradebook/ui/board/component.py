"""The board on a page: sends the data and takes the learner's edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from gradebook.cases.draft import Draft
from gradebook.ui import keys
from gradebook.ui.board.program import stub

_mount = st.components.v2.component("gradebook_board", js=stub())


def key(draft: Draft) -> str:
    """The key of the draft's board."""
    return f"board-{draft.scenario.name}"


def take(draft: Draft) -> bool:
    """Carries out what the browser sent last and was not taken yet. True
    where the rest of the page has to follow."""
    sent = keys.widget(key(draft)) or {}
    return draft.apply(sent.get("message"))


def board(
    draft: Draft, data: dict[str, Any], on_final: Callable[[], None]
) -> None:
    """The board with `data` (see `view`). `on_final` is called after an edit
    that the rest of the page has to follow."""

    def sent() -> None:
        if take(draft):
            on_final()

    _mount(key=key(draft), data=data, on_message_change=sent)
