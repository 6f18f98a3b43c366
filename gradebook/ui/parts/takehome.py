"""Take it home: the link, the test, the table, the case."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.cases.link import encode, excess
from gradebook.cases.scenario import is_start
from gradebook.output.takehome import HIDES, csv, pytest_file, scenario_file
from gradebook.ui.parts import words
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import download, folded


def take_home(draft: Draft) -> None:
    """The section. Links and files are made when they are asked for."""
    state, name = draft.state, draft.scenario.name
    query = encode(state, covered=False)
    link, single = whole(query), len(state.bugs) == 1
    st.markdown(words.titled("Take it home"))
    if not single:
        many = f"{len(state.bugs)} are" if state.bugs else "none is"
        st.markdown(
            "The pytest file and the scenario file hold exactly one bug;"
            f" {many} chosen."
        )
    with st.container(horizontal=True):
        if single:
            test = f"test_{name}.py"
            download("pytest file", test, lambda: pytest_file(state, link).text)
        download("CSV", f"{name}.csv", partial(csv, state))
        if single:
            case = f"{state.bug}-mine.toml"
            download("Scenario file", case, partial(scenario_file, state))
    files = "The **CSV** holds every stage of both engines."
    if single:
        page = "the bug's page" if is_start(name) else "this page"
        files = (
            "The **pytest file** needs only torch and pytest: call your own"
            f" trainer in the adapter at its top. {files} The **scenario"
            f" file** becomes a case of {page} when you put it into"
            " `scenarios/`."
        )
    st.markdown(f"{files} The board itself saves as SVG or PNG.")
    if too_long := excess(query):
        st.markdown(words.plain(too_long))
    else:
        folded("The link to this page", "link", partial(_links, draft, link))
    if single and draft.comparison.agree:
        st.markdown(
            f"This batch {HIDES}. The rows of the case are in the test as well."
        )


def _links(draft: Draft, link: str) -> None:
    st.markdown(
        "The link opens this batch for anyone who reaches this server. It is"
        " the address of this page, too."
    )
    covered = whole(encode(draft.state, covered=True))
    st.code(covered, language=None, wrap_lines=True)
    if not is_start(draft.scenario.name):
        st.markdown(
            "That link asks the question first. This one shows the answer at once."
        )
        st.code(link, language=None, wrap_lines=True)
