"""The report behind a bug: its status, the code of both engines, and what can be taken
home."""

from functools import partial

import streamlit as st

from gradebook.analysis.formula import beside
from gradebook.bugs import Swap
from gradebook.cases.link import encode, excess
from gradebook.cases.scenario import Scenario
from gradebook.cases.schema import Source
from gradebook.output.csv_file import csv_file
from gradebook.output.pytest_file import pytest_file
from gradebook.output.scenario_file import scenario_file
from gradebook.ui.parts import words
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.widget import download
from gradebook.ui.parts.words import safe


def facts(scenario: Scenario) -> str:
    source = scenario.sources[0]
    report = safe(source.label)
    if source.url:
        report = f'<a href="{safe(source.url)}" target="_blank">{report}</a>'
    # One trainer is named by its report.
    first, *others = scenario.status
    return f"{report} · {safe(scenario.standing if others else first.dated)}"


def the_code(bug: Swap, scenario: Scenario) -> None:
    """Both functions, what differs marked, and the trainer's change or the report."""
    st.markdown(words.titled("The code of both engines", level=3))
    html, listings = "", beside(bug.correct, bug.faulty)
    sides = zip(("correct", "faulty"), scenario.engine_names, listings)
    for engine, name, listing in sides:
        mark = f' class="off-{engine[0]}"'
        lines = "".join(
            f"<span{mark if line.differs else ''}>{safe(line.text) or ' '}</span>"
            for line in listing.lines
            if line.number  # not one that only keeps the other's lines level
        )
        html += (
            f'<div class="gb gb-listing"><p><i class="gb-{engine}"></i>'
            f"<b>{safe(name)}</b> · {safe(listing.file)}</p>"
            f'<pre tabindex="0" role="region" aria-label="{safe(name)} code">{lines}'
            "</pre></div>"
        )
    st.html(html)
    changes = (source for source in scenario.sources if source.commit)
    cites = cited(next(changes, scenario.sources[0]))
    text = "This is the code that runs here. The change in the trainer: "
    st.container(key="code-note").markdown(text + cites)


@st.fragment(key="opinion")
def opinion(scenario: Scenario) -> None:
    """A second question, about a disputed report: nothing is scored, and the views
    come after the answer."""
    if scenario.dispute is None:
        return
    title = "Is it a bug? That is disputed"
    st.markdown(words.titled(title, "Nothing is scored. What do you say?", level=3))
    answer = st.pills(
        title,
        ("Yes", "No", "Both views have a point"),
        key=f"opinion-{scenario.bug}",
        label_visibility="collapsed",
    )
    if answer is None:
        return
    views = {
        "The maintainer": scenario.dispute.maintainer,
        "The other view": scenario.dispute.other_view,
        "The trap in the fix": scenario.dispute.trap,
    }
    for part, (view, text) in zip(st.columns(3), views.items()):
        part.markdown(f"**{view}**  \n{words.plain(text)}")


def cited(source: Source) -> str:
    """A source as Markdown: its link, its commit and what is said of it."""
    name = words.plain(source.label)
    link = f"[{name}]({source.url})" if source.url else name
    commit = f", commit `{source.commit}`" if source.commit else ""
    note = f": {words.plain(source.note)}" if source.note else ""
    return f"{link}{commit}{note}"


def take_home(draft: PageDraft) -> None:
    state, name = draft.state, draft.scenario.name
    query, single = encode(state, covered=True), len(state.bugs) == 1
    text = "Test and scenario file need exactly one bug."
    if single:
        text = (
            "The **pytest file** needs only torch and pytest: call your own trainer in"
            " the adapter at its top. The **scenario file** becomes a case of the"
            " bug's page when you put it into `scenarios/`."
        )
        if draft.comparison.agree:
            text += " This batch hides the bug; the test has the case's own rows, too."
    st.markdown(words.titled("Take it home"))
    with st.container(horizontal=True):
        if single:
            link = whole(encode(state, covered=False))
            test, case = f"test_{name}.py", f"{state.bug}-mine.toml"
            download("pytest file", test, partial(pytest_file, state, link))
            download("Scenario file", case, partial(scenario_file, state))
        download("CSV", f"{name}.csv", partial(csv_file, state))
    text += " The **CSV** holds every stage of both engines. The board itself saves as"
    st.markdown(f"{text} SVG or PNG.")
    if too_long := excess(query):
        st.markdown(words.plain(too_long))
        return
    with st.expander("The link to this page"):
        st.markdown(
            "The link opens this batch for anyone who can reach this server. It is"
            " also the address of this page. Whoever opens it on a bug's page sees the"
            " question first, without the answer."
        )
        st.code(whole(query), language=None, wrap_lines=True)
