"""Check your run: drop a log, read the verdict, open its steps."""

from __future__ import annotations

import time

import streamlit as st

from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.ui import keys
from gradebook.ui.checks import ask, card
from gradebook.ui.checks.ask import Checking, on_page
from gradebook.ui.parts import words


def check_page() -> None:
    """The whole page."""
    st.title("Check your run")
    st.markdown(
        "What computes the advantages in your log, and is it what you configured?"
        " Drop a log with a row for each rollout: prompt, reward and advantage. It"
        " stays on the machine that serves this page."
    )
    ask.log()
    checking = keys.CHECKING.get()
    if checking is not None:
        if checking.waiting:
            _check(checking)
        _verdict(checking)
    ask.more()


def _check(checking: Checking) -> None:
    """Runs the check. A press of Cancel ends it: Streamlit takes it where
    the bar is drawn."""

    def cancel() -> None:
        checking.cancelled = True

    work = st.empty()
    with work.container(key="check-work"):
        bar = st.progress(0.0, f"Reading {words.plain(checking.title)}")
        st.button("Cancel", key="check-cancel", on_click=cancel)
    drawn = time.monotonic()

    def draw(share: float, steps: int) -> None:
        nonlocal drawn
        if time.monotonic() > drawn + 0.2:
            drawn = time.monotonic()
            bar.progress(share, f"{steps:,} steps checked")

    try:
        verdict = check_log(checking.files, progress=draw, **checking.options)
        checking.verdict = verdict
    except GradebookError as error:
        checking.error = str(error)
    work.empty()


def _verdict(checking: Checking) -> None:
    """The card, the timeline and the steps, or why there is no verdict."""
    verdict = checking.verdict
    if checking.cancelled and verdict is None:
        st.warning("The check was cancelled, so there is no verdict.")
        st.button("Check again", key="check-again", on_click=ask.again)
        return
    if checking.error:
        st.error(f"There is no verdict. {words.plain(on_page(checking.error))}")
    if verdict is None:
        return
    st.markdown(words.titled(f"The verdict on {words.plain(checking.title)}"))
    card.card(checking, verdict)
    if len(verdict.what_if):
        card.would_compute(verdict)
    elif len(verdict.frame):
        card.timeline(verdict, ask.answered())
    left, right = st.columns([7, 5], gap="large")
    with right if len(verdict.frame) else left:
        card.evidence(checking, verdict)
    if len(verdict.frame):
        with left:
            card.steps(checking, verdict)
