"""The shelf of plans: a lead chooses one, or bugs, and how long it lasts."""

from pathlib import Path
from typing import Any

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.classroom.plan import (
    HOUR,
    MINUTES,
    OWN,
    PlanStep,
    minutes_of,
    plan,
    query,
    shelf,
)
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted
from gradebook.ui import keys
from gradebook.ui.parts import address, words
from gradebook.ui.parts.address import bug_files, page_files, page_title
from gradebook.ui.parts.desk import PAGE as TRAINING_PAGE
from gradebook.ui.parts.desk import first_place, query_of
from gradebook.ui.rooms import seat

A_DAY = 8 * 60
"""The most minutes of a plan. A day has room for everything: all steps of all bugs take
237 (counted on 2026-11-28)."""


def plans() -> None:
    """The choice of a plan, and its steps. The address holds the choice."""
    keep: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    with st.container(horizontal=True, key="plan-choice"):
        st.selectbox(
            "Plan",
            [*shelf(), OWN],
            key="plan",
            width=260,
            on_change=_take_minutes,
            **keep,
        )
        st.number_input(
            "Minutes", 1, A_DAY, MINUTES, step=5, key="minutes", width=140, **keep
        )
    if keys.widget("plan") == OWN:
        st.pills(
            "Bugs",
            list(bug_files()),
            format_func=lambda name: words.plain(load(name).title),
            selection_mode="multi",
            key="bugs",
            wrap=True,
            **keep,
        )
        st.markdown("The address of this page is now the link of your plan.")
        if not keys.widget("bugs"):
            st.markdown("Choose the bugs of your plan.")
            return
    try:
        steps = _chosen()
    except GradebookError as error:
        st.error(words.as_typed(words.message_of(error)))
        return
    bugs = {step.bug for step in steps if step.bug}
    st.markdown(
        f"**{sum(step.minutes for step in steps)} minutes, {len(steps)} steps,"
        f" {counted(len(bugs), 'bug')}.** Each link opens the case with the faulty"
        " side covered. The presenter view has larger type and no menus: ←"
        " and → go through the stages, and the space key reveals. “Usual"
        " answer” is our guess at what most people say first."
    )
    room = seat.here()
    revealed = room.revealed if room else []
    if room:
        done = sum(step.question in revealed for step in steps)
        st.markdown(f"**{done} of {len(steps)} questions revealed.**")
    st.toggle(
        "Show the answers and your notes",
        key="plan-answers",
        help="Off while learners may see this page.",
        persist_state="session",
    )
    for step in steps:
        _step(step, step.question in revealed)


def _take_minutes() -> None:
    """Minutes as the chosen plan has them. The lead's own bugs keep what was typed."""
    chosen = keys.widget("plan")
    if chosen != OWN:
        keys.show("minutes", minutes_of(chosen))


def onward(question: str) -> None:
    """Which step of the lead's plan the question is, when it was planned, and the way
    to the next."""
    number, steps = number_of(question)
    if not number:
        return
    step = steps[number - 1]
    planned = f"planned: minutes {step.begin} to {step.begin + step.minutes}"
    st.markdown(f"Step {number} of {len(steps)}, {planned}.")
    if number < len(steps):
        label = f"Next: {words.plain(steps[number].title)}"
        # Another button on each step: one that kept the focus would be pressed by
        # the space key, which reveals.
        if st.button(label, key=f"plan-next__at__{number}", type="tertiary"):
            keys.ADDRESS.drop()  # a step on the same page is an arrival, too
            file, link = _opened(steps[number])
            st.switch_page(file, query_params=link)


def number_of(question: str) -> tuple[int, tuple[PlanStep, ...]]:
    """The question's number in the lead's plan, from 1, and the plan's steps; 0 for
    one that is not in it."""
    try:
        steps = _chosen()
    except GradebookError:
        return 0, ()
    questions = [step.question for step in steps]
    return questions.index(question) + 1 if question in questions else 0, steps


def notes(step: PlanStep) -> list[str]:
    """What a lead may say of the question, and its answer."""
    usual = f"{step.usual} {step.why}"
    texts = {"Usual answer, and why": usual, "The truth": step.truth, "Then": step.do}
    return [_line(head, text) for head, text in texts.items() if text.strip()]


def _line(head: str, text: str) -> str:
    return f"**{head}:** {words.plain(text)}"


def _chosen() -> tuple[PlanStep, ...]:
    """The plan in the page's widgets; before they are drawn, the hour."""
    plans = shelf() | {HOUR: (), OWN: keys.widget("bugs") or ()}
    return plan(plans[keys.widget("plan") or HOUR], keys.widget("minutes") or MINUTES)


def _step(step: PlanStep, revealed: bool) -> None:
    asked = {"Ask": step.ask, "Choices": " · ".join(step.choices)}
    parts = [[_line(head, text) for head, text in asked.items() if text.strip()]]
    if keys.widget("plan-answers"):
        parts.append(notes(step))
    with st.container(border=True, key=f"step-{step.begin}-{step.bug}"):
        time = f"{step.begin:02d}–{step.begin + step.minutes:02d} min"
        mark = " ✓" if revealed else ""
        st.subheader(f"{time} · {words.plain(step.title)}{mark}", anchor=False)
        for part, lines in zip(st.columns(len(parts)), parts):
            part.markdown("  \n".join(lines))
        file, link = _opened(step)
        title = page_title(place(step)[0])
        label = "Open the case" if step.scenario else f"Open “{title}”"
        links = {label: link}
        if step.scenario:
            links["Presenter view"] = link | {address.PRESENT: "1"}
        if step.next:
            label = f"Next, if there is time: {words.plain(load(step.next).title)}"
            links[label] = query(step.next) | address.carried()
        with st.container(horizontal=True):
            for label, link in links.items():
                st.page_link(file, label=label, query_params=link)


def place(step: PlanStep) -> tuple[str, dict[str, str]]:
    """The page of the step, and the parameters of its link."""
    if step.trains:
        return TRAINING_PAGE, query_of(first_place(step.bug))
    if step.scenario:
        return step.bug, query(step.scenario)
    return step.page, {}


def _opened(step: PlanStep) -> tuple[Path, dict[str, str]]:
    page, link = place(step)
    return page_files()[page], link | address.carried()
