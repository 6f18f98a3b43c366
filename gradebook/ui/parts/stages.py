"""Where it goes wrong: the pipeline's stages as a path, and one of them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.source import first_sentence
from gradebook.bugs import Swap
from gradebook.output.figures import Figure, gradient_figure, stage_figure
from gradebook.output.figures.stages import lines_of
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.folding import folded
from gradebook.ui.parts.pictures import chart, ink, prompts_of
from gradebook.ui.parts.shortcuts import arrived
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.terms import terms
from gradebook.ui.parts.widget import picking
from gradebook.ui.parts.workings import tokens, workings

GRADIENT = (
    "**The gradient of the loss at each token.** A bar that points down is a"
    " negative gradient: the update makes this token more likely."
)


def where(draft: Draft) -> None:
    """The section: the path of stages, the chosen stage, the formula."""
    one, comparison = draft.swap, draft.comparison
    said = first_difference(comparison, one.stage)
    st.markdown(words.titled("Where it goes wrong", said))
    stage = _path(draft)
    left, right = st.columns([13, 11], gap="large")
    row = min(draft.row, comparison.batch.rows - 1)
    with left:
        said = words.titled(stage, level=3)
        said += meaning(
            one if stage == one.stage else None,
            stage,
            draft.state.engine_names,
        )
        st.markdown(said, help=terms(said))
        _plot(draft, stage, row)
        folded(
            "The numbers of this stage",
            "stage",
            lambda: stage_table(draft, stage),
        )
    with right:
        workings(comparison, row, draft.state.engine_names)
    tokens(comparison, row, draft.state.engine_names)


def _plot(draft: Draft, stage: str, row: int) -> None:
    """The stage row by row, correct and faulty side by side. Plotly takes
    long to load, and comes after the board into the space kept for it."""
    names, comparison = draft.state.engine_names, draft.comparison
    prompts = prompts_of(draft)
    drawn = chart if arrived() else _space
    drawn(
        stage_figure(comparison, stage, row, names, ink(), prompts),
        key=f"plot-{draft.scenario.name}",
        config={"displayModeBar": False},
        alt=f"The stage {stage}, row by row, {' and '.join(names)}.",
    )
    if stage != "loss":
        return
    st.markdown(GRADIENT)
    drawn(
        gradient_figure(comparison, row, names, ink(), prompts),
        key=f"gradient-{draft.scenario.name}",
        config={"displayModeBar": False},
        alt="The gradient of the loss at each token, row by row,"
        f" {' and '.join(names)}.",
    )


def _space(figure: Figure, **_: Any) -> None:
    """As high as the figure, so that nothing moves when it comes."""
    st.html(f'<div style="height: {figure["layout"]["height"]}px"></div>')


def first_difference(comparison: Comparison, swapped: str) -> str:
    """Which stage is the first to differ, in a sentence; and where that
    comes from, if the `swapped` stage itself differs by too little to show.
    """
    if not comparison.diverging:
        return "Every stage gives the same numbers on this batch."
    first = comparison.diverging[0]
    lead = "The numbers flow from the first stage to the last."
    gap = comparison.gap(swapped) if swapped else 0.0
    if swapped in comparison.diverging or not gap:
        return (
            f"{lead} **{first}** is the first stage where the two engines"
            " differ; all stages before it agree."
        )
    small = f"{gap:.2g}".replace("-", "−")
    return (
        f"{lead} The bug is in **{swapped}**, whose numbers differ by"
        f" {small}: too little to print. **{first}** is the first stage where"
        " the difference shows."
    )


def shown_stage(draft: Draft) -> str:
    """The stage that stands open: the chosen one, else the first that
    differs, else the one that the bug swaps."""
    comparison = draft.comparison
    if draft.stage in comparison.stages:
        return draft.stage
    swapped = draft.swap.stage or comparison.stages[-1]
    return (*comparison.diverging, swapped)[0]


def step(draft: Draft, by: int) -> None:
    """Opens the stage `by` places further along the path, if there is one."""
    stages = draft.comparison.stages
    at = stages.index(shown_stage(draft)) + by
    if 0 <= at < len(stages):
        draft.stage = stages[at]


def _path(draft: Draft) -> str:
    """The stages in order, one of them chosen. The chosen one."""
    comparison, now = draft.comparison, shown_stage(draft)
    diverging = comparison.diverging

    def pick(stage: str) -> None:
        draft.stage = stage

    with st.container(key="path"):
        st.segmented_control(
            "Stage",
            list(comparison.stages),
            format_func=lambda s: f"{s} {'≠' if s in diverging else '='}",
            required=True,
            label_visibility="collapsed",
            **picking(draft.named("stage"), now, pick),
        )
    return now


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
