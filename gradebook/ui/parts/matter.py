"""From a bug's page to its training runs, and back to them."""

from __future__ import annotations

import streamlit as st

from gradebook.training.study import Run, default_run, studied
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.desk import query_of
from gradebook.ui.parts.shell import page_files

PAGE = "consequences"


def matter(bug: str) -> None:
    """The section "does it matter?", where the bug has training runs."""
    if bug not in studied():
        return
    said = (
        "Train two small policies side by side, one with each engine, and"
        " compare how well they learn."
    )
    st.markdown(words.titled("Does it matter?", said))
    link("Train two policies", _run(bug))


def back(bug: str) -> None:
    """Above the board, what was opened from a training run, and the way
    back to its curves."""
    mine = keys.DESK.get()
    if mine is None or mine.opened is None or mine.opened.run.bug != bug:
        return
    opened = mine.opened
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"The batch of update {opened.update}, seed {opened.seed}, of a"
            " training run was opened here."
        )
        link("Back to the curves", opened.run)


def _run(bug: str) -> Run:
    """The session's own run of the bug, or the one to begin with."""
    mine = keys.DESK.get()
    if mine is not None and mine.run.bug == bug:
        return mine.run
    return default_run(bug)


def link(label: str, run: Run, **others: str) -> None:
    """A link to the curves of the run; `others` are more parameters."""
    query = query_of(run) | others
    st.page_link(page_files()[PAGE], label=label, query_params=query)
