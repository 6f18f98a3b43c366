"""Below the board: an opened stage, the smallest batch, the influence map, laws."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis import law_check
from gradebook.analysis.comparison import Comparison, influences
from gradebook.analysis.formula import Line, first_sentence, worked
from gradebook.analysis.laws import OF_REWARDS
from gradebook.analysis.shrink import shrink
from gradebook.analysis.token_formula import worked_token
from gradebook.cases.scenario import bug as record_of
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus, plain, settled, signed
from gradebook.core.lazy_pandas import pd
from gradebook.engine.pipeline import CORRECT
from gradebook.output.charts import map_figure
from gradebook.output.figures import stage_figure
from gradebook.output.panels import stage_panel, written
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.widget import chart, folded, markup, offered, table
from gradebook.ui.parts.words import safe
from gradebook.ui.program import stub

MOST_ROWS = 128
"""The most rows of which an influence map is drawn."""


def opened(draft: PageDraft) -> None:
    """The stage that was chosen on the path: row by row, beside the formula."""
    comparison, stage = draft.comparison, draft.page.stage
    if stage not in comparison.stages:
        return
    row, names = draft.shown_row, draft.scenario.engine_names
    functions = [getattr(engine, stage) for engine in (CORRECT, draft.swap.engine)]
    correct, faulty = (words.plain(first_sentence(f)) for f in functions)
    text = f"{names[0]}: {correct}  \n{names[1]}: {faulty}"
    if functions[0] is functions[1]:
        text = correct
    text = words.titled(f"The stage `{stage}`", text, level=3)
    left, right = st.columns([13, 11], gap="large")
    with left:
        st.markdown(text, help=words.terms(text))
        drawn = stage_figure(comparison, stage, row, names, draft.prompts)
        alt = safe(f"The stage {stage}, row by row, {' and '.join(names)}.")
        markup(
            f'<div class="gb-step" role="img" tabindex="0" aria-label="{alt}">'
            f"{drawn}</div>",
            key=f"plot-{draft.scenario.name}",
        )
        folded("The numbers of this stage", "stage", partial(_numbers, draft, stage))
    with right:
        workings(draft)
    _tokens(comparison, row, names)


def choose(draft: PageDraft, edit: Mapping[str, Any]) -> None:
    stage = edit.get("stage")
    draft.page.stage = stage if stage in draft.comparison.stages else ""


def step(draft: PageDraft, by: int) -> None:
    """Opens the stage `by` places further along the path. If none is open, it opens the
    first in which the engines differ."""
    stages = draft.comparison.stages
    if draft.page.stage in stages:
        place = stages.index(draft.page.stage) + by
        draft.page.stage = stages[max(0, min(place, len(stages) - 1))]
    else:
        draft.page.stage = (*draft.comparison.diverging, *stages)[0]


def _numbers(draft: PageDraft, stage: str) -> None:
    panel, names = stage_panel(draft.comparison, stage), draft.scenario.engine_names
    head, digits, selected, body = ["row", "prompt"], 3, draft.state.row, []
    labels = [[str(row), prompt] for row, prompt in enumerate(draft.prompts)]
    results = zip(labels, panel.correct, panel.faulty, panel.differs)
    for label, correct, faulty, differs in results:
        texts = written(correct, faulty, digits)
        body.append([*label, *texts, "≠" if differs else ""])
    numbers = (len(head), len(head) + 1)
    table([*head, *names, ""], body, numbers=numbers, selected=selected)


_formula = st.components.v2.component(
    "gradebook_formula", js=stub("formula"), isolate_styles=False
)


def workings(draft: PageDraft) -> None:
    """The place of the formula, which the board's program fills and keeps up to date:
    it comes with the board's data."""
    _formula(key="formula", data=[draft.channel.epoch])


def formula(draft: PageDraft) -> str:
    """The selected row's formula with its numbers, or the selected token's, as HTML;
    what differs is bold."""
    row, names, html = draft.shown_row, draft.scenario.engine_names, ""
    whose = " of your edited batch" if draft.moved else ""
    both, what, lines, token = draft.comparison, f"Row {row}", [], None
    if draft.scenario.lines == "row":
        lines = worked(both, row)
    else:
        token = min(draft.state.token, both.batch.mask.shape[1] - 1)
        what, lines = f"Token {token} of row {row}", worked_token(both, row, token)
    sides = zip(names, ("correct", "faulty"), lines)
    for name, engine, (first, *others) in sides:
        mark = f'<i class="gb-{engine}" role="img" aria-label="{safe(name)}"></i>'
        more = "".join(f"<small>{_marked(line, row, token)}</small>" for line in others)
        html += f"<div>{mark}<p>{_marked(first, row, token)}{more}</p></div>"
    title = f"<h3>{what}{whose} in numbers</h3>"
    return f'<div class="gb gb-formula">{title}{html}</div>'


def _marked(line: Line, row: int, token: int | None) -> str:
    """A line of a formula. Its numbers point at their rows and stages on the board."""
    html = ""
    for text, differs, stage, rows in line:
        piece = f"<b>{safe(text)}</b>" if differs else safe(text)
        if stage:
            piece = words.pointing(piece, rows or [row], stage, token)
        html += piece
    return html


def _tokens(comparison: Comparison, row: int, names: tuple[str, str]) -> None:
    """The gradient of the row, token by token, with its parts."""
    batch, traces = comparison.batch, (comparison.correct, comparison.faulty)
    weights = [
        trace.weight[row] * trace.learns[row]
        for trace in traces
        if trace.weight is not None and trace.learns is not None
    ]
    if not weights:  # without logp there is no loss
        return
    st.markdown(
        f"**The gradient of row {row} at each unmasked token:** the policy part is"
        " −A × weight, the KL part is β (1 − exp(ref − logp)) × weight, with"
        f" β = {batch.settings.beta:g}. A row that is not trained has no gradient."
    )
    fields = ("policy_gradient", "kl_gradient")
    parts = [getattr(trace, field) for field in fields for trace in traces]
    head = ["token", "ref − logp"]
    for part in ("policy", "KL", "weight"):
        head += [f"{part}, {name}" for name in names]
    gap, body = "none", []
    for token in batch.mask[row].nonzero().flatten().tolist():
        if batch.ref_logp is not None:
            gap = signed(float((batch.ref_logp - batch.logp)[row, token]))
        numbers = [signed(settled(float(part[row, token])), 5) for part in parts]
        counts = [plain(float(weight[token]), 5) for weight in weights]
        body.append([f"t{token + 1}", gap, *numbers, *counts])
    table(head, body, numbers=range(1, len(head)))


# Go deeper: each part is folded, and worked out only when it is opened


def deeper(draft: PageDraft) -> None:
    for title, name, part in (
        ("The smallest batch that shows the bug", "shrink", _smallest),
        ("Which row's reward moves which row's advantage", "influence", _influence),
        ("Laws that must hold, tried on both engines", "laws", _laws),
    ):
        folded(title, name, partial(part, draft))


def _smallest(draft: PageDraft) -> None:
    st.markdown(
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way. The board shows it; Undo"
        " goes back step by step."
    )
    if st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        text = "The batch does not show the bug, or is already as small as it gets."
        try:
            with st.spinner("Shrinking the batch"):
                states = [*shrink(draft.state)]
        except GradebookError as error:
            states, text = [], words.as_typed(words.message_of(error))
        for state in states:
            draft.become(state)
        if states:
            st.rerun()
        st.markdown(text)


def _influence(draft: PageDraft) -> None:
    batch, names = draft.comparison.batch, draft.scenario.engine_names
    if batch.rows > MOST_ROWS:
        st.markdown(f"The map is drawn for up to {MOST_ROWS} rows.")
        return
    lead = (
        "A cell says how far one row's advantage moves because of another row's"
        " reward. That reward is replaced by the mean of its siblings: the other"
        f" rows of its prompt that count under “{names[0]}”. A row without such"
        " siblings gets the reward 0 instead."
    )
    if coupling := law_check.couples_prompts(batch.settings):
        lead += (
            " These settings compare rows of different prompts by design"
            f" ({words.plain(coupling)}). A leak is therefore only what the engine"
            f" “{names[1]}” adds."
        )
    lead += (
        "\n\nA cell with + moves its row up, one with − moves it down, and a stronger"
        " shade moves it more. A thin frame holds the rows of one prompt; a thick one"
        " is a leak."
    )
    maps = influences(draft.swap.engine, batch)
    sums, leak = maps.leaked.abs().sum(1), "Nothing leaks on this batch."
    if bool(sums.any()):
        most = f"row {int(sums.argmax())} most ({plain(float(sums.max()))} in sum)"
        leak = f"Rows that should not matter move {most}."
    st.markdown(lead)
    key = f"map-{draft.scenario.name}"
    alt = f"Influence of each row on each, {names[0]} and {names[1]}. {leak}"
    chart(map_figure(maps, draft.prompts, names), key=key, alt=alt)
    st.markdown(leak)

    def frames() -> "dict[str, pd.DataFrame]":
        """A line for each row that is moved, a column for each that moves it."""
        sides = zip(names, (maps.correct.tolist(), maps.faulty.tolist()))
        return {
            f"{name}: row moved, by row": pd.DataFrame(matrix).map(settled)
            for name, matrix in sides
        }

    offered("the map's numbers", key, frames)


def _laws(draft: PageDraft) -> None:
    record, batch = record_of(draft.swap.name), draft.comparison.batch
    note = " (disputed)" if record.is_disputed else ""
    marks, body = {law_check.HOLDS: "✓ ", law_check.BROKEN: "✗ "}, []
    for name in dict.fromkeys([*record.laws, *(law.__name__ for law in OF_REWARDS)]):
        line = [law_check.words(name) + note * (name in record.laws)]
        for engine in (CORRECT, record.engine):
            outcome = law_check.check(name, engine, batch)
            mark = marks.get(outcome.answer, "")
            line.append(f"{mark}{outcome.answer}. {minus(outcome.sentence)}")
        body.append(line)
    table(["what must hold", *draft.scenario.engine_names], body)
