"""The lead's page: a room, the hour as a plan, the handouts."""

from functools import partial

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.classroom.plan import MINUTES
from gradebook.output.takehome import handout
from gradebook.ui.parts import words
from gradebook.ui.parts.address import bug_files
from gradebook.ui.parts.plans import plans
from gradebook.ui.parts.widget import download
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.panel import panel


def session() -> None:
    st.title("Session")
    st.markdown(
        f"A session takes {MINUTES} minutes, or as many as you have. It works"
        " for a team at one screen and for a room of learners. Ask first, let"
        " everyone answer, then reveal: people remember what they predicted."
    )
    panel()
    if not seat.learning():
        st.header("The plan")
        plans()
    st.header("Handouts")
    st.markdown(
        "One page for each bug, to print or to send: its claim, batch,"
        " picture, formula, code and rule. Each is a single HTML file that"
        " needs nothing else."
    )
    with st.container(horizontal=True):
        for bug in bug_files():
            title, file = words.plain(load(bug).title), f"gradebook-{bug}.html"
            download(title, file, partial(handout, bug))
