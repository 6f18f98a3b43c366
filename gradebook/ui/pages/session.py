"""The lead's page: a room, the hour as a plan, the handouts."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from gradebook.cases.scenario import load
from gradebook.classroom.plan import MINUTES, Step, plan, query
from gradebook.output.handout import handout
from gradebook.ui.pages.home import home
from gradebook.ui.parts import matter, present, words
from gradebook.ui.parts.desk import default_run
from gradebook.ui.parts.shell import bug_files, require_entry
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.panel import panel


def session() -> None:
    """The whole page."""
    require_entry()
    st.title("Session")
    st.markdown(
        f"{MINUTES} minutes over real bugs, for a team at one screen or"
        " for a room of learners. Predicting first is what makes it stick:"
        " ask, let everyone answer, then reveal."
    )
    panel()
    if not seat.learning():
        st.header("The plan")
        _plan()
    _handouts()


def _plan() -> None:
    st.markdown(
        "Each link opens the case with the faulty side covered. The"
        " presenter view has larger type and no chrome; ← and → go through"
        " the stages, space reveals. The usual answer is the one that"
        " the first thought leads to; no survey stands behind it."
    )
    for step in plan():
        with st.container(border=True, key=f"step-{step.begin}-{step.bug}"):
            _step(step)


def _step(step: Step) -> None:
    st.subheader(f"{_time(step)} · {words.plain(step.title)}", anchor=False)
    st.markdown("  \n".join(_lines(step)))
    with st.container(horizontal=True):
        _links(step)


def _time(step: Step) -> str:
    if step.begin < 0:
        return "Past the hour"
    end = step.begin + step.minutes
    return f"{step.begin:02d}–{end:02d} min"


def _lines(step: Step) -> list[str]:
    lines = [f"**Ask:** {words.plain(step.ask)}"]
    if step.choices:
        choices = " · ".join(words.plain(c) for c in step.choices)
        lines.append(f"**Choices:** {choices}")
    if step.usual:
        usual = f"{words.plain(step.usual)} {words.plain(step.why)}"
        lines.append(f"**Usual answer, and why:** {usual}")
    if step.truth:
        lines.append(f"**The truth:** {words.plain(step.truth)}")
    if step.do:
        lines.append(f"**Then:** {words.plain(step.do)}")
    return lines


def _links(step: Step) -> None:
    files = bug_files()
    if step.bug not in files:
        st.page_link(_home(), label="Open Home")
        return
    if step.trains:
        run = default_run(step.bug)
        matter.link("Open the training runs", run, **seat.carried())
        return
    opened = query(step.scenario) | seat.carried()
    presented = opened | {present.PARAMETER: "1"}
    file = files[step.bug]
    st.page_link(file, label="Open the case", query_params=opened)
    st.page_link(file, label="Presenter view", query_params=presented)
    if step.next:
        title = load(step.next).title
        after = query(step.next) | seat.carried()
        label = f"Next, if there is time: {words.plain(title)}"
        st.page_link(file, label=label, query_params=after)


def _home() -> StreamlitPage:
    """Home, as the navigation has it."""
    return st.Page(home, url_path="home", default=True)


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
