"""The bugs as cards, each covered until its question is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import minus
from gradebook.ui.parts import predict, tryit, words
from gradebook.ui.parts.thumbnail import thumbnail
from gradebook.ui.parts.words import safe

COLUMNS = 3


def cards(files: Mapping[str, Path]) -> None:
    """A card for every bug, from its record, and a way to uncover all."""
    hidden = [name for name in files if predict.covered(name)]
    if hidden:
        st.button(
            "Uncover all without predicting",
            key="uncover",
            on_click=_uncover,
            args=(hidden,),
        )
    names = list(files)
    for start in range(0, len(names), COLUMNS):
        row = names[start : start + COLUMNS]
        for part, name in zip(st.columns(COLUMNS), row):
            with part.container(border=True, height="stretch"):
                _card(load(name), files[name])


def _uncover(bugs: Sequence[str]) -> None:
    for name in bugs:
        predict.answer(name, predict.SKIPPED)


def _card(scenario: Scenario, file: Path) -> None:
    hidden = predict.covered(scenario.bug)
    picture, said = thumbnail(scenario, hidden)
    line = scenario.teaser if hidden else scenario.claim
    st.html(
        f'<div class="gb-card"><h3>{safe(scenario.title)}</h3>'
        f'<p class="facts">{safe(scenario.trainer)} ·'
        f" {safe(scenario.status)}</p>{picture}"
        f"<p>{safe(minus(line))}</p>"
        f'<p class="facts">{safe(minus(said))}</p></div>'
    )
    does = "Predict" if hidden else "Open"
    st.page_link(file, label=f"{does}: {words.plain(scenario.title)}")
    if not hidden:
        st.markdown(_done(scenario))


def _done(scenario: Scenario) -> str:
    """What this session has done with the bug."""
    guess = predict.guess(scenario)
    said = "You predicted otherwise."
    if guess == predict.SKIPPED:
        said = "Seen without a prediction."
    elif guess == scenario.prediction.answer:
        said = "✓ Predicted."
    solved, count = tryit.solved(scenario.name), len(scenario.challenges)
    mark = "✓ " if solved == count > 0 else ""
    return f"{said} {mark}{solved} of {count} challenges solved."
