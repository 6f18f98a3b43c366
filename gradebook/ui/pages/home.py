"""Home: one batch to drag, one minute of theory, and the bugs as cards."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from gradebook.cases.scenario import Scenario, load
from gradebook.ui.parts import drafts, words
from gradebook.ui.parts.cards import catalogue
from gradebook.ui.parts.heart import heart
from gradebook.ui.parts.primer import primer

BATCH = Path(__file__).with_name("home.toml")
MORE = {
    "map": "All bugs on one map",
    "bug_or_not": "Bug or not? A game with false alarms",
    "mystery": "Mystery trainer: name a hidden bug",
}
"""Other ways to meet the bugs."""


def home() -> None:
    """The way in."""
    from gradebook.ui.parts.shell import bug_files, tool_files

    files = bug_files()
    st.title("The best answer was trained as a mistake.")
    scenario = _hero()
    st.markdown(
        "Reinforcement learning compares each answer of a language model"
        " with the other answers to the same prompt. Several well-known"
        " trainers got that comparison wrong: no crash, no warning, and the"
        " best answer was pushed down."
    )
    st.markdown(f"**Try it.** {words.plain(scenario.lesson)}")
    draft = drafts.of(scenario)
    heart(draft, scenario.telltale.kind, covered=False, invite=3)
    with st.container(horizontal=True, key="ways"):
        if st.button("Predict the first bug", type="primary", key="first-bug"):
            st.switch_page(next(iter(files.values())))
        if st.button("Check your own run", key="check-own-run"):
            st.switch_page(tool_files()["check"])
    primer()
    st.markdown(
        words.titled(
            "The bugs",
            "Each card shows one bug of a real trainer. A blue dot is a row's"
            " correct advantage, and the line marks 0. Predict what the faulty"
            " engine does, and the card shows its numbers, too.",
        )
    )
    with st.container(horizontal=True, gap="medium", key="more"):
        for page, label in MORE.items():
            st.page_link(tool_files()[page], label=label)
    catalogue(files)
    st.markdown("Nothing you type leaves the machine that serves this page.")


@cache
def _hero() -> Scenario:
    """The batch on this page. No page asks a question about it."""
    return load(BATCH)
