"""Go deeper: the smallest batch, the influence map, and the laws. Each is folded,
and worked out only when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from gradebook.analysis.influence import influences
from gradebook.analysis.law_check import (
    BROKEN,
    HOLDS,
    Outcome,
    check,
    couples_prompts,
)
from gradebook.analysis.law_check import words as law_words
from gradebook.analysis.laws import EIGHT
from gradebook.analysis.shrink import shrink
from gradebook.cases.record import bug
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus, plain
from gradebook.engine.pipeline import CORRECT
from gradebook.output.charts import MapPicture, map_figure
from gradebook.ui.parts import tables, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import chart, ink, prompts_of, table
from gradebook.ui.parts.widget import folded

MOST_ROWS = 128
"""Of a map that is drawn."""


def deeper(draft: Draft) -> None:
    """The section: its parts, folded; nothing of a batch without rows."""
    if not draft.comparison.batch.rows:
        return
    parts: dict[str, tuple[str, Callable[[Draft], None]]] = {
        "shrink": ("The smallest batch that shows the bug", _smallest),
        "influence": (
            "Which row's reward moves which row's advantage",
            _influence,
        ),
        "laws": ("Laws that must hold, tried on both engines", _laws),
    }
    for name, (title, part) in parts.items():
        folded(title, name, partial(part, draft))


def _smallest(draft: Draft) -> None:
    """A button that reduces the batch to the smallest that shows it."""
    st.markdown(
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way. The board shows it; Undo"
        " goes back step by step."
    )
    if st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        _shrink(draft)


def _shrink(draft: Draft) -> None:
    steps = []
    try:
        with st.status("Shrinking", expanded=True) as status:
            for found in shrink(draft.state):
                steps.append((found.sentence, found.state))
                said = f"Step {len(steps)}: {found.sentence}"
                status.update(label=words.plain(said))
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        return
    if not steps:
        st.markdown(
            "There is nothing to shrink: the batch does not show the bug, or"
            " is already as small as it gets."
        )
        return
    for _, state in steps:
        draft.become(state)
    st.rerun()


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
    picture = MapPicture(
        maps.correct.tolist(),
        maps.faulty.tolist(),
        (maps.leaked != 0).tolist(),
        prompts_of(draft),
        ink(),
        names,
    )
    key = f"map-{draft.scenario.name}"
    chart(
        map_figure(picture),
        key=key,
        config={"displayModeBar": False},
        alt=f"Influence of each row on each, {names[0]} and {names[1]}. {leak}",
    )
    st.markdown(leak)
    tables.offered("the map's numbers", key, lambda: tables.of_map(picture))


def _laws(draft: Draft) -> None:
    """Each law in words, and what both engines make of it here."""
    one, batch = bug(draft.swap.name), draft.comparison.batch
    engines = (CORRECT, one.engine)
    note = " (disputed)" if one.status == "disputed" else ""
    body = [
        [law_words(name) + note * (name in one.laws), *map(_outcome, outcomes)]
        for name in dict.fromkeys([*one.laws, *(law.__name__ for law in EIGHT)])
        if (outcomes := [check(name, engine, batch) for engine in engines])
    ]
    table(["what must hold", *draft.state.engine_names], body)


def _outcome(outcome: Outcome) -> str:
    mark = {HOLDS: "✓ ", BROKEN: "✗ "}.get(outcome.answer, "")
    return f"{mark}{outcome.answer}. {minus(outcome.sentence)}"
