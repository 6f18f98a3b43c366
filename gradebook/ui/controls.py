"""Settings as widgets: every one acts at once."""

from __future__ import annotations


import pandas as pd
import streamlit as st

from gradebook import table as cells
from gradebook.errors import GradebookError
from gradebook.settings import CHOICES, ESTIMATORS, FLAGS, OF_ESTIMATOR
from gradebook.trainer import NORMALIZATIONS, subsampled
from gradebook.ui import words
from gradebook.state import typed_settings
from gradebook.ui.drafts import Draft

SPECIAL = ("padded_width", "subsample", "phase", "guard")
CUSTOM = "custom"


def settings(draft: Draft) -> None:
    """The settings that matter to this bug."""
    names = [n for n in draft.scenario.controls if n not in SPECIAL]
    lines = -(-len(names) // 6)
    wide = -(-len(names) // max(lines, 1))
    for start in range(0, len(names), wide or 1):
        parts = st.columns(wide, vertical_alignment="bottom")
        for part, name in zip(parts, names[start : start + wide]):
            with part:
                _widget(draft, name)


def _widget(draft: Draft, name: str) -> None:
    key = draft.place(f"set-{name}")
    label = words.LABELS.get(name, name)
    shared = {
        "key": key,
        "help": words.HELP.get(name),
        "on_change": _set,
        "args": (draft, name, key, draft.state.typed.get(name)),
    }
    if name == "estimator":
        st.session_state[key] = estimator(draft)
        shared |= {"on_change": _set_estimator, "args": (draft, key)}
        st.selectbox(label, [*ESTIMATORS, CUSTOM], **shared)
        return
    st.session_state[key] = draft.state.typed[name]
    if name in CHOICES:
        st.selectbox(label, CHOICES[name], **shared)
    elif name in FLAGS:
        st.toggle(label, **shared)
    else:
        st.text_input(label, **shared)


def _set(draft: Draft, name: str, key: str, shown: object) -> None:
    value = st.session_state[key]
    if value != shown:
        draft.edit(typed={**draft.state.typed, name: value})


def estimator(draft: Draft) -> str:
    """The named estimator whose settings stand here, or 'custom'."""
    try:
        now = draft.state.settings()
    except GradebookError:
        return CUSTOM
    fitting = [
        name
        for name, settings in ESTIMATORS.items()
        if all(settings[f] == now[f] for f in OF_ESTIMATOR)
    ]
    if draft.estimator in fitting:
        return draft.estimator
    return fitting[0] if fitting else CUSTOM


def _set_estimator(draft: Draft, key: str) -> None:
    draft.estimator = st.session_state[key]
    chosen = draft.scenario.settings
    if draft.estimator != CUSTOM:
        chosen = ESTIMATORS[draft.estimator]
    typed = typed_settings(chosen)
    taken = {name: typed[name] for name in OF_ESTIMATOR}
    draft.edit(typed={**draft.state.typed, **taken})


def special(draft: Draft, name: str) -> None:
    """A control that a report needs and a setting cannot be."""
    {
        "padded_width": _padded_width,
        "subsample": _subsample,
        "phase": _phase,
        "guard": _nothing,
    }[name](draft)


def _nothing(draft: Draft) -> None:
    """The guard speaks in the page's text."""


def _padded_width(draft: Draft) -> None:
    tokens = cells.token_columns(draft.table)
    used = [t for t in tokens if draft.table[t].any()]
    longest = max([int(t[1:]) for t in used] or [1])
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    key = f"width-{draft.scenario.name}"
    st.session_state[key] = len(tokens)
    left.number_input(
        "Padded width",
        min_value=longest,
        max_value=max(longest + 4, len(tokens)),
        step=1,
        key=key,
        on_change=_set_width,
        args=(draft, key),
        help="Columns of the padded batch. One more changes no rollout.",
    )
    key = f"detector-{draft.scenario.name}"
    st.session_state[key] = draft.state.detector
    right.toggle(
        "EOS found by the trainer's detector: a row as long as the padded"
        " width has none",
        key=key,
        on_change=_set_detector,
        args=(draft, key),
    )


def _set_width(draft: Draft, key: str) -> None:
    draft.edit(table=cells.with_width(draft.table, st.session_state[key]))
    draft.renewed()


def _set_detector(draft: Draft, key: str) -> None:
    draft.edit(detector=st.session_state[key])
    draft.renewed()


def _subsample(draft: Draft) -> None:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    key = f"normalization-{draft.scenario.name}"
    st.session_state[key] = draft.state.normalization
    left.segmented_control(
        "The faulty side normalizes",
        NORMALIZATIONS,
        key=key,
        required=True,
        on_change=_set_normalization,
        args=(draft, key),
    )
    right.button(
        "Draw the subsample again",
        key=f"draw-{draft.scenario.name}",
        on_click=_draw,
        args=(draft,),
        help="Single transitions, as many as are kept now, with the next"
        " seed.",
    )


def _set_normalization(draft: Draft, key: str) -> None:
    draft.edit(normalization=st.session_state[key])


def _draw(draft: Draft) -> None:
    try:
        batch = cells.to_batch(draft.table, draft.state.settings())
    except GradebookError:
        return
    draft.seed += 1
    kept = subsampled(batch, draft.seed).tolist()
    texts = pd.Series([str(k) for k in kept], dtype="object")
    draft.edit(table=draft.table.assign(kept_steps=texts))
    draft.renewed()


def _phase(draft: Draft) -> None:
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    key = f"phase-{draft.scenario.name}"
    st.session_state[key] = "Evaluation" if draft.state.evaluation else "Training"
    left.segmented_control(
        "Phase",
        ["Training", "Evaluation"],
        key=key,
        required=True,
        on_change=_set_phase,
        args=(draft, key),
        help="Evaluation takes one generation a prompt: its first row.",
    )
    key = f"guarded-{draft.scenario.name}"
    st.session_state[key] = draft.state.training_guard
    right.toggle(
        "Confine the guard to training",
        key=key,
        on_change=_set_guard,
        args=(draft, key),
        help="The correct engine leaves flat groups out in training only.",
    )


def _set_phase(draft: Draft, key: str) -> None:
    draft.edit(evaluation=st.session_state[key] == "Evaluation")


def _set_guard(draft: Draft, key: str) -> None:
    draft.edit(training_guard=st.session_state[key])
