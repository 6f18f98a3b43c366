"""The board of a bug's page, with its box, its challenge and its path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis.challenges import apply_solution
from gradebook.ui.board import lesson as around
from gradebook.ui.board.component import board
from gradebook.ui.board.view import view
from gradebook.ui.parts import predict
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.heart import ranges
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
        "stage": partial(_open, draft),
    }

    def answered(choice: int, place: float | None) -> None:
        room.pick(draft.scenario, choice, place)
        st.rerun()

    seen = partial(_seen, draft, progress, not seat.learning(), seat.leads())
    board(draft, seen, answered)


def _seen(
    draft: Draft, progress: Progress, reveals: bool, leads: bool
) -> dict[str, Any]:
    """The board's data, from draft and progress as they stand.

    reveals  an answer uncovers the page; else it is a vote in a room
    leads    the page is that of a room's lead, who has no vote
    """
    scenario = draft.scenario
    covered = progress.covered(scenario.name)
    guess = None if covered else progress.guesses[scenario.name]
    box = around.box(draft, guess)
    label = "Show what it does" if reveals else "Vote"
    if leads:  # who leads a room has no vote
        label = ""
    challenge = around.challenge(draft, progress)
    if covered and challenge:
        challenge = {"count": challenge["count"]}
    return {
        **view(
            draft,
            kind=scenario.telltale.kind,
            covered=covered,
            ranges=() if covered else ranges(draft),
            places=scenario.prediction.places,
        ),
        "box": box | {"reveals": reveals, "label": label},
        "challenge": challenge,
        "path": around.path(draft, covered),
        "progress": progress.text(),
    }


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


def _open(draft: Draft, edit: Mapping[str, Any]) -> None:
    """Opens a stage of the path below the board, or closes it."""
    stage = edit.get("stage")
    draft.stage = stage if stage in draft.comparison.stages else ""
