"""A stage of the pipeline, opened on the path below the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison, row_weight
from gradebook.analysis.formula import Line, Part, worked
from gradebook.analysis.source import first_sentence
from gradebook.bugs import Swap
from gradebook.core.formatting import plain, settled, signed
from gradebook.output.figures import stage_figure
from gradebook.output.panels import PARTS_OF_LOSS, stage_panel, written
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import prompts_of, table
from gradebook.ui.parts.widget import folded, markup
from gradebook.ui.parts.words import safe, terms


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
        drawn = stage_figure(comparison, stage, row, names, prompts_of(draft))
        alt = safe(f"The stage {stage}, row by row, {' and '.join(names)}.")
        markup(
            f'<div class="gb-step" role="img" aria-label="{alt}">{drawn}</div>',
            key=f"plot-{draft.scenario.name}",
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
    panel = stage_panel(draft.comparison, stage)
    named = [[str(row), prompt] for row, prompt in enumerate(prompts_of(draft))]
    if whole:
        named = [[part] for part in PARTS_OF_LOSS.values()]
    pairs = zip(named, panel.correct, panel.faulty, panel.differs)
    body = [
        [*names, *written(a, b, 6 if whole else 3), "≠" if differs else ""]
        for names, a, b, differs in pairs
    ]
    head = [""] if whole else ["row", "prompt"]
    table(
        [*head, *draft.state.engine_names, ""],
        body,
        numbers=(len(head), len(head) + 1),
        at=None if whole else draft.row,
    )


# The selected row's formula with its numbers, under both engines


def workings(draft: Draft, row: int) -> None:
    """The formula of one row of the batch on the board, correct above faulty;
    what differs is bold."""
    whose = " of your edited batch" if draft.edited else ""
    st.markdown(words.titled(f"Row {row}{whose} in numbers", level=3))
    names = draft.state.engine_names
    sides = zip(names, ("correct", "faulty"), worked(draft.comparison, row))
    lines = "".join(_side(*side) for side in sides)
    st.html(f'<div class="gb gb-formula">{lines}</div>')


def _side(name: str, engine: str, side: tuple[Line, ...]) -> str:
    lines = ["".join(map(_part, line)) for line in side]
    mark = f'<i class="gb-{engine}" role="img" aria-label="{safe(name)}"></i>'
    more = "".join(f"<small>{line}</small>" for line in lines[1:])
    return f"<div>{mark}<p>{lines[0]}{more}</p></div>"


def _part(part: Part) -> str:
    return f"<b>{safe(part.text)}</b>" if part.differs else safe(part.text)


def tokens(comparison: Comparison, row: int, names: tuple[str, str]) -> None:
    """The gradient of the row, token by token, with what it is made of;
    nothing where the batch has no gradient."""
    if comparison.correct.gradient is None:
        return
    batch = comparison.batch
    beta = batch.settings.beta
    st.markdown(
        f"**The gradient of row {row} at each token:** the policy part is"
        " −A × weight, the KL part is β (1 − exp(ref − logp)) × weight, with"
        f" β = {beta:g}. A row that is not trained has no gradient."
    )
    traces = (comparison.correct, comparison.faulty)
    weights = [row_weight(batch, trace, row) for trace in traces]
    body = []
    for t in range(batch.mask.shape[1]):
        if not bool(batch.mask[row, t]):
            body.append([f"t{t + 1}", "masked", *[""] * 6])
            continue
        gap = "none"
        if batch.ref_logp is not None:
            gap = signed(float(batch.ref_logp[row, t] - batch.logp[row, t]))
        cells = [f"t{t + 1}", gap]
        for part in ("policy_gradient", "kl_gradient"):
            a = float(getattr(comparison.correct, part)[row, t])
            b = float(getattr(comparison.faulty, part)[row, t])
            cells += [signed(settled(v), 5) for v in (a, b)]
        cells += [plain(w, 5) for w in weights]
        body.append(cells)
    named = [f"weight, {name}" for name in names]
    if weights[0] == weights[1]:
        named = ["weight"]
        body = [cells[:-1] for cells in body]
    table(
        [
            "token",
            "ref − logp",
            *(f"{part}, {name}" for part in ("policy", "KL") for name in names),
            *named,
        ],
        body,
        numbers=range(1, 8),
    )
