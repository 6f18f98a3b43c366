"""Take it home: the link, the test, the table, the case, the picture."""

from __future__ import annotations

from typing import Callable

import streamlit as st

from gradebook import export
from gradebook.errors import GradebookError
from gradebook.link import encode, excess, query_string
from gradebook.ui import words
from gradebook.ui.drafts import Draft


def take_home(draft: Draft) -> None:
    """The section. Files are made when they are asked for."""
    st.header("Take it home")
    state = draft.state
    link = address_of(draft)
    too_long = excess(encode(state, covered=False))
    st.markdown(
        "**The link** opens this page as it stands, for anyone who reaches"
        " this server; the covered one asks the question first."
    )
    if too_long:
        st.markdown(words.plain(too_long))
    else:
        st.code(link, language=None, wrap_lines=True)
        with st.popover("The covered link"):
            st.code(address_of(draft, covered=True), language=None)
    try:
        test = export.pytest_file(state, link)
    except GradebookError as error:
        st.markdown(f"No test file: {words.plain(words.place(error))}.")
        test = None
    name = state.scenario.name
    with st.container(horizontal=True):
        if test is not None:
            _file("pytest file", f"test_{name}.py", lambda: test.text)
        _file("CSV", f"{name}.csv", lambda: export.csv(state))
        _file(
            "Scenario file",
            f"{state.scenario.bug}-mine.toml",
            lambda: export.scenario_file(state),
        )
    st.markdown(
        "The **pytest file** needs torch and pytest alone: call your own"
        " trainer in the adapter at its top. The **CSV** holds every stage"
        " of both engines. The **scenario file** becomes a case of this page"
        " when it is put into `scenarios/`. The camera above the picture"
        " saves it as SVG."
    )
    if test is not None and test.note:
        st.markdown(words.plain(test.note))


def address_of(draft: Draft, covered: bool = False) -> str:
    """The page's address with the state in it."""
    base = (st.context.url or "").split("?")[0]
    return f"{base}?{query_string(encode(draft.state, covered))}"


def _file(label: str, name: str, make: Callable[[], str]) -> None:
    st.download_button(
        label,
        data=make,
        file_name=name,
        key=f"take-{name}",
        on_click="ignore",
    )
