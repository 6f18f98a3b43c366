"""The shelf of plans: a lead chooses one, or bugs, and how long it lasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.classroom.plan import HOUR, MINUTES, OWN, Step, least, plan, query, shelf
from gradebook.core.errors import GradebookError
from gradebook.training.study import default_run
from gradebook.ui import keys
from gradebook.ui.parts import address, words
from gradebook.ui.parts.address import bug_files, page_files, page_title
from gradebook.ui.parts.desk import PAGE as TRAINING_PAGE
from gradebook.ui.parts.desk import query_of
from gradebook.ui.rooms import seat


def plans() -> None:
    """The choice of a plan, and its steps. The address holds the choice."""
    keep: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    with st.container(horizontal=True, key="plan-choice"):
        every = [*shelf(), OWN]
        st.selectbox(
            "Plan",
            every,
            format_func=lambda name: (
                "Bugs that I choose" if name == OWN else shelf()[name].title
            ),
            key="plan",
            width=260,
            **keep,
        )
        st.number_input(
            "Minutes", 1, 480, MINUTES, step=5, key="minutes", width=140, **keep
        )
    chooses_bugs = keys.widget("plan") == OWN
    if chooses_bugs:
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
    bugs = _bugs()
    if chooses_bugs and not bugs:
        st.markdown("Choose the bugs of your plan.")
        return
    try:
        _steps(plan(bugs, keys.widget("minutes")))
    except GradebookError:
        needed = bugs or shelf()[HOUR].bugs
        st.error(
            f"{len(needed)} bugs take at least {least(needed)} minutes,"
            f" {keys.widget('minutes')} are too few."
        )


def onward(question: str) -> None:
    """Which step of the lead's plan the question is, and the way to the next."""
    try:
        steps = _held(plan(_bugs(), keys.widget("minutes") or MINUTES))
    except GradebookError:
        return
    questions = [step.question for step in steps]
    if question not in questions:
        return
    number = questions.index(question) + 1
    st.markdown(f"Step {number} of {len(steps)}.")
    if number < len(steps):
        following = steps[number]
        label = f"Next: {words.plain(following.title)}"
        if st.button(label, key="plan-next", type="tertiary"):
            keys.ADDRESS.drop()  # a step on the same page is an arrival, too
            file, link = _opened(following)
            st.switch_page(file, query_params=link)


def _bugs() -> tuple[str, ...]:
    """The bugs of the plan; none for the hour, and before the first is chosen."""
    name = keys.widget("plan") or HOUR
    if name == OWN:
        return tuple(keys.widget("bugs") or ())
    return () if name == HOUR else shelf()[name].bugs


def _held(steps: tuple[Step, ...]) -> list[Step]:
    return [step for step in steps if step.begin >= 0]


def _steps(steps: tuple[Step, ...]) -> None:
    """The steps of the plan, and folded those that it leaves out."""
    held = _held(steps)
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
    room = seat.rooms().read(seat.code()) if seat.code() else None
    revealed = room.revealed if room else []
    if room:
        done = sum(step.question in revealed for step in held)
        st.markdown(f"**{done} of {len(held)} questions revealed.**")
    for step in held:
        _step(step, step.question in revealed)
    if others:
        with st.expander(f"{len(others)} bugs that this plan leaves out"):
            for step in others:
                _step(step, False)


def _step(step: Step, revealed: bool) -> None:
    time = f"{step.begin:02d}–{step.begin + step.minutes:02d} min"
    if step.begin < 0:
        time = "Not in this plan"
    asked = {"Ask": step.ask, "Choices": " · ".join(step.choices)}
    answered = {
        "Usual answer, and why": f"{step.usual} {step.why}".strip(),
        "The truth": step.truth,
        "Then": step.do,
    }
    with st.container(border=True, key=f"step-{step.begin}-{step.bug}"):
        mark = " ✓" if revealed else ""
        st.subheader(f"{time} · {words.plain(step.title)}{mark}", anchor=False)
        for part, texts in zip(st.columns(2), (asked, answered)):
            lines = [f"**{head}:** {words.plain(t)}" for head, t in texts.items() if t]
            part.markdown("  \n".join(lines))
        file, link = _opened(step)
        label = f"Open “{page_title(file)}”"
        if step.trains:
            label = "Open the training runs"
        elif step.scenario:
            label = "Open the case"
        links = {label: link}
        if step.scenario:
            links["Presenter view"] = link | {address.PRESENT: "1"}
        if step.next:
            label = f"Next, if there is time: {words.plain(load(step.next).title)}"
            links[label] = query(step.next) | address.carried()
        with st.container(horizontal=True):
            for label, link in links.items():
                st.page_link(file, label=label, query_params=link)


def _opened(step: Step) -> tuple[Path, dict[str, str]]:
    """The page of a step, and its parameters."""
    if step.trains:
        page, link = TRAINING_PAGE, query_of(default_run(step.bug))
    elif step.scenario:
        page, link = step.bug, query(step.scenario)
    else:
        page, link = step.page, {}
    return page_files()[page], link | address.carried()
