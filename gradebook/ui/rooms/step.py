"""The vote of a plan's step that opens neither a case nor training runs: of the
opening on the primer, and of the closing on the trainers' page."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.classroom.plan import CLOSING, OPENING
from gradebook.classroom.snapshot import Position
from gradebook.ui.parts import words
from gradebook.ui.parts.predict import choices
from gradebook.ui.rooms import bar, seat

STEPS = {step.page: step for step in (OPENING, CLOSING)}


def asks(page: str) -> bool:
    """Asks the question of the page's step in a room. True while its answer is
    to be hidden."""
    step = STEPS[page]
    bar.before(page)
    if seat.leads():
        bar.move(Position(page, step.question))
    standing = bar.about(step.question)
    if standing is None:
        return False
    st.markdown(f"**{words.plain(step.ask)}**")
    if standing.is_open:
        st.markdown(f"**The answer:** {words.plain(step.truth)}")
    elif standing.leads:
        st.markdown(" · ".join(map(words.plain, step.choices)))
    else:
        choices(
            {f"step-{n}": choice for n, choice in enumerate(step.choices)},
            partial(bar.vote, step.question),
            skip="step-skip",
        )
    return not standing.is_open
