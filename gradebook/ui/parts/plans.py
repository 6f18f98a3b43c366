"""The shelf of plans: a lead chooses one, or bugs of their own, and how long
the session lasts."""

from __future__ import annotations

from functools import partial
from typing import Any

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
from gradebook.ui import keys
from gradebook.ui.parts import shell, words
from gradebook.ui.parts.desk import curves_link, desk
from gradebook.ui.parts.shell import bug_files, page_files, page_title
from gradebook.ui.rooms import seat

MOST = 480
"""Minutes that a session lasts at most."""


def plans() -> None:
    """The choice of a plan, and its steps. The address holds the choice."""
    keep: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    with st.container(horizontal=True, key="plan-choice"):
        every = [*shelf(), OWN]
        st.selectbox("Plan", every, format_func=_named, key="plan", width=260, **keep)
        st.number_input(
            "Minutes", 1, MOST, MINUTES, step=5, key="minutes", width=140, **keep
        )
    if keys.widget("plan") == OWN:
        st.pills(
            "Bugs",
            [name for name in bug_files() if name in BUGS],
            format_func=lambda name: words.plain(load(name).title),
            selection_mode="multi",
            key="bugs",
            wrap=True,
            **keep,
        )
        st.markdown("The address of this page is now the link of your plan.")
    bugs = _bugs()
    if bugs == () and keys.widget("plan") == OWN:
        st.markdown("Choose the bugs of your plan.")
        return
    try:
        _all(plan(bugs, keys.widget("minutes")))
    except GradebookError:
        wanted = bugs or shelf()[HOUR].bugs
        st.error(
            f"{len(wanted)} bugs take at least {least(wanted)} minutes,"
            f" {keys.widget('minutes')} are too few."
        )


def onward(question: str) -> None:
    """Which step of the lead's plan the question is, and the way to the next."""
    try:
        steps = plan(_bugs(), keys.widget("minutes") or MINUTES)
    except GradebookError:
        return
    held = [step for step in steps if step.begin >= 0]
    at = next((n for n, step in enumerate(held, 1) if step.question == question), 0)
    if not at:
        return
    st.markdown(f"Step {at} of {len(held)}.")
    if at == len(held):
        return
    here, after = held[at - 1 : at + 1]
    label = f"Next: {words.plain(after.title)}"
    if here.scenario and after.scenario and here.bug == after.bug:
        # A page reads no address but the one it was opened with.
        go = partial(keys.CASES.get().update, {after.bug: after.scenario})
        st.button(label, key="plan-next", on_click=go)
    elif here.trains and after.trains:
        go = partial(desk().choose, **vars(default_run(after.bug)))
        st.button(label, key="plan-next", on_click=go)
    else:
        _link(after, label)


def _named(name: str) -> str:
    return "Bugs that I choose" if name == OWN else shelf()[name].title


def _bugs() -> tuple[str, ...]:
    """The bugs of the plan; none for the hour, and before the first is chosen."""
    name = keys.widget("plan") or HOUR
    if name == OWN:
        return tuple(keys.widget("bugs") or ())
    return () if name == HOUR else shelf()[name].bugs


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
    room = seat.rooms().read(seat.code()) if seat.code() else None
    revealed = room.revealed if room else frozenset()
    if room:
        done = sum(step.question in revealed for step in held)
        st.markdown(f"**{done} of {len(held)} questions revealed.**")
    for step in held:
        _step(step, step.question in revealed)
    if others:
        with st.expander(f"{len(others)} bugs that this plan leaves out"):
            for step in others:
                _step(step)


def _step(step: Step, revealed: bool = False) -> None:
    title = f"{_time(step)} · {words.plain(step.title)}" + " ✓" * revealed
    with st.container(border=True, key=f"step-{step.begin}-{step.bug}"):
        st.subheader(title, anchor=False)
        lines = _lines(step)
        asked = 1 + bool(step.choices)
        for part, some in zip(st.columns(2), (lines[:asked], lines[asked:])):
            part.markdown("  \n".join(some))
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
    _link(step, "")
    if not step.scenario:
        return
    _link(step, "Presenter view", **{shell.PRESENT: "1"})
    if step.next:
        after = query(step.next) | seat.carried()
        label = f"Next, if there is time: {words.plain(load(step.next).title)}"
        st.page_link(bug_files()[step.bug], label=label, query_params=after)


def _link(step: Step, label: str, **others: str) -> None:
    """A link to what the step opens, with the room."""
    if step.trains:
        run = default_run(step.bug)
        curves_link(label or "Open the training runs", run, **seat.carried())
    elif step.scenario:
        opened = query(step.scenario) | seat.carried() | others
        file = bug_files()[step.bug]
        st.page_link(file, label=label or "Open the case", query_params=opened)
    else:
        file = page_files()[step.page]
        label = label or f"Open “{page_title(file)}”"
        st.page_link(file, label=label, query_params=seat.carried())
