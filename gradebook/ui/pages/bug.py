"""A bug's page, made from its scenarios."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from gradebook.analysis.comparison import Comparison, compare
from gradebook.analysis.formula import worked
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.record import bug
from gradebook.cases.scenario import SPECIAL_CONTROLS, Scenario, load, variants
from gradebook.core.errors import GradebookError
from gradebook.engine.trainer import NORMALIZATIONS, draws
from gradebook.output.figures import RowPicture, rows_figure, squashes
from gradebook.ui.parts import (
    address,
    controls,
    drafts,
    grid,
    numbers,
    predict,
    room,
    sections,
    takehome,
    tryit,
    words,
)
from gradebook.ui.parts import influence_map as moves
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import (
    chart,
    haunted,
    ink,
    panels,
    prompts_of,
    summary,
    values_of,
)
from gradebook.ui.parts.shell import require_entry
from gradebook.ui.parts.widget import picking

WHOLE = "whole-page"
"""In the session while a whole page runs, not what an edit runs again."""

LINEAR, SYMLOG = "linear axis", "symlog axis"


def bug_page(name: str) -> None:
    """The whole page of the bug `name`."""
    require_entry()
    address.arrive(name)
    scenario = address.case(name)
    room.bar(name, scenario, drafts.of(scenario))
    address.depart(name)
    st.session_state[WHOLE] = True
    _page(name, scenario, predict.covered(name))


@st.fragment
def _page(name: str, scenario: Scenario, covered: bool) -> None:
    """All but the room: what an edit runs again.

    In the order in which it is read; but of an edit the picture goes to the
    browser first, and all else a moment later: cells show by themselves what
    was typed there, and the address takes the browser the time of a picture.
    """
    alone = not st.session_state.pop(WHOLE, False)
    shown = address.case(name).name, predict.covered(name)
    if shown != (scenario.name, covered):
        st.rerun(scope="app")  # another case, or an answer: the room's too
    draft, swapped = drafts.of(scenario), bug(name)
    edited = alone and draft.drawn is not draft.state
    head, screen, rest = (
        st.container(key=f"live-{part}") for part in ("head", "screen", "rest")
    )
    share = min(max(grid.width(draft) / 1200, 0.42), 0.62)
    left, right = screen.columns([share, 1 - share])
    if edited:
        with right:
            _picture_side(draft, swapped, covered)
    with head:
        _head(draft, swapped, covered)
    with left:
        _table_side(draft, swapped, covered)
    if alone:
        address.depart(name, edited=True)
    if not edited:
        with right:
            _picture_side(draft, swapped, covered)
    if not covered:
        with rest:
            _rest(draft, swapped)
    draft.drawn = draft.state
    if alone and room.leads():
        st.rerun(scope="app")  # the room follows the row and the stage


def _rest(draft: Draft, swapped: Swap) -> None:
    """Everything below the first screen."""
    comparison, wrong = computed(draft, swapped)
    _settings(draft, swapped, comparison)
    if comparison.batch.rows:
        with st.container(key="stale-below" if wrong else "below"):
            _below(draft, swapped, comparison)
    sections.the_line(swapped)
    if comparison.batch.rows:
        tryit.law(swapped, comparison, draft.state.evaluation)
    sections.dispute(load(swapped.name))
    tryit.challenges(draft, comparison, bool(wrong))
    if not wrong:
        tryit.shrinking(draft, swapped)
        takehome.take_home(draft)


def _now(draft: Draft, swapped: Swap, covered: bool) -> str:
    """The selected row's number in words: on a first page text is there
    before the table and the picture, which the browser has to fetch a
    program for."""
    comparison, wrong = computed(draft, swapped)
    kind = draft.scenario.telltale.kind
    if wrong or draft.row >= comparison.batch.rows:
        return ""
    correct, faulty = values_of(comparison, kind)
    named = panels(comparison, kind)[-1].title.split(" (")[0]
    said = f"Row {draft.row}'s {named}: correct {correct[draft.row]}"
    return f"{said}." if covered else f"{said}, faulty {faulty[draft.row]}."


def _head(draft: Draft, swapped: Swap, covered: bool) -> None:
    """Title and claim; the question, or after the answer the cases."""
    scenario = draft.scenario
    st.title(words.plain(load(scenario.bug).title))
    address.problems()
    sections.claim(scenario, swapped, _now(draft, swapped, covered))
    if covered:
        predict.ask(scenario, draft.edited)
        return

    among = {s.name: s for s in variants(scenario.bug)}

    def pick(name: str) -> None:
        st.session_state["cases"][scenario.bug] = name

    st.pills(
        "Case",
        list(among),
        format_func=lambda n: words.plain(_case(among[n])),
        required=True,
        label_visibility="collapsed",
        **picking(f"case-{scenario.bug}", scenario.name, pick),
    )


def _case(scenario: Scenario) -> str:
    return scenario.title if scenario.variant else "The report"


def computed(draft: Draft, swapped: Swap) -> tuple[Comparison, list[str]]:
    """The comparison of the draft, or the last good one with what is
    wrong now; worked out once for each state."""
    if draft.done is draft.state and draft.good is not None:
        return draft.good, draft.faults
    wrong = draft.wrong()
    if not wrong:
        try:
            draft.good = compared(draft.state)
        except GradebookError as error:
            wrong = [words.place(error)]
    if draft.good is None:
        draft.good = own(draft, swapped)
    draft.done, draft.faults = draft.state, wrong
    return draft.good, wrong


def own(draft: Draft, swapped: Swap) -> Comparison:
    """The comparison of the scenario's own state."""
    if draft.own is None:
        draft.own = compare(swapped, draft.origin.batch())
    return draft.own


def _table_side(draft: Draft, swapped: Swap, covered: bool) -> None:
    """The table, what is wrong in it, and the selected row as widgets."""
    comparison, wrong = computed(draft, swapped)
    heard: tuple = ()
    if draft.row < comparison.batch.rows and not wrong:
        heard = worked(comparison, draft.row)
    shown = None if wrong else comparison
    results = grid.results(shown, draft.scenario.telltale.kind)
    if covered:
        results, heard = {"correct": results["correct"]}, heard[:1]
    grid.grid(draft, results, heard)
    say(wrong)
    grid.row_widgets(draft)
    grid.buttons(draft)
    grid.history(draft)


def _picture_side(draft: Draft, swapped: Swap, covered: bool) -> None:
    """The picture, and beside the truth what was predicted."""
    comparison, wrong = computed(draft, swapped)
    kind, stale = draft.scenario.telltale.kind, bool(wrong)
    if comparison.batch.rows:
        with st.container(key="stale" if stale else "fresh"):
            picture(draft, swapped, comparison, kind, stale, covered)
        if not covered:
            predict.told(draft.scenario, draft.edited)


def say(wrong: list[str]) -> None:
    """What is wrong, as one message, in a place that is always there: what
    stands below it does not move from one element to the next."""
    slot = st.empty()
    if not wrong:
        return
    shown = [words.plain(text) for text in wrong[:5]]
    more = len(wrong) - 5
    if more > 0:
        shown.append(f"and {more} more")
    slot.error("  \n".join(shown))


def picture(
    draft: Draft,
    swapped: Swap,
    comparison: Comparison,
    kind: str,
    stale: bool,
    covered: bool,
) -> None:
    """The rows of both engines, under a tell-tale, with its summary."""
    shown = panels(comparison, kind)
    ranges = [] if covered else _ranges(draft, swapped, comparison)
    if draft.edited and not covered:
        shown = haunted(shown, panels(own(draft, swapped), kind))
    if ranges:
        shown = [replace(panel, ranges=ranges) for panel in shown]
    outlier = None if covered else squashes(shown)
    axis = _axis(draft, outlier)
    prompts = prompts_of(draft.table, comparison)
    drawn = RowPicture(
        shown, prompts, draft.row, axis == SYMLOG, covered, ink()
    )
    said = summary(comparison, kind)
    if covered:
        said = "The correct side. The faulty one is covered."
    key = f"picture-{draft.scenario.name}"
    chart(
        rows_figure(drawn),
        key=key,
        on_select=lambda: _clicked(draft, key),
        selection_mode="points",
        config={
            "displaylogo": False,
            "modeBarButtons": [["toImage"]],
            "toImageButtonOptions": {
                "format": "svg",
                "filename": draft.scenario.name,
            },
        },
        alt=f"Each row's result. {said}",
    )
    if stale:
        said = "**Stale: the last good batch.** " + said
    if outlier is not None:
        said += (
            f" Row {outlier} is so large that a linear axis would hide the"
            " others."
        )
    if ranges:
        said += " Pale bars: the faulty value over 200 draws."
    st.markdown(said)
    if outlier is not None:
        _axis_widget(draft, axis)
    if not covered:
        numbers.offered(
            "the picture's numbers", key, lambda: numbers.of_rows(drawn)
        )


def _axis(draft: Draft, outlier: int | None) -> str:
    if outlier is None:
        return LINEAR
    return st.session_state.setdefault("axes", {}).get(
        draft.scenario.name, SYMLOG
    )


def _axis_widget(draft: Draft, axis: str) -> None:
    def keep(one: str) -> None:
        st.session_state["axes"][draft.scenario.name] = one

    st.segmented_control(
        "Axis",
        [LINEAR, SYMLOG],
        required=True,
        label_visibility="collapsed",
        **picking(draft.named("axis"), axis, keep),
    )


def _ranges(
    draft: Draft, swapped: Swap, comparison: Comparison
) -> list[tuple[float, float]]:
    """Least and greatest faulty advantage of each row over the draws."""
    batch = comparison.batch
    after = draft.state.normalization == NORMALIZATIONS[-1]
    if "subsample" not in draft.scenario.controls or not after:
        return []
    if bool((batch.kept_steps == batch.steps).all()):
        return []
    taken = draws(swapped.engine, batch)
    low = taken.nan_to_num(nan=math.inf).amin(0)
    high = taken.nan_to_num(nan=-math.inf).amax(0)
    return list(zip(low.tolist(), high.tolist()))


def _clicked(draft: Draft, key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        draft.select(int(points[0]["customdata"][0]))


def _settings(draft: Draft, swapped: Swap, comparison: Comparison) -> None:
    scenario = draft.scenario
    lead = "Notice, in the unedited case:" if draft.edited else "Notice:"
    st.markdown(f"**{lead}** {words.plain(scenario.lesson)}")
    sections.affected(scenario)
    st.markdown(words.titled("Settings"))
    controls.settings(draft)
    for name in scenario.controls:
        if name in SPECIAL_CONTROLS:
            controls.special(draft, name)
    if "guard" in scenario.controls:
        sections.guard(comparison.batch)
    if "phase" in scenario.controls and comparison.correct.loss is not None:
        sections.phases(swapped, comparison.batch, draft.state.evaluation)


def _below(draft: Draft, swapped: Swap, comparison: Comparison) -> None:
    row = min(draft.row, comparison.batch.rows - 1)
    stage = sections.strip(draft, swapped, comparison)
    left, right = st.columns([11, 13])
    with left:
        sections.stage(draft, swapped, comparison, stage)
    with right:
        sections.why(comparison, row, worked(comparison, row))
    moves.moves(draft, swapped, comparison)
    sections.other_run(draft.scenario, swapped, comparison.batch)
    sections.estimators(
        draft.scenario, swapped, comparison.batch, draft.edited
    )
