"""The board with its batch and both engines' results."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.engine.trainer import draws
from gradebook.ui.board.component import board
from gradebook.ui.board.view import view
from gradebook.ui.parts.drafts import Draft


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
    data = view(
        draft,
        kind=kind,
        covered=covered,
        ranges=() if covered else ranges(draft),
        invite=invite,
    )
    if said:
        data["summary"] = said
    return data


def below(draft: Draft, name: str = "below") -> DeltaGenerator:
    """The frame of what is about the batch on the board. It looks stale
    where that batch cannot be read, and the last good one is shown."""
    return st.container(key=f"stale-{name}" if draft.faults else name)


def ranges(draft: Draft) -> list[tuple[float, float]]:
    """Least and greatest faulty advantage of each row over the draws."""
    batch = draft.comparison.batch
    if "subsample" not in draft.scenario.controls:
        return []
    if batch.settings.second_over != "kept_steps":
        return []
    if bool((batch.kept_steps == batch.steps).all()):
        return []
    taken = draws(draft.swap.engine, batch)
    low = taken.nan_to_num(nan=math.inf).amin(0)
    high = taken.nan_to_num(nan=-math.inf).amax(0)
    return list(zip(low.tolist(), high.tolist()))
