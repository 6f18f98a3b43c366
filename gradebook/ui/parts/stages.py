"""A stage of the pipeline, opened on the path below the board."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison, row_weight
from gradebook.analysis.formula import Line, first_sentence, worked
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
    row, names = draft.shown_row, draft.state.engine_names
    text = words.titled(f"The stage `{stage}`", level=3)
    text += words.plain(words.STAGES.get(stage, ""))
    bug = draft.swap
    if stage == bug.stage:
        sentences = map(first_sentence, (bug.correct, bug.faulty))
        pairs = zip(names, map(words.plain, sentences))
        text += "\n\n" + "  \n".join(f"{name}: {said}" for name, said in pairs)
    left, right = st.columns([13, 11], gap="large")
    with left:
        st.markdown(text, help=terms(text))
        drawn = stage_figure(comparison, stage, row, names, prompts_of(draft))
        alt = safe(f"The stage {stage}, row by row, {' and '.join(names)}.")
        markup(
            f'<div class="gb-step" role="img" aria-label="{alt}">{drawn}</div>',
            key=f"plot-{draft.scenario.name}",
        )
        folded("The numbers of this stage", "stage", partial(_numbers, draft, stage))
    with right:
        workings(draft)
    _tokens(comparison, row, names)


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
    place = comparison.stages.index(draft.stage) + by
    if 0 <= place < len(comparison.stages):
        draft.stage = comparison.stages[place]


def _numbers(draft: Draft, stage: str) -> None:
    """Both engines' results of one stage, row by row; of the loss, by its parts."""
    panel, names = stage_panel(draft.comparison, stage), draft.state.engine_names
    head, digits, selected = ["row", "prompt"], 3, draft.row
    labels = [[str(row), prompt] for row, prompt in enumerate(prompts_of(draft))]
    if stage == "loss":
        head, digits, selected = [""], 6, -1
        labels = [[part] for part in PARTS_OF_LOSS.values()]
    body = [
        [*label, *written(correct, faulty, digits), "≠" if differs else ""]
        for label, correct, faulty, differs in zip(
            labels, panel.correct, panel.faulty, panel.differs
        )
    ]
    numbers = (len(head), len(head) + 1)
    table([*head, *names, ""], body, numbers=numbers, selected=selected)


def workings(draft: Draft) -> None:
    """The selected row's formula with its numbers, correct above faulty; what
    differs is bold."""
    row, names = draft.shown_row, draft.state.engine_names
    whose = " of your edited batch" if draft.edited else ""
    st.markdown(words.titled(f"Row {row}{whose} in numbers", level=3))
    sides = zip(names, ("correct", "faulty"), worked(draft.comparison, row))
    html = ""
    for name, engine, (first, *others) in sides:
        mark = f'<i class="gb-{engine}" role="img" aria-label="{safe(name)}"></i>'
        more = "".join(f"<small>{_marked(line)}</small>" for line in others)
        html += f"<div>{mark}<p>{_marked(first)}{more}</p></div>"
    st.html(f'<div class="gb gb-formula">{html}</div>')


def _marked(line: Line) -> str:
    return "".join(
        f"<b>{safe(part.text)}</b>" if part.differs else safe(part.text)
        for part in line
    )


def _tokens(comparison: Comparison, row: int, names: tuple[str, str]) -> None:
    """The gradient of the row, token by token, with what it is made of;
    nothing where the batch has no gradient."""
    batch, traces = comparison.batch, (comparison.correct, comparison.faulty)
    if comparison.correct.gradient is None:
        return
    st.markdown(
        f"**The gradient of row {row} at each token:** the policy part is"
        " −A × weight, the KL part is β (1 − exp(ref − logp)) × weight, with"
        f" β = {batch.settings.beta:g}. A row that is not trained has no gradient."
    )
    parts = {"policy": "policy_gradient", "KL": "kl_gradient"}
    weights = [plain(row_weight(batch, trace, row), 5) for trace in traces]
    head = ["token", "ref − logp"]
    head += [f"{part}, {name}" for part in parts for name in names]
    if weights[0] == weights[1]:
        weights, head = weights[:1], [*head, "weight"]
    else:
        head += [f"weight, {name}" for name in names]
    body = []
    for token, trained in enumerate(batch.mask[row].tolist()):
        if not trained:
            cells = ["masked"] + [""] * (len(head) - 2)
        else:
            gap = "none"
            if batch.ref_logp is not None:
                gap = signed(float((batch.ref_logp - batch.logp)[row, token]))
            gradients = [
                signed(settled(float(getattr(trace, part)[row, token])), 5)
                for part in parts.values()
                for trace in traces
            ]
            cells = [gap, *gradients, *weights]
        body.append([f"t{token + 1}", *cells])
    table(head, body, numbers=range(1, len(head)))
