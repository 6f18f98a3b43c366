"""The shelf of plans: a lead chooses one, or bugs of their own, and how long
the session lasts."""

from __future__ import annotations

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.cases.scenario import load
from gradebook.classroom.plan import (
    HOUR,
    MINUTES,
    OWN,
    Step,
    least,
    plan,
    query,
    shelf,
)
from gradebook.core.errors import GradebookError
from gradebook.training.study import default_run
from gradebook.ui.parts import matter, present, words
from gradebook.ui.parts.shell import bug_files, first_page
from gradebook.ui.rooms import seat

MOST = 480
"""Minutes that a session lasts at most."""


def plans() -> None:
    """The choice of a plan, and its steps."""
    with st.container(horizontal=True, key="plan-choice"):
        name = st.selectbox(
            "Plan",
            [*shelf(), OWN],
            format_func=_named,
            key="plan",
            width=260,
            persist_state="session",
        )
        minutes = st.number_input(
            "Minutes",
            1,
            MOST,
            MINUTES,
            step=5,
            key="minutes",
            width=140,
            persist_state="session",
        )
    bugs = () if name == HOUR else _own() if name == OWN else shelf()[name].bugs
    if name == OWN and not bugs:
        st.markdown("Choose the bugs of your plan.")
        return
    try:
        steps = plan(bugs, int(minutes))
    except GradebookError:
        wanted = bugs or shelf()[HOUR].bugs
        st.error(
            f"{len(wanted)} bugs take at least {least(wanted)} minutes,"
            f" {minutes} are too few."
        )
        return
    _all(steps)


def _named(name: str) -> str:
    return "Bugs that I choose" if name == OWN else shelf()[name].title


def _own() -> tuple[str, ...]:
    """The bugs that the lead picks by hand, in the order of the pages."""
    return tuple(
        st.pills(
            "Bugs",
            [name for name in bug_files() if name in BUGS],
            format_func=lambda name: words.plain(load(name).title),
            selection_mode="multi",
            key="bugs",
            wrap=True,
            persist_state="session",
        )
    )


def _all(steps: tuple[Step, ...]) -> None:
    """The steps of the plan, and folded those that it leaves out."""
    held = [step for step in steps if step.begin >= 0]
    others = steps[len(held) :]
    bugs = {step.bug for step in held if step.bug}
    word = "bug" if len(bugs) == 1 else "bugs"
    st.markdown(
        f"**{sum(step.minutes for step in held)} minutes, {len(held)} steps,"
        f" {len(bugs)} {word}.** Each link opens the case with the faulty"
        " side covered. The presenter view has larger type and no menus: ←"
        " and → go through the stages, and the space key reveals. The usual"
        " answer is what most people would think first; that is our guess and"
        " not from a survey."
    )
    for step in held:
        _step(step)
    if others:
        with st.expander(f"{len(others)} bugs that this plan leaves out"):
            for step in others:
                _step(step)


def _step(step: Step) -> None:
    title = f"{_time(step)} · {words.plain(step.title)}"
    with st.container(border=True, key=f"step-{step.begin}-{step.bug}"):
        st.subheader(title, anchor=False)
        st.markdown("  \n".join(_lines(step)))
        with st.container(horizontal=True):
            _links(step)


def _time(step: Step) -> str:
    if step.begin < 0:
        return "Not in this plan"
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
        st.page_link(first_page(), label="Open Home")
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
