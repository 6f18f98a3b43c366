"""Take it home: the link, the test, the table, the case, the picture."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.cases.link import encode, excess
from gradebook.cases.scenario import is_start
from gradebook.output.pytest_file import HIDES, pytest_file
from gradebook.output.scenario_file import scenario_file
from gradebook.output.tables import csv
from gradebook.ui.parts import words
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import download, folded


def take_home(draft: Draft) -> None:
    """The section. Links and files are made when they are asked for."""
    state = draft.state
    name = state.scenario.name
    asks = not is_start(name)
    code = encode(state, covered=False)
    link = whole(code)
    st.markdown(words.titled("Take it home"))
    if len(state.bugs) != 1:
        many = f"{len(state.bugs)} are" if state.bugs else "none is"
        st.markdown(
            "The pytest file and the scenario file hold exactly one bug;"
            f" {many} chosen."
        )
    with st.container(horizontal=True):
        if len(state.bugs) == 1:
            download(
                "pytest file",
                f"test_{name}.py",
                lambda: pytest_file(state, link).text,
            )
        download("CSV", f"{name}.csv", partial(csv, state))
        if len(state.bugs) == 1:
            download(
                "Scenario file",
                f"{state.bug}-mine.toml",
                partial(scenario_file, state),
            )
    said = "The **CSV** holds every stage of both engines."
    if len(state.bugs) == 1:
        page = "this page" if asks else "the bug's page"
        said = (
            "The **pytest file** needs only torch and pytest: call your own"
            f" trainer in the adapter at its top. {said} The **scenario"
            f" file** becomes a case of {page} when you put it into"
            " `scenarios/`."
        )
    st.markdown(f"{said} The board itself saves as SVG or PNG.")
    too_long = excess(code)
    if too_long:
        st.markdown(words.plain(too_long))
    else:
        folded("The link to this page", "link", lambda: _links(draft, link))
    note = _note(draft) if len(state.bugs) == 1 else ""
    if note:
        st.markdown(note)


def _links(draft: Draft, link: str) -> None:
    covered = whole(encode(draft.state, covered=True))
    st.markdown(
        "The link opens this batch for anyone who reaches this server. It is"
        " the address of this page, too."
    )
    st.code(covered, language=None, wrap_lines=True)
    if is_start(draft.scenario.name):
        return
    st.markdown("That link asks the question first. This one shows the answer at once.")
    st.code(link, language=None, wrap_lines=True)


def _note(draft: Draft) -> str:
    """What the reader of the test should know; the file itself is made
    when it is asked for, since that takes longer than the page."""
    if not draft.comparison.agree:
        return ""
    return f"This batch {HIDES}. The rows of the case are in the test as well."
