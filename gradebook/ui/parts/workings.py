"""The selected row's formula with its numbers, under both engines."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.comparison import Comparison, row_weight
from gradebook.analysis.formula import Line, Part, worked
from gradebook.core.formatting import plain, settled, signed
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.words import safe


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
