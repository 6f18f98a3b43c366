"""A stage of the pipeline, opened on the path below the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gradebook.analysis.source import first_sentence
from gradebook.bugs import Swap
from gradebook.output.figures import stage_figure
from gradebook.output.panels import lines_of
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import chart, ink, prompts_of
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import folded
from gradebook.ui.parts.words import terms
from gradebook.ui.parts.workings import tokens, workings


def opened(draft: Draft) -> None:
    """The stage that was chosen on the path: row by row, beside the formula."""
    comparison, stage = draft.comparison, draft.stage
    if stage not in comparison.stages:
        return
    row = min(draft.row, comparison.batch.rows - 1)
    one, names = draft.swap, draft.state.engine_names
    left, right = st.columns([13, 11], gap="large")
    with left:
        text = words.titled(f"The stage `{stage}`", level=3)
        text += meaning(one if stage == one.stage else None, stage, names)
        st.markdown(text, help=terms(text))
        chart(
            stage_figure(comparison, stage, row, names, ink(), prompts_of(draft)),
            key=f"plot-{draft.scenario.name}",
            config={"displayModeBar": False},
            alt=f"The stage {stage}, row by row, {' and '.join(names)}.",
        )
        folded(
            "The numbers of this stage",
            "stage",
            lambda: stage_table(draft, stage),
        )
    with right:
        workings(draft, row)
    tokens(comparison, row, names)


def choose(draft: Draft, edit: Mapping[str, Any]) -> None:
    """Opens the stage that an edit of the path names, or closes it."""
    stage = edit.get("stage")
    draft.stage = stage if stage in draft.comparison.stages else ""


def step(draft: Draft, by: int) -> None:
    """Opens the stage `by` places further along the path, if there is one;
    where none is open, the first in which the engines differ."""
    comparison = draft.comparison
    if draft.stage not in comparison.stages:
        draft.stage = (*comparison.diverging, *comparison.stages)[0]
        return
    at = comparison.stages.index(draft.stage) + by
    if 0 <= at < len(comparison.stages):
        draft.stage = comparison.stages[at]


def meaning(bug: Swap | None, stage: str, names: tuple[str, str]) -> str:
    """What the stage computes, as Markdown; with what both functions say of
    it where `bug` swaps it."""
    said = words.plain(words.STAGES.get(stage, ""))
    if bug is not None:
        said += (
            f"\n\n{names[0]}: {words.plain(first_sentence(bug.correct))}  \n"
            f"{names[1]}: {words.plain(first_sentence(bug.faulty))}"
        )
    return said


def stage_table(draft: Draft, stage: str) -> None:
    """Both engines' results of one stage, row by row."""
    whole = stage == "loss"
    lines = lines_of(draft.comparison, stage, prompts_of(draft))
    body = [
        [
            *([] if whole else [str(row)]),
            line.label,
            *line.texts(),
            "≠" if line.differs else "",
        ]
        for row, line in enumerate(lines)
    ]
    head = [""] if whole else ["row", "prompt"]
    table(
        [*head, *draft.state.engine_names, ""],
        body,
        numbers=(len(head), len(head) + 1),
        at=None if whole else draft.row,
    )
