"""A comparison as pictures: which numbers, under which names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.cases.table import Table
from gradebook.core.differences import same
from gradebook.core.formatting import digits_apart, settled, signed
from gradebook.output.figures import INK, Figure, Panel
from gradebook.output.figures.ready import Ready
from gradebook.output.panels import panels, telling


def haunted(now: list[Panel], before: list[Panel]) -> list[Panel]:
    """The panels with the values before the edits as ghosts, where there
    are as many rows."""
    if [len(p.correct) for p in now] != [len(p.correct) for p in before]:
        return now
    return [
        replace(panel, ghosts=(own.correct, own.faulty))
        for panel, own in zip(now, before, strict=True)
    ]


def chart(figure: Figure, **said: Any) -> None:
    """The figure, in its own colours and not the theme's."""
    st.plotly_chart(Ready(figure), theme=None, **said)


def ink() -> str:
    """The colour of axis text under the visitor's theme."""
    return INK.get(st.context.theme.type or "light", INK["light"])


def prompts_of(table: Table, comparison: Comparison) -> list[str]:
    """The rows' prompts as typed; by number where the table has moved on
    from the batch that was compared."""
    typed = list(table["prompt"])
    if len(typed) == comparison.batch.rows:
        return typed
    return [str(p) for p in comparison.batch.prompt.tolist()]


def values_of(
    comparison: Comparison, kind: str
) -> tuple[list[str], list[str]]:
    """The telling panel's numbers as text, correct and faulty."""
    panel = telling(panels(comparison, kind))
    pairs = [
        (settled(a), settled(b))
        for a, b in zip(panel.correct, panel.faulty, strict=True)
    ]
    digits = [digits_apart(a, b) for a, b in pairs]
    return (
        [signed(a, d) for (a, _), d in zip(pairs, digits)],
        [signed(b, d) for (_, b), d in zip(pairs, digits)],
    )


def summary(comparison: Comparison, kind: str) -> str:
    """The picture in words, in one line."""
    chosen = telling(panels(comparison, kind))
    named = chosen.title.split(" (")[0]
    apart = [
        row
        for row, (a, b) in enumerate(zip(chosen.correct, chosen.faulty))
        if not same(a, b)
    ]
    count = len(chosen.correct)
    if not apart:
        return f"Both engines agree on all {count} rows."
    flipped = [row for row, flip in enumerate(chosen.flips) if flip]
    said = f"{len(apart)} of {count} rows differ in {named}"
    if flipped:
        which = ", ".join(map(str, flipped[:6]))
        more = len(flipped) - 6
        which += f" and {more} more" if more > 0 else ""
        word = "row" if len(flipped) == 1 else "rows"
        said += f"; the sign flips on {word} {which}"
    return said + "."
