"""Take it home: the link, the test, the table, the case, the picture."""

from __future__ import annotations

from typing import Callable

import streamlit as st

from gradebook import export
from gradebook.errors import GradebookError
from gradebook.link import encode, excess, query_string
from gradebook.sandbox import is_start
from gradebook.ui import words
from gradebook.ui.drafts import Draft


def take_home(draft: Draft) -> None:
    """The section. Files are made when they are asked for."""
    st.header("Take it home")
    state = draft.state
    asks = not is_start(state.scenario.name)
    link = address_of(draft)
    too_long = excess(encode(state, covered=False))
    said = "**The link** opens this page as it stands, for anyone who reaches"
    said += " this server"
    said += "; the covered one asks the question first." if asks else "."
    st.markdown(said)
    if too_long:
        st.markdown(words.plain(too_long))
    else:
        st.code(link, language=None, wrap_lines=True)
        if asks:
            with st.popover("The covered link"):
                st.code(address_of(draft, covered=True), language=None)
    if len(state.bugs) != 1:
        st.markdown(
            "The pytest file and the scenario file hold exactly one bug;"
            f" {_many(len(state.bugs))} chosen."
        )
    test = _test(draft, link) if len(state.bugs) == 1 else None
    name = state.scenario.name
    with st.container(horizontal=True):
        if test is not None:
            _file("pytest file", f"test_{name}.py", lambda: test.text)
        _file("CSV", f"{name}.csv", lambda: export.csv(state))
        if len(state.bugs) == 1:
            _file(
                "Scenario file",
                f"{state.bug}-mine.toml",
                lambda: export.scenario_file(state),
            )
    page = "this page" if asks else "the bug's page"
    st.markdown(
        "The **pytest file** needs torch and pytest alone: call your own"
        " trainer in the adapter at its top. The **CSV** holds every stage"
        f" of both engines. The **scenario file** becomes a case of {page}"
        " when it is put into `scenarios/`. The camera above the picture"
        " saves it as SVG."
    )
    if test is not None and test.note:
        st.markdown(words.plain(test.note))


def _test(draft: Draft, link: str) -> export.PytestFile | None:
    """The test of the batch, or none and a sentence that says why."""
    try:
        return export.pytest_file(draft.state, link)
    except GradebookError as error:
        st.markdown(f"No test file: {words.plain(words.place(error))}.")
        return None


def _many(bugs: int) -> str:
    return "none is" if not bugs else f"{bugs} are"


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
