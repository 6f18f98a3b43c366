"""The settings of a case as widgets. A change acts at once."""

from __future__ import annotations

import streamlit as st

from gradebook.cases import edits
from gradebook.cases.case import SPECIAL_CONTROLS
from gradebook.cases.fields import (
    FIELDS,
    TEXTS,
    title,
    typed_settings,
)
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, OF_ESTIMATOR
from gradebook.engine.trainer import NORMALIZATIONS, subsampled
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import button, choosing, picking, showing

CUSTOM = "custom"
PHASES = ("Training", "Evaluation")


def settings(draft: Draft) -> None:
    """The settings that matter to this bug, and those that a link changed."""
    names = [n for n in draft.scenario.controls if n not in SPECIAL_CONTROLS]
    lines = -(-len(names) // 6)
    wide = -(-len(names) // max(lines, 1))
    for start in range(0, len(names), wide or 1):
        parts = st.columns(wide, vertical_alignment="bottom")
        for part, name in zip(parts, names[start : start + wide]):
            with part:
                _widget(draft, name)
    said = _without_field(draft, names)
    if said:
        st.markdown(f"Set without a field here: {words.plain(said)}.")


def _without_field(draft: Draft, names: list[str]) -> str:
    """The changed settings that this page shows no field for, as text."""
    fields = {*names, *(OF_ESTIMATOR if "estimator" in names else ())}
    return ", ".join(
        f"{title(name)} {value}"
        for name, value in draft.state.typed.items()
        if value != draft.origin.typed.get(name) and name not in fields
    )


def _widget(draft: Draft, name: str) -> None:
    called = draft.named(f"set-{name}")
    if name == "estimator":
        given = choosing(
            called,
            [*ESTIMATORS, CUSTOM],
            estimator(draft),
            lambda one: _set_estimator(draft, one),
        )
        label, told = TEXTS[name]
        st.selectbox(label, help=told, **given)
        return

    def take(value: object) -> None:
        draft.do(edits.set_setting, name, value)

    field, now = FIELDS[name], draft.state.get(name)
    if field.kind == "choice":
        given = choosing(called, list(field.options.values()), now, take)
        st.selectbox(field.title, help=field.help, **given)
        return
    kind = st.toggle if field.kind == "flag" else st.text_input
    kind(field.title, help=field.help, **showing(called, now, take))


def estimator(draft: Draft) -> str:
    """The named estimator that has the draft's settings, or 'custom'."""
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


def _set_estimator(draft: Draft, name: str) -> None:
    draft.estimator = name
    chosen = draft.scenario.settings
    if name != CUSTOM:
        chosen = ESTIMATORS[name]
    typed = typed_settings(chosen)
    taken = {name: typed[name] for name in OF_ESTIMATOR}
    draft.edit(typed={**draft.state.typed, **taken})


def special(draft: Draft, name: str) -> None:
    """A control of this bug's page that is no setting of the engine."""
    {
        "padded_width": _padded_width,
        "subsample": _subsample,
        "phase": _phase,
        "guard": _nothing,
    }[name](draft)


def _nothing(draft: Draft) -> None:
    """The guard has no control: the page tells what it does."""


def _padded_width(draft: Draft) -> None:
    width = draft.table.width
    masks = draft.table["mask"]
    used = [t + 1 for t in range(width) if any(mask[t] for mask in masks)]
    longest = max(used, default=1)
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    left.number_input(
        "Padded width",
        min_value=longest,
        max_value=max(longest + 4, width),
        step=1,
        help="Tokens in a row of the padded batch. One more token of"
        " padding changes no rollout.",
        **showing(
            draft.named("width"),
            width,
            lambda n: draft.do(edits.set_width, n),
        ),
    )
    right.toggle(
        FIELDS["detector"].title,
        help=FIELDS["detector"].help,
        **showing(
            draft.named("detector"),
            draft.state.detector,
            lambda on: draft.edit(detector=on),
        ),
    )


def _subsample(draft: Draft) -> None:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.segmented_control(
        FIELDS["normalization"].title,
        NORMALIZATIONS,
        required=True,
        **picking(
            draft.named("normalization"),
            draft.state.normalization,
            lambda one: draft.edit(normalization=one),
        ),
    )
    with right:
        button(
            "Draw the subsample again",
            f"draw-{draft.scenario.name}",
            _draw,
            draft,
            help="Draws as many single transitions as are kept now, with the"
            " next seed.",
        )


def _draw(draft: Draft) -> None:
    try:
        batch = draft.table.batch(draft.state.settings())
    except GradebookError:
        return
    draft.seed += 1
    kept = subsampled(batch, draft.seed).tolist()
    draft.edit(table=draft.table.with_column("kept_steps", kept))


def _phase(draft: Draft) -> None:
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    left.segmented_control(
        "Phase",
        PHASES,
        required=True,
        help=FIELDS["evaluation"].help,
        **picking(
            draft.named("phase"),
            PHASES[draft.state.evaluation],
            lambda one: draft.edit(evaluation=bool(PHASES.index(one))),
        ),
    )
    right.toggle(
        FIELDS["training_guard"].title,
        help=FIELDS["training_guard"].help,
        **showing(
            draft.named("guarded"),
            draft.state.training_guard,
            lambda on: draft.edit(training_guard=on),
        ),
    )
