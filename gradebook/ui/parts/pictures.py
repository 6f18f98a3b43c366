"""A comparison as pictures: which numbers, under which names."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gradebook.output.figures.base import INK, Figure
from gradebook.output.figures.ready import Ready
from gradebook.ui.parts.drafts import Draft


def chart(figure: Figure, **said: Any) -> None:
    """The figure, in its own colours and not the theme's."""
    st.plotly_chart(Ready(figure), theme=None, **said)


def ink() -> str:
    """The colour of axis text under the visitor's theme."""
    return INK.get(st.context.theme.type or "light", INK["light"])


def prompts_of(draft: Draft) -> list[str]:
    """The rows' prompts as typed; by number where the table has moved on
    from the batch that was compared."""
    typed, batch = list(draft.table["prompt"]), draft.comparison.batch
    if len(typed) == batch.rows:
        return typed
    return [str(p) for p in batch.prompt.tolist()]
