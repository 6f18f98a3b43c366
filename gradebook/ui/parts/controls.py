"""The settings and switches of a case as widgets, and what the switches make
of the batch. A change acts at once."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.comparison import compare, mean_kl, trained_tokens
from gradebook.bugs import Swap
from gradebook.cases import edits
from gradebook.cases.case import SPECIAL_CONTROLS
from gradebook.cases.fields import (
    FIELDS,
    TEXTS,
    title,
    typed_settings,
)
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import plain
from gradebook.core.settings import ESTIMATORS, OF_ESTIMATOR
from gradebook.engine.grouping import divisible
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.trainer import NORMALIZATIONS, evaluated, subsampled
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import button, choosing, picking, showing

CUSTOM = "custom"
PHASES = ("Training", "Evaluation")


def switches(draft: Draft) -> None:
    """Every setting and switch of the case; each acts at once."""
    one, comparison = draft.swap, draft.comparison
    settings(draft)
    names = draft.scenario.controls
    if "padded_width" in names:
        padded_width(draft)
    if "subsample" in names:
        _subsample(draft)
    if "phase" in names:
        _phase(draft)
    if "guard" in names:
        _guard(one, comparison.batch)
    if "phase" in names and comparison.correct.loss is not None:
        _phases(one, comparison.batch, draft.state.evaluation)


def settings(draft: Draft, across: int = 6) -> None:
    """The settings that matter to this bug, `across` in a line, and those that
    a link changed."""
    names = [n for n in draft.scenario.controls if n not in SPECIAL_CONTROLS]
    lines = -(-len(names) // across)
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


def _guard(one: Swap, batch: Batch) -> None:
    """What the first version of the fix does with this batch."""
    title = "**The first fix: check that the batch divides evenly**  \n"
    try:
        divisible(batch)
    except GradebookError as error:
        st.markdown(
            f"{title}It raises an error here, so this run would stop:"
            f" `{str(error).replace('`', '')}`."
        )
        return
    told = "and on this batch the two engines agree."
    if not compare(one, batch).agree:
        told = (
            "and the two engines still differ: a batch that divides evenly"
            " need not be cut where its prompts change."
        )
    st.markdown(
        f"{title}It passes here: the group size divides {batch.rows} rows, {told}"
    )


def _phases(one: Swap, batch: Batch, evaluation: bool) -> None:
    """Loss and metrics without the guard, with it, and with it confined to
    training."""
    engines = [one.engine, CORRECT, one.engine if evaluation else CORRECT]
    traces = [evaluated(e, batch) if evaluation else run(e, batch) for e in engines]
    phase = "evaluation" if evaluation else "training"
    body = [
        [f"{phase} loss", *(plain(float(t.loss or 0), 5) for t in traces)],
        ["mean KL", *(plain(mean_kl(batch, t), 5) for t in traces)],
        [
            "tokens in the loss",
            *(str(trained_tokens(batch, t)) for t in traces),
        ],
    ]
    table(
        ["", "no guard", "guard always (the fix)", "guard in training only"],
        body,
        numbers=(1, 2, 3),
    )
    if evaluation and not traces[1].trained.any():
        st.markdown(
            "With one generation per prompt every group is a lone row, every"
            " spread is 0, and the fix leaves nothing to evaluate."
        )
