"""The batch and both engines' results: what an edit draws again first."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from gradebook.analysis.comparison import Comparison, compare
from gradebook.analysis.formula import worked
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.engines import swapped
from gradebook.core.errors import GradebookError
from gradebook.engine.trainer import NORMALIZATIONS, draws
from gradebook.output.figures import RowPicture, rows_figure, squashes
from gradebook.ui import keys
from gradebook.ui.parts import grid, numbers, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import (
    chart,
    haunted,
    ink,
    panels,
    prompts_of,
    summary,
)
from gradebook.ui.parts.widget import picking

LINEAR, SYMLOG = "linear axis", "symlog axis"


def heart(draft: Draft, kind: str, covered: bool) -> None:
    """The editable batch beside both engines' results, row by row.

    kind     what the results are: the tell-tale of the case
    covered  True keeps everything faulty out of what is sent
    """
    one = swapped(draft.state.bugs)
    comparison, wrong = computed(draft, one)
    share = min(max(grid.width(draft) / 1200, 0.42), 0.62)
    left, right = st.columns([share, 1 - share])
    with left:
        _table_side(draft, comparison, wrong, kind, covered)
    with right:
        if comparison.batch.rows:
            with st.container(key="stale" if wrong else "fresh"):
                _picture(draft, one, comparison, kind, bool(wrong), covered)


def computed(draft: Draft, one: Swap) -> tuple[Comparison, list[str]]:
    """The comparison of the draft and what is wrong in it, in words.

    Where something is wrong, the comparison is the last good one. Worked
    out once for each state.
    """
    if draft.done is draft.state and draft.good is not None:
        return draft.good, draft.faults
    wrong, found = draft.wrong(), None
    if not wrong:
        try:
            found = compared(draft.state)
        except GradebookError as error:
            wrong = [words.place(error)]
    draft.good = found or _last_good(draft, one)
    draft.done, draft.faults = draft.state, wrong
    return draft.good, wrong


def _last_good(draft: Draft, one: Swap) -> Comparison:
    """The last good batch under this engine, else the case's own batch."""
    if draft.good is not None and draft.done is not None:
        if draft.done.bugs == draft.state.bugs:
            return draft.good
        try:
            return compare(one, draft.good.batch)
        except GradebookError:
            pass
    return own(draft, one)


def own(draft: Draft, one: Swap) -> Comparison:
    """The comparison of the scenario's own state."""
    if draft.own is None:
        draft.own = compare(one, draft.origin.batch())
    return draft.own


def _table_side(
    draft: Draft,
    comparison: Comparison,
    wrong: list[str],
    kind: str,
    covered: bool,
) -> None:
    """The table, what is wrong in it, and the selected row as widgets."""
    heard: tuple = ()
    if draft.row < comparison.batch.rows and not wrong:
        heard = worked(comparison, draft.row)
    results = grid.results(None if wrong else comparison, kind)
    if covered:
        results, heard = {"correct": results["correct"]}, heard[:1]
    grid.grid(draft, results, heard)
    say(wrong)
    grid.row_widgets(draft)
    grid.buttons(draft)
    grid.history(draft)


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


def _picture(
    draft: Draft,
    one: Swap,
    comparison: Comparison,
    kind: str,
    stale: bool,
    covered: bool,
) -> None:
    """The rows of both engines, under a tell-tale, with its summary."""
    shown = panels(comparison, kind)
    ranges = [] if covered else _ranges(draft, one, comparison)
    if draft.edited and not covered:
        shown = haunted(shown, panels(own(draft, one), kind))
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
    return keys.AXES.get().get(draft.scenario.name, SYMLOG)


def _axis_widget(draft: Draft, axis: str) -> None:
    def keep(one: str) -> None:
        keys.AXES.get()[draft.scenario.name] = one

    st.segmented_control(
        "Axis",
        [LINEAR, SYMLOG],
        required=True,
        label_visibility="collapsed",
        **picking(draft.named("axis"), axis, keep),
    )


def _ranges(
    draft: Draft, one: Swap, comparison: Comparison
) -> list[tuple[float, float]]:
    """Least and greatest faulty advantage of each row over the draws."""
    batch = comparison.batch
    after = draft.state.normalization == NORMALIZATIONS[-1]
    if "subsample" not in draft.scenario.controls or not after:
        return []
    if bool((batch.kept_steps == batch.steps).all()):
        return []
    taken = draws(one.engine, batch)
    low = taken.nan_to_num(nan=math.inf).amin(0)
    high = taken.nan_to_num(nan=-math.inf).amax(0)
    return list(zip(low.tolist(), high.tolist()))


def _clicked(draft: Draft, key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        draft.select(int(points[0]["customdata"][0]))
