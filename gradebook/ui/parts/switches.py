"""The settings of a bug's page, and what its switches make of the batch."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.comparison import compare, mean_kl, trained_tokens
from gradebook.bugs import Swap
from gradebook.cases.case import SPECIAL_CONTROLS
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import plain
from gradebook.engine.grouping import divisible
from gradebook.engine.pipeline import CORRECT, run
from gradebook.engine.trainer import evaluated
from gradebook.ui.parts import controls
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import table


def switches(draft: Draft) -> None:
    """Every setting and switch of the case; each acts at once."""
    one, comparison = draft.swap, draft.comparison
    controls.settings(draft)
    names = draft.scenario.controls
    for name in names:
        if name in SPECIAL_CONTROLS:
            controls.special(draft, name)
    if "guard" in names:
        _guard(one, comparison.batch)
    if "phase" in names and comparison.correct.loss is not None:
        _phases(one, comparison.batch, draft.state.evaluation)


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
        f"{title}It passes here: the group size divides {batch.rows} rows,"
        f" {told}"
    )


def _phases(one: Swap, batch: Batch, evaluation: bool) -> None:
    """Loss and metrics without the guard, with it, and with it confined to
    training."""
    engines = [one.engine, CORRECT, one.engine if evaluation else CORRECT]
    traces = [
        evaluated(e, batch) if evaluation else run(e, batch) for e in engines
    ]
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
