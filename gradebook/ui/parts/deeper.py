"""Go deeper: what is folded, and worked out only when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from gradebook.analysis.comparison import token_advantage
from gradebook.analysis.law_check import BROKEN, HOLDS, Outcome, check
from gradebook.analysis.law_check import words as law_words
from gradebook.analysis.laws import EIGHT
from gradebook.analysis.matrix import matrix
from gradebook.cases.record import bug
from gradebook.core.formatting import minus, settled, signed
from gradebook.engine.pipeline import CORRECT, run
from gradebook.ui.parts import influence_map, tryit, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.folding import folded
from gradebook.ui.parts.tables import table


def deeper(draft: Draft) -> None:
    """The section: its parts, folded."""
    st.markdown(words.titled("Go deeper", "Each part is computed for the batch above."))
    parts: dict[str, tuple[str, Callable[[Draft], None]]] = {
        "shrink": ("The smallest batch that shows the bug", tryit.shrinking),
        "influence": (
            "Which row's reward moves which row's advantage",
            influence_map.moves,
        ),
        "laws": ("Laws that must hold, tried on both engines", _laws),
    }
    if draft.scenario.estimators:
        title = "This batch under other estimators"
        parts["estimators"] = title, _estimators
    if draft.scenario.other_run is not None:
        parts["other-run"] = "Two runs side by side", _other_run
    for name, (title, part) in parts.items():
        folded(title, name, partial(part, draft))


def _laws(draft: Draft) -> None:
    """Each law in words, and what both engines make of it here."""
    one, batch = bug(draft.swap.name), draft.comparison.batch
    engines = (CORRECT, one.engine)
    if draft.state.evaluation:
        st.markdown(words.TRAINING_BATCH)
    note = " (disputed)" if one.status == "disputed" else ""
    body = [
        [law_words(name) + note * (name in one.laws), *map(_outcome, outcomes)]
        for name in dict.fromkeys([*one.laws, *(law.__name__ for law in EIGHT)])
        if (outcomes := [check(name, engine, batch) for engine in engines])
    ]
    table(["what must hold", *draft.state.engine_names], body)


def _outcome(outcome: Outcome) -> str:
    mark = {HOLDS: "✓ ", BROKEN: "✗ "}.get(outcome.answer, "")
    return f"{mark}{outcome.answer}. {minus(outcome.sentence)}"


def _other_run(draft: Draft) -> None:
    """A second run beside this one, and the difference token by token."""
    other, batch = draft.scenario.other_run, draft.comparison.batch
    assert other is not None
    st.markdown(words.plain(other.note))
    second = other.batch(batch.settings)
    body = []
    for name, engine in zip(draft.state.engine_names, (CORRECT, draft.swap.engine)):
        a = token_advantage(batch, run(engine, batch))
        b = token_advantage(second, run(engine, second))
        diff = "shapes differ"
        if a.shape == b.shape:
            diff = _matrix((b - a).tolist())
        body.append([name, _matrix(a.tolist()), _matrix(b.tolist()), diff])
    table(["engine", "this batch", other.title, "observed_advantage_diff"], body)


def _matrix(values: list[list[float]]) -> str:
    rows = (", ".join(f"{settled(v):g}" for v in row) for row in values)
    return "[" + ", ".join(f"[{row}]" for row in rows) + "]"


def _estimators(draft: Draft) -> None:
    """This batch under each estimator of the case, with both engines."""
    batch, engine = draft.comparison.batch, draft.swap.engine
    scenario = draft.scenario
    note = words.plain(scenario.estimators_note)
    if note:
        lead = "In the unedited case: " if draft.edited else ""
        st.markdown(lead + note)
    body = []
    for line in matrix(batch, engine, scenario.estimators):
        if line.wrong is not None:
            body.append([line.estimator, str(line.wrong), "", ""])
            continue
        sides = [_row(side.tolist()) for side in (line.correct, line.faulty)]
        said = "differs" if line.rows else "same"
        body.append([line.estimator, *sides, said])
    table(["estimator", *draft.state.engine_names, ""], body)


def _row(values: list[float]) -> str:
    shown = [signed(settled(v)) for v in values[:12]]
    return "  ".join(shown) + (" …" if len(values) > 12 else "")
