"""A bug's page, made from its scenarios."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.scenario import Scenario, load, variants
from gradebook.ui import keys
from gradebook.ui.parts import (
    address,
    controls,
    deeper,
    drafts,
    matter,
    predict,
    present,
    report,
    stages,
    takehome,
    the_end,
    words,
)
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.heart import below
from gradebook.ui.parts.lesson import lesson
from gradebook.ui.parts.shortcuts import shortcuts
from gradebook.ui.parts.widget import picking
from gradebook.ui.parts.words import terms
from gradebook.ui.parts.workings import workings
from gradebook.ui.rooms import bar as room


def bug_page(name: str) -> None:
    """The whole page of the bug `name`."""
    address.arrive(name)
    room.before(name)
    scenario = address.case(name)
    draft = drafts.of(scenario)
    room.bar(name, scenario)
    covered = predict.covered(scenario.name)
    settings = _title(draft, covered)
    lesson(draft)
    stage = st.container(key="stage")
    formulas = st.container()
    if not covered:
        formulas = _story(draft)
    rest(name, draft, covered, settings, stage, formulas)
    if not covered:
        the_end.the_end(name)


def _title(draft: Draft, covered: bool) -> DeltaGenerator:
    """The title line: the bug, its report, and, once the report is
    uncovered, the cases. The place for the settings."""
    scenario, main = draft.scenario, load(draft.scenario.bug)
    address.problems()
    with st.container(horizontal=True, key="title-line", vertical_alignment="bottom"):
        st.title(words.plain(main.title), anchor=False, width="content")
        st.html(f'<p class="gb-facts">{report.facts(scenario)}</p>', width="stretch")
        if not predict.covered(main.name):
            _cases(scenario)
        place = st.container(width="content")
    matter.back(scenario.bug)
    return place


def _cases(scenario: Scenario) -> None:
    """The menu of the bug's cases."""
    among = {s.name: s for s in variants(scenario.bug)}
    menu = st.popover(
        f"Case: {words.plain(_case(scenario))}",
        key=f"cases-{scenario.bug}",
        type="tertiary",
        on_change="rerun",
    )

    def pick(name: str) -> None:
        keys.CASES.get()[scenario.bug] = name
        st.rerun()

    if menu.open:
        menu.pills(
            "Case",
            list(among),
            format_func=lambda n: words.plain(_case(among[n])),
            required=True,
            label_visibility="collapsed",
            **picking(f"case-{scenario.bug}", scenario.name, pick),
        )


def _case(scenario: Scenario) -> str:
    return scenario.title if scenario.variant else "The report"


def _story(draft: Draft) -> DeltaGenerator:
    """What happened, beside the code. The place for the formulas."""
    scenario = draft.scenario
    left, right = st.columns([9, 10], gap="large")
    with left:
        where = "this case's batch" if scenario.variant else "the report's batch"
        text = f"What happened in {where}"
        st.markdown(
            words.titled(text, words.plain(scenario.story), level=3),
            help=terms(scenario.story),
        )
        st.markdown(words.plain(scenario.lesson), help=terms(scenario.lesson))
        place = st.container()
    with right:
        report.the_code(draft.swap, load(scenario.bug))
    return place


@st.fragment(key="rest")
def rest(
    name: str,
    draft: Draft,
    covered: bool,
    settings: DeltaGenerator,
    stage: DeltaGenerator,
    formulas: DeltaGenerator,
) -> None:
    """What a finished edit draws again, apart from the board. Every element
    here costs each edit time; what edits do not change stands outside."""
    with draft.lock:
        if not covered:
            with settings:
                _settings(draft)
            row = min(draft.row, draft.comparison.batch.rows - 1)
            if row >= 0:
                with stage, below(draft, "opened-stage"):
                    stages.opened(draft)
                if not draft.stage:
                    with formulas:
                        workings(draft, row)
            _more(draft)
        _keys(draft)
        room.moved(name, draft)
        address.depart(name)


def _settings(draft: Draft) -> None:
    menu = st.popover(
        "Settings",
        key=f"settings-{draft.scenario.bug}",
        type="tertiary",
        on_change="rerun",
    )
    if menu.open:
        with menu:
            controls.switches(draft)


def _more(draft: Draft) -> None:
    """Four parts that open in place, one at a time."""
    parts: dict[str, tuple[str, Callable[[Draft], None]]] = {
        "affected": ("Am I affected?", _affected),
        "matter": ("Does it matter?", lambda d: matter.matter(d.scenario.bug)),
        "home": ("Take it home", takehome.take_home),
        "deeper": ("Go deeper", deeper.deeper),
    }

    def turn(part: str) -> None:
        draft.opened = "" if draft.opened == part else part

    with st.container(horizontal=True, gap="medium", key="more"):
        for part, (label, _) in parts.items():
            mark = " ▾" if draft.opened == part else ""
            st.button(
                label + mark,
                key=f"more-{part}",
                type="tertiary",
                on_click=turn,
                args=(part,),
            )
    if draft.opened in parts:
        with st.container(key="opened"):
            parts[draft.opened][1](draft)


def _affected(draft: Draft) -> None:
    report.affected(draft.scenario)
    report.dispute(load(draft.scenario.bug))


def _keys(draft: Draft) -> None:
    """The page's keys: undo, redo, and the presenter's."""
    top = keys.OPENED.get()
    keys.OPENED.drop()
    shortcuts(
        draft,
        {
            "back": partial(stages.step, draft, -1),
            "on": partial(stages.step, draft, 1),
            "reveal": partial(room.space, draft.scenario),
        },
        presenter=present.on(),
        top=top,
    )
