"""The board with its batch and both engines' results."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison, compare
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.engines import swapped
from gradebook.core.errors import GradebookError
from gradebook.engine.trainer import NORMALIZATIONS, draws
from gradebook.output.panels import panels
from gradebook.ui.board.component import board
from gradebook.ui.board.view import view
from gradebook.ui.parts import numbers, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import prompts_of


def picture(
    draft: Draft,
    kind: str,
    covered: bool,
    invite: int | None = None,
    said: str = "",
) -> None:
    """The board of the draft.

    kind     what the results are: the tell-tale of the case
    covered  True keeps everything faulty out of what is sent
    invite   the row whose handle asks to be dragged
    said     the picture in one sentence, where the board's own will not do
    """
    board(draft, partial(_seen, draft, kind, covered, invite, said))


heart = st.fragment(key="heart")(picture)
"""The picture as the page's own board. A second board on the page stands in
another fragment."""


def _seen(
    draft: Draft, kind: str, covered: bool, invite: int | None, said: str
) -> dict[str, Any]:
    """The board's data, from the draft as it stands (see `picture`)."""
    one = swapped(draft.state.bugs)
    comparison, wrong = computed(draft, one)
    data = view(
        draft,
        comparison,
        draft.state.problems() if wrong else (),
        wrong,
        kind=kind,
        covered=covered,
        before=own(draft, one) if draft.edited else None,
        ranges=() if covered else _ranges(draft, one, comparison),
        names=draft.state.engine_names,
        invite=invite,
    )
    if said:
        data["summary"] = said
    return data


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
    good = found or _last_good(draft, one)
    draft.good, draft.done, draft.faults = good, draft.state, wrong
    return good, wrong


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
    found = draft.own
    if found is None:
        found = draft.own = compare(one, draft.origin.batch())
    return found


def listed(draft: Draft, one: Swap, comparison: Comparison, kind: str) -> None:
    """The board's numbers as tables, or as CSV, where they are wanted."""

    def made() -> list[numbers.Numbers]:
        return numbers.of_panels(
            panels(comparison, kind),
            prompts_of(draft.table, comparison),
            draft.state.engine_names,
            panels(own(draft, one), kind) if draft.edited else (),
            _ranges(draft, one, comparison),
        )

    name = f"picture-{draft.scenario.name}"
    numbers.offered("the board's numbers", name, made)


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
