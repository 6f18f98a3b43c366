"""Who moves whom: the influence map of both engines."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.influence import influences
from gradebook.analysis.law_check import couples_prompts
from gradebook.core.formatting import plain
from gradebook.output.figures.maps import MapPicture, map_figure
from gradebook.ui.parts import numbers, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import chart, ink, prompts_of

MOST_ROWS = 128


def moves(draft: Draft) -> None:
    """The section: both maps, and what leaks."""
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
    numbers.offered("the map's numbers", key, lambda: numbers.of_map(picture))
