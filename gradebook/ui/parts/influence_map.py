"""Who moves whom: the influence map of both engines, and one cell of it."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.influence import (
    Influence,
    Influences,
    derivative,
    influences,
    kl_influence,
    replacements,
)
from gradebook.analysis.law_check import couples_prompts
from gradebook.core.batch import Batch
from gradebook.core.formatting import digits_apart, plain, settled, signed
from gradebook.engine.pipeline import CORRECT
from gradebook.output.figures import MapPicture, map_figure
from gradebook.ui import keys
from gradebook.ui.parts import numbers, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import chart, ink, prompts_of
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import redraw, showing

MOST_ROWS = 128
FINITE, SLOPE = "finite change", "derivative"


def moves(draft: Draft) -> None:
    """The section: maps, the chosen cell in numbers, the totals."""
    bug, batch = draft.swap, draft.comparison.batch
    if batch.rows > MOST_ROWS:
        said = f"The map is drawn for up to {MOST_ROWS} rows."
        st.markdown(said)
        return
    by_gradient = draft.scenario.telltale.kind == "gradient" and batch.logp is not None
    found = influences(bug.engine, batch)
    sides = [found.correct, found.faulty]
    leaks = found.leaks.tolist()
    if by_gradient:
        said = (
            "A cell says how much the gradient of the KL part of one row"
            " changes when another row's reward becomes the mean of its"
            " siblings, the other rows of its prompt that count. A row"
            " whose reward is that mean already, as in a flat group, has no"
            " influence."
        )
        sides = [kl_influence(one, batch) for one in (CORRECT, bug.engine)]
        leaks = [[False] * batch.rows] * batch.rows
    else:
        said = (
            "A cell says how far one row's advantage moves because of"
            " another row's reward. That reward is replaced by the mean of its"
            " siblings: the other rows of its prompt that count"
            f" under “{draft.state.engine_names[0]}”. A row without such"
            " siblings gets the reward 0 instead."
        )
    if draft.state.evaluation:
        said += f" {words.TRAINING_BATCH}"
    st.markdown(said)
    correct, faulty = (side.moved.tolist() for side in sides)
    if not by_gradient and _measure(draft) == SLOPE:
        correct = derivative(CORRECT, batch).tolist()
        faulty = derivative(bug.engine, batch).tolist()
        st.markdown(
            "The derivative is the wrong picture: dividing by the deviation"
            " saturates, so an outlier that flips its neighbours has a slope"
            " near 0, and in a flat group it grows like 1 / eps although"
            " every advantage is 0. A finite change has neither fault. The"
            " boxes, the sums and the table below are the finite change's."
        )
    victim, culprit = _chosen(draft, batch.rows, found)
    key = f"map-{draft.scenario.name}"
    drawn = MapPicture(
        correct,
        faulty,
        leaks,
        prompts_of(draft),
        (victim, culprit),
        ink(),
        draft.state.engine_names,
    )
    right, wrong = draft.state.engine_names
    said = _moving(draft, correct, faulty) if by_gradient else _totals(found)
    chart(
        map_figure(drawn),
        key=key,
        on_select=lambda: _clicked(draft, key),
        selection_mode="points",
        config={"displayModeBar": False},
        alt=f"Influence of each row on each, {right} and {wrong}. {said}",
    )
    st.markdown(said)
    numbers.offered("the map's numbers", key, lambda: numbers.of_map(drawn))
    if couples_prompts(batch.settings) and not by_gradient:
        st.markdown(
            "These settings compare rows of all prompts by design"
            f" ({words.plain(couples_prompts(batch.settings))}), so a leak is"
            f" what “{wrong}” adds to “{right}”."
        )
    _pickers(draft, batch.rows - 1, victim, culprit)
    what = "KL gradient" if by_gradient else "advantage"
    _cell(draft, batch, sides, what, victim, culprit)


def _measure(draft: Draft) -> str:
    """Finite change or derivative, as chosen."""
    return st.segmented_control(
        "Measured by",
        [FINITE, SLOPE],
        default=FINITE,
        key=f"measure-{draft.scenario.name}",
        required=True,
        label_visibility="collapsed",
    )


def _chosen(draft: Draft, rows: int, found: Influences) -> tuple[int, int]:
    """The cell: the selected row, and the row that moves it most."""
    victim = min(draft.row, rows - 1)
    if draft.culprit[0] != draft.row:
        sizes = found.leaked[victim].abs()
        if not bool(sizes.any()):
            sizes = found.faulty.moved[victim].nan_to_num(0, 0, 0).abs()
        draft.culprit = draft.row, int(sizes.argmax())
    return victim, min(draft.culprit[1], rows - 1)


def _clicked(draft: Draft, key: str) -> None:
    points = keys.widget(key).selection.points
    if points:
        victim, culprit = map(int, points[0]["customdata"][:2])
        _choose(draft, victim, culprit)
        redraw()


def _choose(draft: Draft, victim: int, culprit: int) -> None:
    draft.select(victim)
    draft.culprit = draft.row, culprit


def _totals(found: Influences) -> str:
    sums = found.totals
    if sums.victim is None or sums.culprit is None:
        return "Nothing leaks on this batch."
    return (
        f"Rows that should not matter move row {sums.victim} most"
        f" ({plain(float(sums.victims[sums.victim]))} in sum). Row"
        f" {sums.culprit} moves others most"
        f" ({plain(float(sums.culprits[sums.culprit]))})."
    )


def _moving(draft: Draft, correct: list[list[float]], faulty: list[list[float]]) -> str:
    """How many cells of each map move a row."""
    first, second = (
        sum(bool(settled(cell)) for line in side for cell in line)
        for side in (correct, faulty)
    )
    cells = len(correct) ** 2
    right, wrong = draft.state.engine_names
    return (
        f"{first} of {cells} cells move a row under “{right}”, {second}"
        f" under “{wrong}”."
    )


def _pickers(draft: Draft, last: int, victim: int, culprit: int) -> None:
    """The chosen cell as two fields."""
    left, right, _ = st.columns([1, 1, 3])
    left.number_input(
        "Moved row",
        0,
        last,
        step=1,
        **showing(
            draft.named("victim"),
            victim,
            lambda row: _choose(draft, row, draft.culprit[1]),
        ),
    )
    right.number_input(
        "Row that moves it",
        0,
        last,
        step=1,
        **showing(
            draft.named("culprit"),
            culprit,
            lambda row: _choose(draft, draft.row, row),
        ),
    )


def _cell(
    draft: Draft,
    batch: Batch,
    sides: list[Influence],
    what: str,
    victim: int,
    culprit: int,
) -> None:
    """The chosen cell in numbers: what the map shows, before and after."""
    body = []
    for name, side in zip(draft.state.engine_names, sides):
        before = settled(float(side.before[victim]))
        after = settled(float(side.after[victim, culprit]))
        moved = settled(float(side.moved[victim, culprit]))
        digits = digits_apart(before, after)
        body.append(
            [
                name,
                signed(before, digits),
                signed(after, digits),
                signed(moved, digits),
            ]
        )
    old = plain(float(batch.reward[culprit]))
    new = plain(float(replacements(batch)[culprit]))
    table(
        [
            "",
            f"{what} of row {victim}",
            f"with row {culprit}'s reward {old} → {new}",
            "moved by",
        ],
        body,
        numbers=(1, 2, 3),
    )
