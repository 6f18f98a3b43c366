"""The lead's page: a room, the hour as a plan, the handouts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.classroom.plan import MINUTES
from gradebook.output.handout import handout
from gradebook.ui.parts import words
from gradebook.ui.parts.plans import plans
from gradebook.ui.parts.shell import bug_files, require_entry
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.panel import panel


def session() -> None:
    """The whole page."""
    require_entry()
    st.title("Session")
    st.markdown(
        f"{MINUTES} minutes, or as many as you have, over real bugs: for a"
        " team at one screen or for a room of learners. Predicting first is"
        " what makes it stick: ask, let everyone answer, then reveal."
    )
    panel()
    if not seat.learning():
        st.header("The plan")
        plans()
    _handouts()


def _handouts() -> None:
    st.header("Handouts")
    st.markdown(
        "One page a bug, to print or to send: claim, batch, picture, formula,"
        " the line, the rule. A single HTML file without anything from"
        " elsewhere."
    )
    with st.container(horizontal=True):
        for bug in bug_files():
            title = load(bug).title
            st.download_button(
                words.plain(title),
                data=partial(handout, bug),
                file_name=f"gradebook-{bug}.html",
                mime="text/html",
                key=f"handout-{bug}",
                on_click="ignore",
            )
