"""Go deeper: the smallest batch, the influence map, and the laws. Each is folded,
and worked out only when it is opened."""

from __future__ import annotations

from functools import partial

import streamlit as st

from gradebook.analysis.influence import Influences, influences
from gradebook.analysis.law_check import BROKEN, HOLDS, check, couples_prompts
from gradebook.analysis.law_check import words as law_words
from gradebook.analysis.laws import EIGHT
from gradebook.analysis.shrink import shrink
from gradebook.cases.scenario import bug
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus, plain, settled
from gradebook.engine.pipeline import CORRECT
from gradebook.output.charts import map_figure
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import chart, ink, offered, prompts_of, table
from gradebook.ui.parts.widget import folded

MOST_ROWS = 128
"""Of a map that is drawn."""


def deeper(draft: Draft) -> None:
    """The section: its parts, folded; nothing of a batch without rows."""
    if not draft.comparison.batch.rows:
        return
    for title, name, part in (
        ("The smallest batch that shows the bug", "shrink", _smallest),
        ("Which row's reward moves which row's advantage", "influence", _influence),
        ("Laws that must hold, tried on both engines", "laws", _laws),
    ):
        folded(title, name, partial(part, draft))


def _smallest(draft: Draft) -> None:
    st.markdown(
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way. The board shows it; Undo"
        " goes back step by step."
    )
    if not st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        return
    try:
        with st.spinner("Shrinking the batch"):
            states = [*shrink(draft.state)]
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        return
    for state in states:
        draft.become(state)
    if states:
        st.rerun()
    st.markdown(
        "There is nothing to shrink: the batch does not show the bug, or"
        " is already as small as it gets."
    )


def _influence(draft: Draft) -> None:
    """Whose reward moves whose advantage: both maps, and what leaks."""
    batch, names = draft.comparison.batch, draft.state.engine_names
    if batch.rows > MOST_ROWS:
        st.markdown(f"The map is drawn for up to {MOST_ROWS} rows.")
        return
    lead = (
        "A cell says how far one row's advantage moves because of another row's"
        " reward. That reward is replaced by the mean of its siblings: the other"
        f" rows of its prompt that count under “{names[0]}”. A row without such"
        " siblings gets the reward 0 instead."
    )
    if coupling := couples_prompts(batch.settings):
        lead += (
            " These settings compare rows of all prompts by design"
            f" ({words.plain(coupling)}), so a leak is what “{names[1]}” adds to"
            f" “{names[0]}”."
        )
    st.markdown(lead)
    maps = influences(draft.swap.engine, batch)
    sums = maps.leaked.abs().sum(1)
    leak = "Nothing leaks on this batch."
    if bool(sums.any()):
        leak = (
            f"Rows that should not matter move row {int(sums.argmax())} most"
            f" ({plain(float(sums.max()))} in sum)."
        )
    prompts = prompts_of(draft)
    key = f"map-{draft.scenario.name}"
    alt = f"Influence of each row on each, {names[0]} and {names[1]}. {leak}"
    chart(map_figure(maps, prompts, names, ink()), key=key, alt=alt)
    st.markdown(leak)
    offered("the map's numbers", key, partial(frames_of, maps, prompts, names))


def frames_of(maps: Influences, prompts: list[str], names: tuple[str, str]) -> dict:
    """Both engines' matrices: a line for each moved row, a column for each
    row that moves it, the prompt beside the number."""
    import pandas as pd

    rows = [f"{row} {prompt}" for row, prompt in enumerate(prompts)]
    columns = [f"by {row}" for row in rows]
    sides = zip(names, (maps.correct.tolist(), maps.faulty.tolist()))
    return {
        f"{name}: row moved, by row": pd.DataFrame(matrix, rows, columns).map(settled)
        for name, matrix in sides
    }


def _laws(draft: Draft) -> None:
    """Each law in words, and what both engines make of it here."""
    record, batch = bug(draft.swap.name), draft.comparison.batch
    note = " (disputed)" if record.status == "disputed" else ""
    body = []
    for name in dict.fromkeys([*record.laws, *(law.__name__ for law in EIGHT)]):
        line = [law_words(name) + note * (name in record.laws)]
        for engine in (CORRECT, record.engine):
            outcome = check(name, engine, batch)
            mark = {HOLDS: "✓ ", BROKEN: "✗ "}.get(outcome.answer, "")
            line.append(f"{mark}{outcome.answer}. {minus(outcome.sentence)}")
        body.append(line)
    table(["what must hold", *draft.state.engine_names], body)
