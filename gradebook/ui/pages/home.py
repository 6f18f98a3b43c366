"""Home: one reward to drag, and the bugs at the stages that they break."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.output.pipeline_map import map_file
from gradebook.training.home import BUG
from gradebook.ui.parts import predict, words
from gradebook.ui.parts.affected import affected_bugs
from gradebook.ui.parts.download import download
from gradebook.ui.parts.home_frame import frame
from gradebook.ui.parts.index import index
from gradebook.ui.parts.shell import bug_files, tool_files
from gradebook.ui.parts.the_end import next_bug

ALSO = {
    "primer": "What an advantage is, in one minute",
    "consequences": "Does it matter? Train two policies",
    "bug_or_not": "Bug or not? A game with false alarms",
    "mystery": "Mystery trainer",
    "sandbox": "Sandbox",
    "trainers": "Trainers",
}
"""Other ways to meet the bugs."""


def home() -> None:
    """The way in."""
    st.title("Three right answers were trained as mistakes.", anchor=False)
    st.markdown(
        "Row 3 is right, too, but never stopped. It is left out of training, yet"
        " its reward stays in its group's mean. **Drag that reward below 1, and the"
        " policy lives.**"
    )
    frame()
    following = next_bug()
    _ways(following)
    chosen = index(following)
    if chosen in bug_files():
        st.switch_page(bug_files()[chosen])
    affected_bugs()
    _also()


def _ways(following: str | None) -> None:
    """One filled button, a link, and what the curves are."""
    with st.container(horizontal=True, key="ways", vertical_alignment="center"):
        if following is not None:
            started = "next" if predict.progress().uncovered() else "first"
            label = f"Predict the {started} bug: {words.plain(load(following).title)}"
            if st.button(label, type="primary", key="first-bug"):
                st.switch_page(bug_files()[following])
        st.page_link(tool_files()["check"], label="Check your own run")
        st.html(
            f'<p class="gb-note">The picture: {words.safe(load(BUG).title)}, with'
            " AReaL's settings. Tables, not language models, trained in advance at 11"
            " rewards: 200 updates, Adam 0.05, 16 seeds.</p>",
            width="stretch",
        )


def _also() -> None:
    with st.container(horizontal=True, key="also", gap="medium"):
        for page, label in ALSO.items():
            if page in tool_files():
                st.page_link(tool_files()[page], label=label)
        name = "gradebook-map.svg"
        made = partial(map_file, _server())
        download("The map as SVG", name, made, type="tertiary")
        if predict.progress().guesses:
            st.button(
                "Start over",
                key="start-over",
                type="tertiary",
                on_click=predict.start_over,
                help="Covers every bug again.",
            )
    st.markdown("Nothing you type leaves the machine that serves this page.")


def _server() -> str:
    """The address that the pages' names are put behind."""
    here = (st.context.url or "").split("?")[0].rstrip("/")
    return here.removesuffix("/home")
