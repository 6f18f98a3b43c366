"""The number that was lost, on the pages of bugs of number types."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.lost_number import Loss, lost
from gradebook.cases.case import LostNumber
from gradebook.cases.record import bug
from gradebook.core.errors import GradebookError
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import table

THIN = "\u2009"


def section(draft: Draft) -> None:
    """Exact value, nearest float and the gap, for the selected row."""
    what, comparison = bug(draft.scenario.bug).lost, draft.comparison
    row = draft.row
    if what is None or row >= comparison.batch.rows:
        return
    try:
        typed = str(draft.table["reward"][row])
        found = lost(comparison, row, what, typed)
    except (GradebookError, ValueError):  # the cell is no number now
        return
    if not found:
        said = "With these settings the engines do not compute this number."
        st.markdown(words.titled("The number that was lost", said))
        return
    st.markdown(words.titled("The number that was lost", _said(what, found)))
    wrong = draft.state.engine_names[1]
    table(
        [
            f"row {row}",
            "exact value",
            f"nearest {what.type}",
            f"{wrong} engine",
            "off by",
        ],
        [_line(one) for one in found],
        numbers=range(1, 5),
        heads=1,
    )


def _said(what: LostNumber, found: tuple[Loss, ...]) -> str:
    unit = f"{float(found[1].ulp):.3g}".replace("-", "−")
    at = _number(found[1].nearest)
    apart = (
        f" At {at}, two neighbouring {what.type} numbers are {unit} apart:"
        " one ulp, a unit in the last place."
    )
    if what.number == "mean":
        return words.plain(
            f"The faulty engine has the mean in {what.type}.{apart} If"
            " the mean is wrong, so is each row's distance from it."
        )
    return words.plain(
        f"The faulty engine takes the variance in {what.type}, as the mean of"
        f" the squares less the square of the mean.{apart} A variance below"
        " that is lost in the subtraction, and rounding can leave one where"
        " there is none."
    )


def _line(one: Loss) -> list[str]:
    held = "" if one.faulty is None else _number(one.faulty)
    return [
        one.name,
        _number(float(one.exact)),
        _number(one.nearest),
        held,
        _ulps(one.gap),
    ]


def _number(value: float) -> str:
    """Twelve significant digits, more than a float32 has."""
    return f"{value:.12g}".replace("-", "−")


def _ulps(gap: float) -> str:
    if not gap:
        return "0"
    size = f"{gap:+,.0f}" if abs(gap) >= 1000 else f"{gap:+.3g}"
    return f"{size} ulp".replace("-", "−").replace(",", THIN)
