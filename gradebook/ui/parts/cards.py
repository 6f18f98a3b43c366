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
from gradebook.ui.parts import predict
from gradebook.ui.parts.markup import show
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
    cards = "".join(card(load(name)) for name in names)
    opened = show(f'<div class="gb-cards">{cards}</div>', key="cards")
    if opened in files:
        st.switch_page(files[opened])


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
    solved = sum(len(predict.progress().solved.get(case.name, ())) for case in cases)
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


def card(scenario: Scenario) -> str:
    """A bug's card as HTML, with a link to its page. Before its question is
    answered the faulty numbers, the stage and the claim are absent."""
    hidden = predict.covered(scenario.bug)
    line = scenario.teaser if hidden else scenario.claim
    facts = scenario.standing
    does, ends = "Predict", ""
    if not hidden:
        facts += f" · {bug(scenario.bug).stage}"
        does = "Open"
        said = safe(minus(told(scenario)))
        ends = f'<p class="facts">{said}</p><p>{safe(_done(scenario))}</p>'
    title = safe(scenario.title)
    return (
        f'<article class="gb-card"><h3>{title}</h3>'
        f'<p class="facts">{safe(facts)}</p>{thumbnail(scenario, hidden)}'
        f"<p>{safe(minus(line))}</p>{ends}"
        f'<p><a href="{scenario.bug}" data-name="{scenario.bug}">'
        f"{does}: {title}</a></p></article>"
    )


def _done(scenario: Scenario) -> str:
    """What this session has done with the bug."""
    guess = predict.progress().guesses[scenario.bug].choice
    said = "You predicted otherwise."
    if guess == predict.SKIPPED:
        said = "Seen without a prediction."
    elif guess == scenario.prediction.answer:
        said = "✓ Predicted."
    solved, count = (
        len(predict.progress().solved.get(scenario.name, ())),
        len(scenario.challenges),
    )
    mark = "✓ " if solved == count > 0 else ""
    return f"{said} {mark}{solved} of {count} challenges solved."
