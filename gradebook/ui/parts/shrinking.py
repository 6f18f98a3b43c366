"""The smallest batch that shows the bug."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.shrink import shrink
from gradebook.core.errors import GradebookError
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft


def shrinking(draft: Draft) -> None:
    """A button that reduces the batch to the smallest that shows it."""
    st.markdown(
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way. The board shows it; Undo"
        " goes back step by step."
    )
    if st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        _shrink(draft)


def _shrink(draft: Draft) -> None:
    steps = []
    try:
        with st.status("Shrinking", expanded=True) as status:
            for found in shrink(draft.state):
                steps.append((found.sentence, found.state))
                said = f"Step {len(steps)}: {found.sentence}"
                status.update(label=words.plain(said))
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        return
    if not steps:
        st.markdown(
            "There is nothing to shrink: the batch does not show the bug, or"
            " is already as small as it gets."
        )
        return
    for _, state in steps:
        draft.become(state)
    st.rerun()
