"""What a page shows for a state: both engines under all its switches."""

from __future__ import annotations

from dataclasses import replace

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.engines import swapped
from gradebook.cases.state import State
from gradebook.engine.pipeline import CORRECT
from gradebook.engine.trainer import NORMALIZATIONS, evaluated, normalized


def compared(state: State) -> Comparison:
    """Both engines on the state's batch. Raises GradebookError where the
    batch cannot be read or an engine cannot compute it."""
    batch = state.batch()
    one = swapped(state.bugs)
    if state.evaluation:
        guarded = one.engine if state.training_guard else CORRECT
        return Comparison(
            batch, evaluated(guarded, batch), evaluated(one.engine, batch)
        )
    found = compare(one, batch)
    how = state.normalization
    if "subsample" not in state.scenario.controls or how == NORMALIZATIONS[-1]:
        return found
    if how == NORMALIZATIONS[0]:
        return replace(found, faulty=found.correct)
    return replace(found, faulty=normalized(one.engine, batch, how))
