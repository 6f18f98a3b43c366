"""Three engines: the correct one, another fix that was offered, the faulty
one."""

from __future__ import annotations

import streamlit as st

from gradebook.cases.record import bug
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import settled, signed
from gradebook.engine.pipeline import run
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import prompts_of
from gradebook.ui.parts.tables import table


def section(draft: Draft) -> None:
    """The advantages of the three, row by row, on the batch above."""
    other, comparison = draft.scenario.other_fix, draft.comparison
    if other is None:
        return
    st.markdown(words.titled("Two fixes that disagree", words.plain(other.note)))
    batch = comparison.batch
    try:
        fixed = run(bug(other.bug).engine, batch).advantage
    except GradebookError as error:
        st.markdown(words.plain(words.place(error)))
        return
    right, wrong = draft.state.engine_names
    sides = (comparison.correct.advantage, fixed, comparison.faulty.advantage)
    prompts = prompts_of(draft)
    body = [
        [str(r), prompts[r], *(signed(settled(float(s[r]))) for s in sides)]
        for r in range(batch.rows)
    ]
    head = ["row", "prompt", f"{right} ●", other.title, f"{wrong} ◇"]
    table(head, body, numbers=range(2, 5), at=draft.row)
