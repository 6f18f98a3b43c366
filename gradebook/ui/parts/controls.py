"""The settings of a case as widgets, and what a trainer would log of its
batch. A change acts at once."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gradebook.analysis.comparison import mean_kl, trained_tokens
from gradebook.cases import edits
from gradebook.cases.case import SPECIAL_CONTROLS
from gradebook.cases.state import (
    FIELDS,
    TEXTS,
    title,
    typed_settings,
)
from gradebook.core.formatting import plain, small
from gradebook.core.settings import ESTIMATORS, OF_ESTIMATOR
from gradebook.output.panels import GRADIENT
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import choosing, showing

CUSTOM = "custom"


def switches(draft: Draft) -> None:
    """Every control of the case; each acts at once."""
    names = draft.scenario.controls
    settings(draft, names)
    _unseen(draft, names)
    if "padded_width" in names:
        padded_width(draft)
    if draft.scenario.telltale.kind == GRADIENT:
        _logged(draft)


def settings(draft: Draft, names: Sequence[str], across: int = 3) -> None:
    """The settings of these names as fields, `across` in a line."""
    names = [n for n in names if n not in SPECIAL_CONTROLS]
    lines = -(-len(names) // across)
    wide = -(-len(names) // max(lines, 1))
    for start in range(0, len(names), wide or 1):
        parts = st.columns(wide, vertical_alignment="bottom")
        for part, name in zip(parts, names[start : start + wide]):
            with part:
                _widget(draft, name)


def _unseen(draft: Draft, names: Sequence[str]) -> None:
    """Says which settings a link changed that have no field here."""
    fields = {*names, *(OF_ESTIMATOR if "estimator" in names else ())}
    unseen = [n for n in changed(draft) if n not in fields]
    said = [f"{title(n)} {draft.state.typed[n]}" for n in unseen]
    if said:
        st.markdown(f"Set without a field here: {words.plain(', '.join(said))}.")


def changed(draft: Draft) -> list[str]:
    """The settings that are not the case's own."""
    now, origin = draft.state.typed, draft.origin.typed
    return [name for name in now if now[name] != origin.get(name)]


def _widget(draft: Draft, name: str) -> None:
    called = draft.named(f"set-{name}")
    if name == "estimator":
        given = choosing(
            called,
            [*ESTIMATORS, CUSTOM],
            estimator(draft),
            lambda one: _set_estimator(draft, one),
        )
        label, told = TEXTS[name]["title"], TEXTS[name]["help"]
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
    if field.kind != "flag":
        now = small(now)
    text, why = draft.refused.get(name, (now, ""))
    kind(field.title, help=field.help, **showing(called, text, take))
    if why:
        st.markdown(words.plain(why))


def estimator(draft: Draft) -> str:
    """The named estimator that has the draft's settings, or 'custom'."""
    now = draft.state.settings()
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


def padded_width(draft: Draft) -> None:
    width = draft.table.width
    masks = draft.table["mask"]
    used = [t + 1 for t in range(width) if any(mask[t] for mask in masks)]
    longest = max(used, default=1)
    st.number_input(
        "Padded width",
        min_value=longest,
        max_value=max(longest + 4, width),
        step=1,
        width=180,
        help="Tokens in a row of the padded batch. One more token of"
        " padding changes no rollout.",
        **showing(
            draft.named("width"),
            width,
            lambda n: draft.do(edits.set_width, n),
        ),
    )


def _logged(draft: Draft) -> None:
    """What a trainer logs of a step with each engine."""
    both, batch = draft.comparison, draft.comparison.batch
    traces = (both.correct, both.faulty)
    if batch.logp is None:
        return
    body = [
        ["loss", *(plain(float(t.loss or 0), 5) for t in traces)],
        ["mean KL", *(plain(mean_kl(batch, t), 5) for t in traces)],
        ["tokens in the loss", *(str(trained_tokens(batch, t)) for t in traces)],
    ]
    table(["a trainer logs", *draft.state.engine_names], body, numbers=(1, 2))
