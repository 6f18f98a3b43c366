"""A bug's page, made from its scenarios."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.scenario import Scenario, load, variants
from gradebook.output.panels import panels, telling
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
    tryit,
    words,
)
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.folding import folded
from gradebook.ui.parts.heart import below, heart, listed
from gradebook.ui.parts.pictures import values_of
from gradebook.ui.parts.shortcuts import shortcuts
from gradebook.ui.parts.terms import terms
from gradebook.ui.parts.widget import picking
from gradebook.ui.rooms import bar as room


def bug_page(name: str) -> None:
    """The whole page of the bug `name`."""
    address.arrive(name)
    room.before(name)
    scenario = address.case(name)
    draft = drafts.of(scenario)
    room.bar(name, scenario)
    covered = predict.covered(name)
    _head(draft, covered)
    with st.container(key="work"):
        if not covered:
            predict.verdict(draft.scenario, _numbers(draft, covered))
        beside = st.container(key="beside")
        with st.container(key="board"):
            heart(draft, scenario.telltale.kind, covered)
    why = st.container(key="why")
    if not covered:
        _lasting(draft)
    rest(name, draft, covered, beside, why)


def _head(draft: Draft, covered: bool) -> None:
    """Title and report; the question, or after it the cases."""
    scenario, main = draft.scenario, load(draft.scenario.bug)
    st.title(words.plain(main.title))
    address.problems()
    said, facts = scenario.teaser, report.facts(scenario)
    if not covered:
        said = scenario.claim
        facts += f" · breaks the stage `{draft.swap.stage}`"
    st.markdown(f"{facts}  \n{words.plain(said)}", help=terms(said))
    if covered:
        answer = partial(room.pick, scenario)
        predict.ask(scenario, draft.edited, answer, _numbers(draft, covered))
        return
    among = {s.name: s for s in variants(scenario.bug)}

    def pick(name: str) -> None:
        keys.CASES.get()[scenario.bug] = name
        st.rerun()

    st.pills(
        "Case",
        list(among),
        format_func=lambda n: words.plain(_case(among[n])),
        required=True,
        label_visibility="collapsed",
        **picking(f"case-{scenario.bug}", scenario.name, pick),
    )
    matter.back(scenario.bug)


def _case(scenario: Scenario) -> str:
    return scenario.title if scenario.variant else "The report"


def _numbers(draft: Draft, covered: bool) -> str:
    """What the engines give the row of the question in the original batch,
    in a sentence."""
    kind, row = draft.scenario.telltale.kind, draft.scenario.focus
    correct, faulty = values_of(draft.original, kind)
    title = telling(panels(draft.original, kind)).title
    named = f"Row {row}'s {title}"
    names = draft.scenario.engine_names
    if covered:
        return f"{named}: {names[0]} {correct[row]}."
    return (
        f"{named} in the original batch: {names[0]} {correct[row]},"
        f" {names[1]} {faulty[row]}."
    )


@st.fragment(key="rest")
def rest(
    name: str,
    draft: Draft,
    covered: bool,
    beside: DeltaGenerator,
    why: DeltaGenerator,
) -> None:
    """What a finished edit draws again, apart from the board. Every element
    here costs each edit time; what edits do not change stands outside."""
    with draft.lock:
        if not covered:
            with beside:
                tryit.challenge(draft)
                folded(
                    "Settings",
                    "settings",
                    partial(controls.switches, draft),
                    at_first=tryit.needs_settings(draft),
                )
            rows = draft.comparison.batch.rows
            with why, below(draft):
                if rows:
                    stages.where(draft)
                listed(draft, draft.scenario.telltale.kind)
            if not draft.faults:
                takehome.take_home(draft)
            if rows:
                deeper.deeper(draft)
        _keys(draft, covered)
        room.moved(name, draft)
        address.depart(name)


def _lasting(draft: Draft) -> None:
    """The lesson, the code and the report, which no edit changes."""
    main, lesson = load(draft.scenario.bug), draft.scenario.lesson
    st.markdown(
        f"**Notice in the original batch:** {words.plain(lesson)}",
        help=terms(lesson),
    )
    report.the_code(draft.swap, main)
    report.affected(draft.scenario)
    report.dispute(main)
    matter.matter(main.name)


def _keys(draft: Draft, covered: bool) -> None:
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
        focus="" if covered else draft.scenario.bug,
        top=top,
    )
