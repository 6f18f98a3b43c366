"""The bugs as a catalogue of cards, each covered until its question is
answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from gradebook.cases.catalogue import FILTERS, choices, chosen
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import minus
from gradebook.ui.parts import predict, tryit, words
from gradebook.ui.parts.thumbnail import thumbnail, told
from gradebook.ui.parts.words import safe


@st.fragment(key="catalogue")
def catalogue(files: Mapping[str, Path]) -> None:
    """What the bugs can be chosen by, and a card for each that is left."""
    with st.container(horizontal=True, key="filters"):
        wanted = {name: _filter(name) for name in FILTERS}
    names = chosen(files, wanted)
    hidden = [name for name in names if predict.covered(name)]
    st.markdown(_count(names, hidden, len(files)))
    if hidden:
        st.button(
            "Uncover these without predicting"
            if len(names) < len(files)
            else "Uncover all without predicting",
            key="uncover",
            on_click=_uncover,
            args=(hidden,),
        )
    with st.container(horizontal=True, key="cards"):
        for name in names:
            with st.container(border=True, key=f"card-{name}"):
                _card(load(name), files[name])


def _filter(name: str) -> str:
    """A select box of the filter's values; '' where none is chosen."""
    one = FILTERS[name]
    return st.selectbox(
        one.title,
        ["", *choices(name)],
        format_func=lambda value: value or one.every,
        key=name,
        width=172,
        persist_state="session",
    )


def _count(names: Sequence[str], hidden: Sequence[str], every: int) -> str:
    """How many bugs are shown, and what was done with them."""
    if not names:
        return "No bug has all of this."
    cases = [load(name) for name in names]
    solved = sum(tryit.solved(case.name) for case in cases)
    some = sum(len(case.challenges) for case in cases)
    shown = f"{len(names)} of {every} bugs"
    if len(names) == every:
        shown = f"{every} bugs"
    return (
        f"{shown}: {len(names) - len(hidden)} uncovered, {solved} of {some}"
        " challenges solved."
    )


def _uncover(bugs: Sequence[str]) -> None:
    for name in bugs:
        predict.answer(name, predict.SKIPPED)


def _card(scenario: Scenario, file: Path) -> None:
    hidden = predict.covered(scenario.bug)
    line = scenario.teaser if hidden else scenario.claim
    facts = scenario.standing
    if not hidden:
        facts += f" · {bug(scenario.bug).stage}"
    said = "" if hidden else safe(minus(told(scenario)))
    st.html(
        f'<div class="gb-card"><h3>{safe(scenario.title)}</h3>'
        f'<p class="facts">{safe(facts)}</p>{thumbnail(scenario, hidden)}'
        f'<p>{safe(minus(line))}</p><p class="facts">{said}</p></div>'
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
