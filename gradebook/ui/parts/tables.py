"""Plain tables of numbers, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from gradebook.output.figures.base import INK, Figure
from gradebook.output.figures.ready import Ready
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.words import safe


def table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers: Sequence[int] | range = (),
    at: int | None = None,
    heads: int = 0,
    label: str = "",
) -> None:
    """A plain table; `numbers` are columns aligned at the decimal point,
    `at` the row to mark, `heads` how many first cells name their row."""

    def line(tag: str, cells: Sequence[str], mark: str = "") -> str:
        inner = ""
        for c, cell in enumerate(cells):
            kind = tag if cell else "td"  # an empty header names nothing
            style = " class=n" if c in numbers else ""
            if c < heads and tag == "td" and cell:
                inner += f'<th scope="row">{safe(cell)}</th>'
                continue
            inner += f"<{kind}{style}>{safe(cell)}</{kind}>"
        return f"<tr{mark}>{inner}</tr>"

    rows = "".join(
        line("td", cells, ' class="at"' if r == at else "")
        for r, cells in enumerate(body)
    )
    label = safe("Numbers: " + (label or ", ".join(h for h in head if h)))
    st.html(
        f'<div class="gb" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{line('th', head)}</thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


# A comparison as pictures: which numbers, under which names


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
