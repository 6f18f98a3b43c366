"""The board of a bug's page, with its box, its challenge and its path."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis.challenges import apply_solution
from gradebook.core.errors import GradebookError
from gradebook.ui.board import lesson as around
from gradebook.ui.board.component import board
from gradebook.ui.parts import predict, stages
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.predict import Progress
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat


@st.fragment(key="heart")
def lesson(draft: Draft) -> None:
    """The board of the draft. An answer draws the whole page again."""
    progress = predict.progress()
    draft.acts = {
        "next": partial(_next, draft, progress),
        "solution": partial(_solve, draft, progress),
        "stage": partial(stages.choose, draft),
    }

    def answered(choice: int, place: float | None) -> None:
        room.pick(draft.scenario, choice, place)
        st.rerun()

    learns = partial(room.settle, seat.code(), seat.seat()) if seat.learning() else None
    leads, keep = seat.leads(), room.keeper(draft)

    def seen() -> dict[str, Any]:
        keep()
        name = draft.scenario.name
        if learns and progress.covered(name):  # the lead may have revealed it
            with suppress(GradebookError):
                learns(progress, name)
        # Who leads a room has no vote.
        label = "" if leads else "Vote" if learns else "Show what it does"
        shown = around.shown(draft, progress)
        shown["box"] |= {"reveals": learns is None, "label": label}
        return shown | {"progress": progress.text()}

    board(draft, seen, answered)


def _next(draft: Draft, progress: Progress, _: Mapping[str, Any]) -> None:
    """The next challenge that is not solved, from the original batch."""
    count = len(draft.scenario.challenges)
    solved = progress.solved.get(draft.scenario.name, set())
    after = [(draft.challenge + by) % count for by in range(1, count + 1)]
    draft.challenge = next((at for at in after if at not in solved), after[0])
    draft.reset()


def _solve(draft: Draft, progress: Progress, _: Mapping[str, Any]) -> None:
    """Shows a solution. Each of its changes is an edit that can be undone."""
    name, at = draft.scenario.name, draft.challenge
    if at not in progress.solved.get(name, ()):
        progress.shown.setdefault(name, set()).add(at)
    state = draft.origin
    for change in draft.scenario.challenges[at].solution:
        state = apply_solution(state, [change])
        draft.become(state)
