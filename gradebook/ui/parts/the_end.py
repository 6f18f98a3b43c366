"""The end of a bug's page: how far the learner is, and the next bug."""

from __future__ import annotations

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.cases.scenario import load
from gradebook.ui.parts import predict, words
from gradebook.ui.parts.shell import bug_files, tool_files


def next_bug(after: str = "") -> str | None:
    """The next bug that is not uncovered yet; None where all are."""
    names = list(bug_files())
    start = names.index(after) + 1 if after in names else 0
    around = names[start:] + names[:start]
    return next((name for name in around if predict.covered(name)), None)


def the_end(here: str) -> None:
    """Progress, and one button."""
    done, following = set(predict.progress().uncovered()), next_bug(here)
    with st.container(horizontal=True, key="the-end", vertical_alignment="center"):
        st.html(
            f'<div class="gb-count"><b>{len(done)} of {len(BUGS)}</b>uncovered</div>',
            width="content",
        )
        st.html(_line(here, following, done), width="stretch")
        if following is None:
            label, page = "Check your own run", tool_files()["check"]
        else:
            label = f"Next bug: {words.plain(load(following).title)}"
            page = bug_files()[following]
        if st.button(label, type="primary", key="next-bug"):
            st.switch_page(page)


def _line(here: str, following: str | None, done: set[str]) -> str:
    """A diamond for each bug along the pipe, filled in as it is uncovered."""
    stops = []
    for name in bug_files():
        label = "here" if name == here else "next" if name == following else ""
        look = "done" if name in done else "open"
        stops.append(f'<i class="{look}"><span>{label}</span></i>')
    return f'<div class="gb-line" aria-hidden="true">{"".join(stops)}</div>'
