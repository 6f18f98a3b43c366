"""Charts, and tables of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from gradebook.output.charts import INK, Figure, Ready
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.words import safe

if TYPE_CHECKING:
    import pandas as pd


def table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers: Sequence[int] | range = (),
    selected: int = -1,
    heads: int = 0,
    label: str = "",
) -> None:
    """A plain table; `numbers` are columns aligned at the decimal point,
    `heads` how many first cells name their row."""

    def line(tag: str, cells: Sequence[str], mark: str = "") -> str:
        inner = ""
        for column, cell in enumerate(cells):
            if cell and (tag == "th" or column >= heads):
                opening = closing = tag
            elif cell:
                opening, closing = 'th scope="row"', "th"
            else:
                opening = closing = "td"  # an empty header names nothing
            style = " class=n" if column in numbers and column >= heads else ""
            inner += f"<{opening}{style}>{safe(cell)}</{closing}>"
        return f"<tr{mark}>{inner}</tr>"

    rows = "".join(
        line("td", cells, ' class="at"' if row == selected else "")
        for row, cells in enumerate(body)
    )
    label = safe("Numbers: " + (label or ", ".join(filter(None, head))))
    st.html(
        f'<div class="gb" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{line('th', head)}</thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


def chart(figure: Figure, **options: Any) -> None:
    """The figure, in its own colours and not the theme's. Plotly's buttons would
    cover it."""
    plain = {"displayModeBar": False}
    st.plotly_chart(Ready(figure), theme=None, config=plain, **options)


def ink() -> str:
    """The colour of axis text under the visitor's theme."""
    return INK.get(st.context.theme.type or "light", INK["light"])


def prompts_of(draft: Draft) -> list[str]:
    """The rows' prompts as typed; by number where the table has moved on
    from the batch that was compared."""
    typed, batch = list(draft.table["prompt"]), draft.comparison.batch
    if len(typed) == batch.rows:
        return typed
    return [str(prompt) for prompt in batch.prompt.tolist()]


def offered(
    what: str, key: str, frames: Callable[[], Mapping[str, pd.DataFrame]]
) -> None:
    """A switch, and behind it a picture's numbers as tables by their titles. They
    are made when they are asked for."""
    if st.toggle(f"Show {what} as a table", key=f"numbers-{key}"):
        for title, frame in frames().items():
            st.dataframe(frame, alt=title)
            st.caption(title)
