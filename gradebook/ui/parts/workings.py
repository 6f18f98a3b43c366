"""The selected row's formula with its numbers, under both engines."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.comparison import Comparison, row_weight
from gradebook.analysis.formula import Line, worked
from gradebook.core.formatting import plain, settled, signed
from gradebook.ui.parts import words
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.words import safe


def workings(comparison: Comparison, row: int, names: tuple[str, str]) -> None:
    """The formula of one row, correct above faulty; what differs is bold."""
    st.markdown(words.titled(f"Row {row} in numbers", level=3))
    marked = [f"{name} {mark}" for name, mark in zip(names, "●◇")]
    sides = zip(marked, worked(comparison, row))
    st.html("".join(_formula(name, side) for name, side in sides))


def _formula(name: str, side: tuple[Line, ...]) -> str:
    lines = [f'<div class="line"><b>{safe(name)}</b></div>']
    for line in side:
        parts = "".join(
            f'<span class="off">{safe(p.text)}</span>' if p.differs else safe(p.text)
            for p in line
        )
        lines.append(f'<div class="line">{parts}</div>')
    return '<div class="gb">' + "".join(lines) + "</div>"


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
